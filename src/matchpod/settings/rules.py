"""Define the rules that parse setting values. Each rule also describes the values that it accepts.

Numbers and lists are text in the environment, and TOML values in the file. A rule accepts both.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar, overload
from urllib.parse import parse_qs, urlsplit

import msgspec

from cs2_protocol.text import unprintable_in
from matchpod.core.requests.text_rules import callback_url_fault
from matchpod.settings.secret import Secret

KEY_BYTES = 32
"""Size in bytes of an encryption key."""

MAX_TEXT = 4096
"""Maximum length of a text; no path, URL or command argument needs more."""

MAX_PORT = 65535

PLACEHOLDERS = (
    *("python", "ip", "port", "tv_port", "map", "game_type", "game_mode", "cfg", "game", "rcon_password", "players"),
    *("speed", "server_id"),
)
"""Placeholders (names in braces) that the arguments of a fleet's command may contain."""

REQUIRED_PLACEHOLDERS = ("port",)
"""Placeholders that a command must contain. Each server needs its own port."""

_WHOLE = re.compile(r"-?[0-9]{1,15}")
_HOST_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_PORTS = re.compile(r"([0-9]{1,5})-([0-9]{1,5})")
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9.-]{1,253}):([0-9]{1,5})")
_IP_LIKE = re.compile(r"(?:.*\.)?[0-9]+")
"""Matches hosts that end in a number. They are IPv4 addresses or typing errors."""
_GAME_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_CODE = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")
_ADDON = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_STEAM_TOKEN = re.compile(r"[0-9A-Za-z]{8,64}")
_ORIGIN = re.compile(r"\*|https?://([a-z0-9.-]{1,253}|\[[0-9a-f:.]{2,45}\])(:[0-9]{1,5})?")
_KUBERNETES_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_LABEL_KEY = re.compile(r"(?:[a-z0-9][a-z0-9.-]{0,252}/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_ADDRESS_TYPES = ("ExternalIP", "ExternalDNS", "InternalIP", "InternalDNS", "Hostname", "PodIP")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}\$?")


T = TypeVar("T")


class Rule(msgspec.Struct, Generic[T], frozen=True):
    """A rule for a setting. `read` returns the value or raises ValueError; `allowed` completes "it must be …"."""

    allowed: str
    read: Callable[[object], T]


