"""Hide secrets: recognize secret values by their names, and mask the URLs of callbacks."""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "***"
"""The text that replaces a secret."""

_SECRET: Final = re.compile(
    r"(?<!by)(?<!com)pass(?!ed|es|ing|ive|age|enger)"
    r"|pwd|(?:^|_)pw(?:_|$)|pw[0-9]*$"
    r"|secret|webhook(?!_?id$|_deliveries$)"
    r"|authorization|auth(?!or|_?id)"
    r"|steamaccount|header_?value|apikey|_key$|token$"
)
"""Matches parts of names that denote secrets. Words such as passed, compass and author do not match, and neither do the
ids of webhooks."""


def is_secret_name(name: str) -> bool:
    """True if the value of a variable or field with this name is secret, and must not be stored or logged.

    For example `sv_password`, `rcon_pass`, `LOGADDRESS_TOKEN_SECRET`, `sv_setsteamaccount`, `RemoteLogHeaderValue`,
    `steam_api_key`, `callbackAuthToken`, `discord_webhook`, `ftp_pwd`, `http_auth`.
    """
    return _SECRET.search(name.lower()) is not None


def mask_url(url: str) -> str:
    """Return the URL with user info and all values of its query hidden, and without its fragment.

    Every value is hidden, whatever its name: receivers use names such as `code`, `sig` or `k` for their secrets.
    """
    address, question_mark, query = url.partition("#")[0].partition("?")
    scheme, slashes, rest = address.partition("://")
    authority, slash, path = rest.partition("/")
    user_info, at, host = authority.rpartition("@")
    masked = f"{HIDDEN if user_info else ''}{at}{host}"
    hidden = "&".join(map(_mask_part, query.split("&")))
    return f"{scheme}{slashes}{masked}{slash}{path}{question_mark}{hidden}"


def mask_last_part(url: str) -> str:
    """Return the masked URL without the last part of its path, for receivers whose secret is in the path."""
    masked = mask_url(url)
    address, question_mark, query = masked.partition("?")
    scheme, slashes, rest = address.partition("://")
    authority, slash, path = rest.partition("/")
    *parts, last = path.rstrip("/").split("/")
    hidden = "/".join([*parts, HIDDEN if last else ""])
    return f"{scheme}{slashes}{authority}{slash}{hidden}{question_mark}{query}"


def mask_path(url: str) -> str:
    """Return only the origin of a URL, with its user info hidden, because the path of a receiver may be secret."""
    masked = mask_url(url)
    scheme, slashes, rest = masked.partition("?")[0].partition("://")
    authority, _, path = rest.partition("/")
    is_whole = not path and "?" not in masked
    return masked if is_whole else f"{scheme}{slashes}{authority}/{HIDDEN}"


def _mask_part(part: str) -> str:
    name, equals, value = part.partition("=")
    if not equals:
        return HIDDEN if name else ""
    return f"{name}={HIDDEN if value else ''}"
