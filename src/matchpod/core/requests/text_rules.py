"""Validate texts from callers. Each `…_fault` function returns None for a valid text, or the fault of an invalid one.

Invalid text is rejected, never corrected, so that a caller does not learn from players that a name was changed.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
import unicodedata
from collections.abc import Iterable
from heapq import nlargest

from cs2_protocol.text import UNPRINTABLE, unprintable_in
from matchpod.core.faults import Fault, FaultCode

MAX_TEAM_NAME = 32
"""Maximum length of a team name. Longer names do not fit on the scoreboard."""

MAX_SAID = 128
"""Maximum length of a chat text for all players. The game shows about as many characters in a line."""

MAX_EXTERNAL_ID = 255
"""Maximum length of an external id: enough for a URL path or a compound key, and short enough for a database index."""

MAX_URL = 2048
"""Maximum length of a callback URL, as commonly supported by proxies and browsers."""

MAX_AUTH_TOKEN = 4096
"""Maximum length of a callback token: enough for a signed token. Headers are commonly limited to 8 KiB."""

MAX_PASSWORD = 32
"""Maximum length of a server password. The game compares only about as many characters of `sv_password`."""

MAX_REASON = 500
"""Maximum length of the reason of a ruling: a paragraph."""

MAX_PERSON = 100
"""Maximum length of the name of a person at the caller's platform."""

MAX_LABEL_NAME = 32
"""Maximum length of a label name."""

MAX_LABEL_VALUE = 64
"""Maximum length of a label value: enough for the name of an event or a UUID. Cards in the console show the values."""

MAX_QUOTED = 64
"""Maximum number of characters of a caller's text that an error message quotes: enough to identify the text."""

MAX_COMPARED = 10
"""Maximum number of known names that are fully compared with an unknown name: those with most of its letter pairs."""

PLAYER_ID = "7656119[0-9]{10}"
"""Pattern of a 64-bit player id."""

MAP = "[a-z0-9_]{1,64}|workshop/[0-9]{1,20}"
"""Pattern of a map name."""

LABEL_NAME = f"[A-Za-z0-9_.-]{{1,{MAX_LABEL_NAME}}}"
"""Pattern of a label name. It allows no colon, because a colon separates name and value in a filter."""

HEADER_VALUE = r"[!-~]([ \t!-~]*[!-~])?"
"""Pattern of a header value. It allows no whitespace at the ends, because receivers would strip it from the token."""

NO_CONTROL = r"^[^\u0000-\u001f\u007f-\u009f]+$"
"""Pattern of a text without control characters, for JSON Schemas."""

_INVISIBLE = UNPRINTABLE | {"Cn", "Co", "Mn", "Me", "Zs"}
"""Unicode categories that are invisible on their own, including spaces, unassigned characters and combining marks."""

_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols that are displayed as blank space: Hangul fillers, and the Braille pattern without dots."""

_FORBIDDEN_IN_TEAM_NAMES = frozenset('";\\%${}`')
"""Characters that would end or expand a console command. The match plugin executes team names unquoted."""

_PLAYER_ID = re.compile(PLAYER_ID)
_MAP = re.compile(MAP)
_LABEL_NAME = re.compile(LABEL_NAME)
_HEADER_VALUE = re.compile(HEADER_VALUE)
_VISIBLE_ASCII = re.compile(r"[!-~]+")
_URL = re.compile(r"(?i:https?)://(?P<authority>[^/?#]*)(?:[/?#].*)?")
_AUTHORITY = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?")
_HOST_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_MAX_HOST = 253
_MAX_PORT = 65535


def printable(text: str, *, at_most: int = MAX_QUOTED) -> str:
    """Return a caller's text in a form that is safe to quote in a message: short, printable and encodable."""
    cut = text if len(text) <= at_most else text[:at_most] + "…"
    if cut.isprintable():  # fast path for the common case
        return cut
    return "".join("\ufffd" if unicodedata.category(character) in UNPRINTABLE else character for character in cut)


def has_visible(text: str) -> bool:
    """True if the text has a visible character, so that people can see and click the text."""
    return any(unicodedata.category(character) not in _INVISIBLE and character not in _BLANK for character in text)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is closest to `name`, ignoring case; None if no known name is similar."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    folded = name[:MAX_QUOTED].casefold()[:MAX_QUOTED]
    # Cheap filters come first, because a full comparison with 500 known names takes 20 ms.
    # Two names are never similar if the ratio of their lengths exceeds 7 to 3.
    candidates = [other for other in by_folded if 7 * min(len(other), len(folded)) >= 3 * max(len(other), len(folded))]
    pairs = {folded[at : at + 2] for at in range(len(folded) - 1)}
    compared = nlargest(MAX_COMPARED, candidates, key=lambda other: (sum(map(other.__contains__, pairs)), -len(other)))
    close = difflib.get_close_matches(folded, compared, n=1)
    return by_folded[close[0]] if close else None


def team_name_fault(text: str) -> Fault | None:
    """Check a team name: 1 to 32 characters, no whitespace at the ends, no special characters of console commands."""
    return _console_text_fault(text, MAX_TEAM_NAME)


def _console_text_fault(text: str, max_length: int) -> Fault | None:
    if fault := _trimmed_fault(text, max_length):
        return fault
    forbidden = sorted(_FORBIDDEN_IN_TEAM_NAMES.intersection(text))
    if forbidden or "//" in text:
        return Fault(FaultCode.FORBIDDEN_TEXT, {"found": " ".join(forbidden) or "//"})
    return None