@overload
def whole_number(minimum: int, maximum: int) -> Rule[int]: ...
@overload
def whole_number(minimum: int, maximum: int, *, off: str) -> Rule[int | None]: ...
def whole_number(minimum: int, maximum: int, *, off: str | None = None) -> Rule[int] | Rule[int | None]:
    """Accept a whole number. If `off` is given, this text is also accepted, and read as None."""

    def read(value: object) -> int | None:
        if off is not None and value == off:
            return None
        if isinstance(value, str) and _WHOLE.fullmatch(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise ValueError
        return value

    return Rule(f"{off} or " * (off is not None) + f"a whole number from {minimum} to {maximum}", read)


def number(minimum: float, maximum: float) -> Rule[float]:
    """Accept a number with or without a fraction."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError
        if not minimum <= value <= maximum:
            raise ValueError
        return float(value)

    return Rule(f"a number from {minimum:g} to {maximum:g}", read)


def one_of(*choices: str) -> Rule[str]:
    """Accept the texts in `choices`."""

    def read(value: object) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    return Rule(f"{', '.join(choices[:-1])} or {choices[-1]}", read)


def flag(yes: str, no: str) -> Rule[bool]:
    """Accept the texts `yes` and `no`, which are read as True and False."""
    choice = one_of(yes, no)
    return Rule(choice.allowed, lambda value: choice.read(value) == yes)


def boolean() -> Rule[bool]:
    """Accept `true` and `false` as TOML booleans."""

    def read(value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError
        return value

    return Rule("true or false", read)


def text(max_length: int = 64) -> Rule[str]:
    """Accept a line of visible characters."""
    return Rule(f"1 to {max_length} visible characters", lambda value: _text(value, max_length))


def path() -> Rule[Path]:
    """Accept a path. A relative path starts at the working directory of the service."""
    return Rule("a path", lambda value: Path(_text(value, MAX_TEXT)))


def host() -> Rule[str]:
    """Accept an IP address or a host name."""
    return Rule("an IP address or a host name", lambda value: _host(_text(value, MAX_TEXT)))


def ip_address() -> Rule[str]:
    """Accept an IPv4 address. The game does not support IPv6. Players see the address unchanged."""
    return Rule("an IPv4 address", lambda value: str(ipaddress.IPv4Address(_text(value, MAX_TEXT))))


def web_url() -> Rule[str]:
    """Accept an absolute http or https URL without user name, query and fragment.

    The scheme is converted to lower case, and a trailing slash is removed.
    """

    def read(value: object) -> str:
        url = _text(value, MAX_TEXT)
        if callback_url_fault(url) or "?" in url or "#" in url:
            raise ValueError
        scheme, _, rest = url.partition(":")
        return f"{scheme.lower()}:{rest.rstrip('/')}"

    return Rule("an http:// or https:// URL without user name, query and fragment", read)


def proxy_url() -> Rule[Secret]:
    """Accept the URL of an HTTP proxy, which may contain a password."""

    def read(value: object) -> Secret:
        url = _text(value, MAX_TEXT)
        parts = urlsplit(url)
        is_bare = parts.path in ("", "/") and not parts.query and not parts.fragment
        if parts.scheme != "http" or not is_bare or parts.port == 0:  # reading an invalid port raises ValueError
            raise ValueError
        _host(parts.hostname or "")
        return Secret(url)

    return Rule("a URL like http://proxy.example:3128 or http://user:password@proxy.example:3128", read)


def postgres_url() -> Rule[Secret]:
    """Accept a PostgreSQL URL, which may contain a password."""

    def read(value: object) -> Secret:
        url = _text(value, MAX_TEXT)
        parts = urlsplit(url)
        # A URL may have no host: the query has the host instead, or the driver uses the local socket.
        if parts.scheme not in ("postgresql", "postgres") or not url.startswith(f"{parts.scheme}://"):
            raise ValueError
        hosts = parts.netloc.rpartition("@")[2].split(",")
        for host in hosts:
            _ = urlsplit(f"//{host}").port  # raises ValueError if the port is not a number or too large
        if len(hosts) > 1 and not all(hosts):
            raise ValueError
        return Secret(url)

    return Rule("a URL like postgresql://user:password@host:5432/name, with one or more hosts", read)


def storage_url() -> Rule[str]:
    """Accept a folder, or a bucket of an S3 service."""

    def read(value: object) -> str:
        url = _text(value, MAX_TEXT)
        parts = urlsplit(url)
        if parts.fragment or parts.username or parts.password:
            raise ValueError
        if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/") and not parts.query:
            return url
        options = parse_qs(parts.query, strict_parsing=True) if parts.query else {}
        if parts.scheme != "s3" or not set(options) <= {"endpoint", "region"}:
            raise ValueError
        _matching(_BUCKET, parts.netloc)
        if "endpoint" in options:
            web_url().read(options["endpoint"][0])
        return url

    return Rule("a URL like file:///srv/demos or s3://bucket/folder?endpoint=https://s3.example&region=eu-1", read)


def keys() -> Rule[Secret]:
    """Accept one or more keys of 32 bytes in standard or URL-safe base64, separated by commas."""

    def read(value: object) -> Secret:
        given = _text(value, MAX_TEXT).strip()
        for part in given.split(","):
            try:
                plain = base64.b64decode(part.strip().replace("-", "+").replace("_", "/"), validate=True)
            except binascii.Error as exc:
                raise ValueError from exc
            if len(plain) != KEY_BYTES:
                raise ValueError
        return Secret(given)

    return Rule(f"{KEY_BYTES} bytes in base64, or several such keys separated by commas", read)


def password() -> Rule[Secret]:
    """Accept a console password. It must fit into one quoted argument."""

    def read(value: object) -> Secret:
        given = _text(value, 128)
        if '"' in given:
            raise ValueError
        return Secret(given)

    return Rule("1 to 128 visible characters without double quotes", read)


def region_code() -> Rule[str]:
    """Accept the code of a region, by which callers choose the region."""
    return Rule("1 to 32 of a-z 0-9 and -, not beginning with -", lambda value: _matching(_CODE, value)[0])


def port_range() -> Rule[tuple[int, ...]]:
    """Accept a range of ports; both ends are included."""

    def read(value: object) -> tuple[int, ...]:
        found = _matching(_PORTS, value)
        first, last = int(found[1]), int(found[2])
        if not 1 <= first <= last <= MAX_PORT:
            raise ValueError
        return tuple(range(first, last + 1))

    return Rule(f'two ports separated by a dash, like "27100-27199", from 1 to {MAX_PORT}', read)


def address() -> Rule[str]:
    """Accept the IP address or host name of a game server with its port."""

    def read(value: object) -> str:
        found = _matching(_ADDRESS, value)
        host, port = found[1], int(found[2])
        if not 1 <= port <= MAX_PORT:
            raise ValueError
        if host.startswith("["):
            return f"[{ipaddress.IPv6Address(host[1:-1])}]:{port}"
        if _IP_LIKE.fullmatch(host):
            return f"{ipaddress.IPv4Address(host)}:{port}"
        return f"{_matching(_GAME_HOST, host.lower())[0]}:{port}"

    samples = '"203.0.113.7:27015", "[2001:db8::7]:27015" or "cs1.example.org:27015"'
    return Rule(f"an address and a port, like {samples}", read)


def names() -> Rule[tuple[str, ...]]:
    """Accept names of console variables."""
    allowed = "names of console variables, separated by commas"
    return Rule(allowed, lambda value: tuple(_matching(_VARIABLE, name)[0] for name in _parts(value)))


def origins() -> Rule[tuple[str, ...]]:
    """Accept origins of web pages; default ports are removed."""

    def read(value: object) -> tuple[str, ...]:
        return tuple(_without_default_port(_matching(_ORIGIN, origin)[0]) for origin in _parts(value))

    return Rule("* or origins such as https://cup.example, separated by commas", read)


def networks() -> Rule[tuple[str, ...]]:
    """Accept addresses and networks, except the whole internet, which can only be a mistake."""

    def read(value: object) -> tuple[str, ...]:
        if value == "off":
            return ()
        found = [ipaddress.ip_network(_text(part, MAX_TEXT)) for part in _parts(value)]
        if not all(network.prefixlen for network in found):
            raise ValueError
        return tuple(map(str, found))

    return Rule("off, or addresses and networks such as 10.0.0.0/8, separated by commas", read)


def command() -> Rule[tuple[str, ...]]:
    """Accept a program and its arguments, which may contain placeholders in braces."""

    def read(value: object) -> tuple[str, ...]:
        arguments = tuple(_text(argument, MAX_TEXT) for argument in _sequence(value))
        used = {name for argument in arguments for name in _PLACEHOLDER.findall(argument)}
        if not set(REQUIRED_PLACEHOLDERS) <= used <= set(PLACEHOLDERS):
            raise ValueError
        return arguments

    required, known = (" ".join(f"{{{name}}}" for name in names) for names in (REQUIRED_PLACEHOLDERS, PLACEHOLDERS))
    return Rule(f"a list of arguments that contains {required} and no other placeholders than {known}", read)


def steam_tokens() -> Rule[tuple[Secret, ...]]:
    """Accept Steam login tokens of game servers."""
    allowed = "a list of tokens of 8 to 64 letters and digits"
    return Rule(allowed, lambda value: tuple(Secret(_matching(_STEAM_TOKEN, token)[0]) for token in _sequence(value)))


def addons() -> Rule[tuple[str, ...]]:
    """Accept names of addons: folders in the game's `addons`, or in the plugins of CounterStrikeSharp."""
    return Rule(
        'a list of names, like ["metamod", "MatchZy"]',
        lambda value: tuple(_matching(_ADDON, name)[0] for name in _sequence(value)),
    )


def user() -> Rule[str]:
    """Accept the name or number of a user of this machine."""

    def read(value: object) -> str:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            value = str(value)
        return _matching(_USER, value)[0]

    return Rule("the name or number of a user", read)


def kubernetes_name() -> Rule[str]:
    return Rule("1 to 63 of a-z 0-9 and -", lambda value: _matching(_KUBERNETES_NAME, value)[0])


def labels() -> Rule[Mapping[str, str]]:
    """Accept labels of Kubernetes objects."""

    def read(value: object) -> Mapping[str, str]:
        if not isinstance(value, dict):
            raise ValueError
        return {_matching(_LABEL_KEY, key)[0]: _matching(_LABEL_VALUE, content)[0] for key, content in value.items()}

    return Rule('a table of labels, like { tier = "a" }', read)


def address_types() -> Rule[tuple[str, ...]]:
    """Accept types of node addresses, the preferred type first."""

    def read(value: object) -> tuple[str, ...]:
        found = tuple(map(str, _parts(value)))
        if not set(found) <= set(_ADDRESS_TYPES):
            raise ValueError
        return found

    return Rule(f"some of {', '.join(_ADDRESS_TYPES)}, separated by commas", read)


def variables() -> Rule[Mapping[str, str]]:
    """Accept environment variables for game servers."""

    def read(value: object) -> Mapping[str, str]:
        if not isinstance(value, dict):
            raise ValueError
        for name, content in value.items():
            _matching(_VARIABLE, name)
            if not isinstance(content, str) or "\0" in content:
                raise ValueError
        return dict(value)

    return Rule('a table of strings, like { HOME = "/srv/cs2" }', read)


def _text(value: object, max_length: int) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= max_length or not value.strip() or unprintable_in(value):
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


def _parts(value: object) -> Sequence[object]:
    """Return the items of a list, or of a text (from the environment) with commas between the items."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else _sequence(value)


def _without_default_port(origin: str) -> str:
    """Return an origin as browsers send it: without its default port."""
    return origin.removesuffix(":443" if origin.startswith("https:") else ":80")


def _host(given: str) -> str:
    try:
        return str(ipaddress.ip_address(given))
    except ValueError:
        # If the last label has only digits, the host is a mistyped IP address: no top-level domain has only digits.
        labels = given.removesuffix(".").split(".")
        if len(given) > 253 or not all(map(_HOST_LABEL.fullmatch, labels)) or labels[-1].isdigit():
            raise
        return given
