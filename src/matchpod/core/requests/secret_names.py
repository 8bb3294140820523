"""Decide by the name of a value whether it is a secret: for console variables, JSON fields and log fields alike."""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "***"
"""Shown instead of a secret."""

_SECRET: Final = re.compile(
    r"(?<!by)(?<!com)pass(?!ed|es|ing|ive|age|enger)"
    r"|pwd|(?:^|_)pw(?:_|$)|pw[0-9]*$"
    r"|secret|webhook"
    r"|authorization|auth(?!or|_?id)"
    r"|steamaccount|header_?value|apikey|_key$|token$"
)
"""Parts of names that mean a secret. A passed test, a compass, an author and the id of a player are none."""


def is_secret_name(name: str) -> bool:
    """True if a value of this name must not be stored or logged, in any case of the letters.

    For example `sv_password`, `rcon_pass`, `LOGADDRESS_TOKEN_SECRET`, `sv_setsteamaccount`, `RemoteLogHeaderValue`,
    `steam_api_key`, `callbackAuthToken`, `discord_webhook`, `ftp_pwd`, `http_auth`.
    """
    return _SECRET.search(name.lower()) is not None
