"""Which values may a setting have? A rule reads a value of the environment or the file, and says what it allows.

Numbers and lists are text in the environment and TOML values in the file; a rule takes both.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from matchpod.core.text_rules import callback_url_fault, unprintable_in
from matchpod.settings.values import Secret

KEY_BYTES = 32
"""What the cipher takes."""

MAX_TEXT = 4096
"""No path, URL or word of a command needs more."""

MAX_PORT = 65535

PLACEHOLDERS = ("python", "ip", "port", "map", "game_type", "game_mode", "rcon_password", "players", "speed")
"""What a word of a fleet's command may ask for, in braces."""

NEEDED_PLACEHOLDERS = ("port", "rcon_password")
"""Both are new for each server: a command that ignores one starts a server that nobody can reach."""

_WHOLE = re.compile(r"-?[0-9]{1,15}")
_HOST_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_PORTS = re.compile(r"([0-9]{1,5})-([0-9]{1,5})")
_ADDRESS = re.compile(r"([0-9.]+):([0-9]{1,5})")
_CODE = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")


class Rule(msgspec.Struct, frozen=True):
    """`read` answers the value or raises ValueError; `allowed` follows the words "it must be"."""

    allowed: str
    read: Callable[[object], object]


def whole_number(least: int, most: int, *, off: str | None = None) -> Rule:
    """A whole number, or the word `off` for None."""

    def read(value: object) -> int | None:
        if off is not None and value == off:
            return None
        if isinstance(value, str) and _WHOLE.fullmatch(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError
        return value

    return Rule(f"{off} or " * (off is not None) + f"a whole number from {least} to {most}", read)


def number(least: float, most: float) -> Rule:
    """A number with or without a fraction."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError
        if not least <= value <= most:
            raise ValueError
        return float(value)

    return Rule(f"a number from {least:g} to {most:g}", read)


def one_of(*words: str) -> Rule:
    """One word of a few."""

    def read(value: object) -> str:
        if value not in words:
            raise ValueError
        return str(value)

    return Rule(f"{', '.join(words[:-1])} or {words[-1]}", read)


def flag(yes: str, no: str) -> Rule:
    """One of two words that stand for True and False."""
    words = one_of(yes, no)
    return Rule(words.allowed, lambda value: words.read(value) == yes)


def truth() -> Rule:
    """`true` or `false` of the file."""

    def read(value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError
        return value

    return Rule("true or false", read)


def text(most: int = 64) -> Rule:
    """A line of visible text."""
    return Rule(f"1 to {most} visible characters", lambda value: _text(value, most))


def path() -> Rule:
    """A path; a relative one counts from the folder the service is started in."""
    return Rule("a path", lambda value: Path(_text(value, MAX_TEXT)))


def host() -> Rule:
    """An IP address or a host name."""
    return Rule("an IP address or a host name", lambda value: _host(_text(value, MAX_TEXT)))


def ip_address() -> Rule:
    """An IPv4 address: the game speaks nothing else, and players are shown it as it is."""
    return Rule("an IPv4 address", lambda value: str(ipaddress.IPv4Address(_text(value, MAX_TEXT))))


def web_url() -> Rule:
    """An absolute http or https address without query; a slash at its end is dropped."""

    def read(value: object) -> str:
        url = _text(value, MAX_TEXT)
        if callback_url_fault(url) or "?" in url or "#" in url:
            raise ValueError
        return url.rstrip("/")

    return Rule("an http:// or https:// URL without user name, query and fragment", read)


def postgres_url() -> Rule:
    """A PostgreSQL address; it may carry a password."""

    def read(value: object) -> Secret:
        url = _text(value, MAX_TEXT)
        parts = urlsplit(url)
        # No host is fine: it may stand in the query, or the driver takes the local socket.
        if parts.scheme not in ("postgresql", "postgres") or not url.startswith(f"{parts.scheme}://"):
            raise ValueError
        _ = parts.port  # raises ValueError when it is no number or too large
        return Secret(url)

    return Rule("a URL like postgresql://user:password@host:5432/name", read)


def key() -> Rule:
    """32 bytes in base64, of either alphabet."""

    def read(value: object) -> Secret:
        given = _text(value, MAX_TEXT).strip()
        try:
            plain = base64.b64decode(given.replace("-", "+").replace("_", "/"), validate=True)
        except binascii.Error as exc:
            raise ValueError from exc
        if len(plain) != KEY_BYTES:
            raise ValueError
        return Secret(given)

    return Rule(f"{KEY_BYTES} bytes in base64", read)


def password() -> Rule:
    """A console password: what can be sent in one quoted word."""

    def read(value: object) -> Secret:
        given = _text(value, 128)
        if '"' in given:
            raise ValueError
        return Secret(given)

    return Rule("1 to 128 visible characters without double quotes", read)


def region_code() -> Rule:
    """What callers write to choose a region."""
    return Rule("1 to 32 of a-z 0-9 and -, not beginning with -", lambda value: _matching(_CODE, value)[0])


def port_range() -> Rule:
    """Ports from first to last."""

    def read(value: object) -> tuple[int, ...]:
        found = _matching(_PORTS, value)
        first, last = int(found[1]), int(found[2])
        if not 1 <= first <= last <= MAX_PORT:
            raise ValueError
        return tuple(range(first, last + 1))

    return Rule(f'two ports with a dash between them, like "27100-27199", from 1 to {MAX_PORT}', read)


def address() -> Rule:
    """IPv4 address and port of a game server."""

    def read(value: object) -> tuple[str, int]:
        found = _matching(_ADDRESS, value)
        port = int(found[2])
        if not 1 <= port <= MAX_PORT:
            raise ValueError
        return str(ipaddress.IPv4Address(found[1])), port

    return Rule('an IPv4 address and a port, like "203.0.113.7:27015"', read)


def names() -> Rule:
    """Names of console variables: a list in the file, separated by commas in the environment."""

    def read(value: object) -> tuple[str, ...]:
        if isinstance(value, str):
            value = [name.strip() for name in value.split(",")]
        return tuple(_matching(_VARIABLE, name)[0] for name in _sequence(value))

    return Rule("names of console variables, separated by commas", read)


def command() -> Rule:
    """A program and its words, with placeholders in braces."""

    def read(value: object) -> tuple[str, ...]:
        words = tuple(_text(word, MAX_TEXT) for word in _sequence(value))
        asked = {name for word in words for name in _PLACEHOLDER.findall(word)}
        if not set(NEEDED_PLACEHOLDERS) <= asked <= set(PLACEHOLDERS):
            raise ValueError
        return words

    needed, known = (" ".join(f"{{{name}}}" for name in some) for some in (NEEDED_PLACEHOLDERS, PLACEHOLDERS))
    return Rule(f"a list of words with the placeholders {needed} and no others than {known}", read)


def variables() -> Rule:
    """Variables of the environment a game server is started with."""

    def read(value: object) -> Mapping[str, str]:
        if not isinstance(value, dict):
            raise ValueError
        for name, content in value.items():
            _matching(_VARIABLE, name)
            if not isinstance(content, str) or "\0" in content:
                raise ValueError
        return dict(value)

    return Rule('a table of texts, like { HOME = "/srv/cs2" }', read)


def _text(value: object, most: int) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= most or not value.strip() or unprintable_in(value):
        raise ValueError
    return value


def _matching(pattern: re.Pattern[str], value: object) -> re.Match[str]:
    found = pattern.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError
    return found


def _sequence(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise ValueError
    return value


def _host(given: str) -> str:
    try:
        return str(ipaddress.ip_address(given))
    except ValueError:
        # A last part of digits only is a mistyped address: no top-level domain looks like that.
        labels = given.removesuffix(".").split(".")
        if len(given) > 253 or not all(map(_HOST_LABEL.fullmatch, labels)) or labels[-1].isdigit():
            raise
        return given