def said_text_fault(text: str) -> Fault | None:
    """Check a chat text for all players: the rules of a team name, but up to 128 characters."""
    return _console_text_fault(text, MAX_SAID)


def reason_fault(text: str) -> Fault | None:
    """Check a reason that is shown to people: no whitespace at the ends, no invisible characters that disguise it."""
    return _trimmed_fault(text, MAX_REASON)


def person_fault(text: str) -> Fault | None:
    """Check the name of a person at the caller's platform, by the same rules as a reason."""
    return _trimmed_fault(text, MAX_PERSON)


def label_name_fault(text: str) -> Fault | None:
    """Check a label name."""
    return None if _LABEL_NAME.fullmatch(text) else Fault(FaultCode.NOT_A_LABEL_NAME, {"maximum": MAX_LABEL_NAME})


def label_value_fault(text: str) -> Fault | None:
    """Check a label value: no whitespace at the ends, no invisible characters that could disguise it."""
    return _trimmed_fault(text, MAX_LABEL_VALUE)


def label_fault(text: str) -> Fault | None:
    """Check a label in a filter: its name, a colon and its value. The value may contain colons."""
    name, colon, value = text.partition(":")
    if not colon or label_name_fault(name):
        return Fault(FaultCode.NOT_A_LABEL, {"maximum": MAX_LABEL_NAME})
    return label_value_fault(value)


def player_id_fault(text: str) -> Fault | None:
    """Check a 64-bit player id in decimal."""
    return None if _PLAYER_ID.fullmatch(text) else Fault(FaultCode.NOT_A_PLAYER)


def map_fault(text: str) -> Fault | None:
    """Check a map name: a map of the game, or `workshop/` and a workshop item number."""
    return None if _MAP.fullmatch(text) else Fault(FaultCode.NOT_A_MAP)


def external_id_fault(text: str) -> Fault | None:
    """Check the caller's correlation id: 1 to 255 characters, no control characters."""
    if length := _length_fault(text, MAX_EXTERNAL_ID):
        return length
    # Format characters are allowed, because an external id is only compared and returned, never parsed.
    for character in text:
        if unicodedata.category(character) in ("Cc", "Cs"):
            return Fault(FaultCode.CONTROL_CHARACTER, {"found": f"U+{ord(character):04X}"})
    return None


def filter_fault(text: str, *, max_length: int) -> Fault | None:
    """Check a text that a list is filtered by. It need not be a valid value, but must be storable."""
    if length := _length_fault(text, max_length):
        return length
    for character in text:
        match unicodedata.category(character):
            case "Cc":
                return Fault(FaultCode.CONTROL_CHARACTER, {"found": f"U+{ord(character):04X}"})
            case "Cs":  # lone surrogates represent bytes that could not be decoded
                return Fault(FaultCode.NOT_UTF8)
    return None


def password_fault(text: str) -> Fault | None:
    """Check a server password: 1 to 32 characters without quotes, semicolons or control characters, not `none`."""
    if length := _length_fault(text, MAX_PASSWORD):
        return length
    if code := unprintable_in(text):
        return Fault(FaultCode.UNPRINTABLE, {"found": code})
    if forbidden := sorted(frozenset("\"';").intersection(text)):
        return Fault(FaultCode.QUOTE_OR_SEMICOLON, {"found": " ".join(forbidden)})
    if text.casefold() == "none":
        # The game engine treats `none` as no password.
        return Fault(FaultCode.PASSWORD_NONE)
    return None


def auth_token_fault(text: str) -> Fault | None:
    """Check a callback token, sent as a header value: visible ASCII, with whitespace only between characters."""
    if length := _length_fault(text, MAX_AUTH_TOKEN):
        return length
    if not _HEADER_VALUE.fullmatch(text):
        return Fault(FaultCode.NOT_A_HEADER_VALUE)
    return None


def callback_url_fault(text: str) -> Fault | None:
    """Check a callback URL: absolute, http or https, with a host and without user name or password."""
    if length := _length_fault(text, MAX_URL):
        return length
    # Some URL parsers treat a backslash as a slash and others do not, so they would see different hosts.
    if not _VISIBLE_ASCII.fullmatch(text) or "\\" in text:
        return Fault(FaultCode.NOT_URL_CHARACTERS)
    url = _URL.fullmatch(text)
    if url is None:
        return Fault(FaultCode.NOT_A_URL)
    if "@" in url["authority"]:
        # Reject credentials in the URL, because every caller who can read the server sees the URL.
        # The place for a secret is the callback token, which is never shown.
        return Fault(FaultCode.USER_IN_URL)
    return _authority_fault(url["authority"])


def _authority_fault(authority: str) -> Fault | None:
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None or not (_is_ipv6(parts["ipv6"]) if parts["ipv6"] else _is_host_name(parts["name"])):
        return Fault(FaultCode.INVALID_HOST)
    if parts["port"] is not None and not 1 <= int(parts["port"]) <= _MAX_PORT:
        return Fault(FaultCode.INVALID_PORT, {"maximum": _MAX_PORT})
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


def _length_fault(text: str, max_length: int) -> Fault | None:
    return None if 1 <= len(text) <= max_length else Fault(FaultCode.LENGTH, {"maximum": max_length})


def _trimmed_fault(text: str, max_length: int) -> Fault | None:
    """Check a text without whitespace at its ends and without unprintable characters."""
    if length := _length_fault(text, max_length):
        return length
    if text != text.strip():
        return Fault(FaultCode.OUTER_WHITESPACE)
    if code := unprintable_in(text):
        return Fault(FaultCode.UNPRINTABLE, {"found": code})
    return None
