"""What text may a caller send? One function a kind of text: None when it is good, else what would be right.

The answers are predicates ("must be …") that read well after the name of the field. Bad text is refused, never
repaired: a caller who learns that a name was changed for him learns it from his players.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
import unicodedata
from collections.abc import Iterable

MAX_TEAM_NAME = 32
"""Longer names run out of the scoreboard."""

MAX_EXTERNAL_ID = 255
"""Fits a UUID, a URL path or a compound key, and an indexed column everywhere."""

MAX_URL = 2048
"""What proxies and browsers carry without complaint."""

MAX_AUTH_TOKEN = 4096
"""Room for a signed token; whole header blocks are commonly limited to 8 KiB."""

MAX_PASSWORD = 32
"""The game compares about this many characters of `sv_password`."""

MAX_SHOWN = 64
"""An answer quotes a caller's text to show which one is meant; this much does."""

_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control, format, lone surrogate, line and paragraph separator: nobody sees them, and parsers trip over them."""

_REFUSED_IN_TEAM_NAMES = frozenset('";\\%${}`')
"""The match plugin executes team names unquoted: these end, comment out or expand a console command."""

_PLAYER_ID = re.compile(r"7656119[0-9]{10}")
_MAP = re.compile(r"[a-z0-9_]{1,64}|workshop/[0-9]{1,20}")
# A header value may not begin or end with a blank: receivers strip it, and the token would differ.
_HEADER_VALUE = re.compile(r"[!-~](?:[ \t!-~]*[!-~])?")
_VISIBLE_ASCII = re.compile(r"[!-~]+")
_URL = re.compile(r"(?i:https?)://(?P<authority>[^/?#]*)(?:[/?#].*)?")
_AUTHORITY = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?")
_HOST_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_MAX_HOST = 253
_MAX_PORT = 65535


def unprintable_in(text: str) -> str | None:
    """The first control, format, surrogate or line-separator character, written as `U+XXXX`."""
    if text.isascii() and text.isprintable():  # the usual case, checked at the speed of C
        return None
    for character in text:
        if unicodedata.category(character) in _UNPRINTABLE:
            return f"U+{ord(character):04X}"
    return None


def shown(text: str) -> str:
    """A caller's text made safe to quote in an answer: short, printable, encodable."""
    cut = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
    return "".join("\ufffd" if unicodedata.category(character) in _UNPRINTABLE else character for character in cut)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant, if one is close; case does not count."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name[:MAX_SHOWN].casefold(), by_folded, n=1)
    return by_folded[close[0]] if close else None


def team_name_fault(text: str) -> str | None:
    """1 to 32 characters, trimmed, nothing that a console could read as more than a name."""
    if length := _length_fault(text, MAX_TEAM_NAME):
        return length
    if text != text.strip():
        return "must not begin or end with a blank"
    if code := unprintable_in(text):
        return f"must not contain control, format or line-separator characters (found {code})"
    refused = sorted(_REFUSED_IN_TEAM_NAMES.intersection(text))
    if refused or "//" in text:
        return f"must not contain {' '.join(refused) or '//'}"
    return None


def player_id_fault(text: str) -> str | None:
    """A 64-bit player id in decimal."""
    if _PLAYER_ID.fullmatch(text):
        return None
    return "must be a 64-bit player ID: 17 digits that begin with 7656119"


def map_fault(text: str) -> str | None:
    """A map of the game, or `workshop/` and the number of a workshop item."""
    if _MAP.fullmatch(text):
        return None
    return "must be a map name (1 to 64 of a-z 0-9 _) or workshop/ followed by the item's number"


def external_id_fault(text: str) -> str | None:
    """The caller's correlation id: 1 to 255 characters, no control characters."""
    if length := _length_fault(text, MAX_EXTERNAL_ID):
        return length
    # Format characters are legal here: the id is compared and returned, never shown to a parser.
    for character in text:
        if unicodedata.category(character) in ("Cc", "Cs"):
            return f"must not contain control characters (found U+{ord(character):04X})"
    return None


def password_fault(text: str) -> str | None:
    """What players type to connect: 1 to 32 characters without quotes, semicolons or control characters."""
    if length := _length_fault(text, MAX_PASSWORD):
        return length
    if code := unprintable_in(text):
        return f"must not contain control, format or line-separator characters (found {code})"
    if refused := sorted(frozenset("\"';").intersection(text)):
        return f"must not contain quotes or semicolons (found {' '.join(refused)})"
    if text.casefold() == "none":
        # The engine treats this value of sv_password as an open server.
        return "must not be none: the game reads that as no password"
    return None


def auth_token_fault(text: str) -> str | None:
    """A header value: visible ASCII with blanks inside."""
    if length := _length_fault(text, MAX_AUTH_TOKEN):
        return length
    if not _HEADER_VALUE.fullmatch(text):
        return "must be visible ASCII characters, with blanks only between them"
    return None


def callback_url_fault(text: str) -> str | None:
    """An absolute http or https URL with a host; no user name or password in it."""
    if length := _length_fault(text, MAX_URL):
        return length
    # A backslash is a slash to some URL readers and a character to others: the two would see different hosts.
    if not _VISIBLE_ASCII.fullmatch(text) or "\\" in text:
        return "must be visible ASCII characters without backslash; percent-encode others"
    url = _URL.fullmatch(text)
    if url is None:
        return "must be an absolute http or https URL"
    if "@" in url["authority"]:
        # The URL is shown to every reader of the server; the token is not.
        return "must not carry a user name or password; use callbackAuthToken"
    return _authority_fault(url["authority"])


def _authority_fault(authority: str) -> str | None:
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None or not (_is_ipv6(parts["ipv6"]) if parts["ipv6"] else _is_host_name(parts["name"])):
        return "must name a host"
    if parts["port"] is not None and not 1 <= int(parts["port"]) <= _MAX_PORT:
        return f"must have a port between 1 and {_MAX_PORT}, or none"
    return None


def _is_host_name(name: str) -> bool:
    labels = name.removesuffix(".").split(".")
    return len(name) <= _MAX_HOST and all(_HOST_LABEL.fullmatch(label) for label in labels)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _length_fault(text: str, most: int) -> str | None:
    return None if 1 <= len(text) <= most else f"must be 1 to {most} characters"
