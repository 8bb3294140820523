"""Decide by the name of a value whether it is a secret: for console variables, JSON fields and log fields alike."""

from __future__ import annotations

from typing import Final

HIDDEN: Final = "***"
"""Shown instead of a secret."""

_PARTS: Final = (
    "password",
    "passwd",
    "secret",
    "steamaccount",
    "header_value",
    "headervalue",
    "authorization",
    "apikey",
)
_ENDS: Final = ("_key", "token")


def is_secret_name(name: str) -> bool:
    """True if a value of this name must not be stored or logged, in any case of the letters.

    For example `sv_password`, `tv_password1`, `LOGADDRESS_TOKEN_SECRET`, `sv_setsteamaccount`, `RemoteLogHeaderValue`,
    `steam_api_key`, `callbackAuthToken`.
    """
    lowered = name.lower()
    return lowered.endswith(_ENDS) or any(part in lowered for part in _PARTS)
