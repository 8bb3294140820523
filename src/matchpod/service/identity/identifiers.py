"""Generate ids and tokens with pure functions, from a time and random bytes or from the ids of a match.

Server and callback ids are 48 bits of milliseconds followed by 80 random bits, in Crockford's base 32 (without I, L, O
and U, which are easily misread). They sort by time. Ids of series and maps are derived from those of their match, so
that writing them again changes nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from typing import Final

ID_RANDOM_BYTES = 10
"""Number of random bytes in an id: 80 bits, so that two ids of the same millisecond do not collide."""

TOKEN_RANDOM_BYTES = 32
"""Number of random bytes in a token. A token is the only protection of an ingest URL; 256 bits cannot be guessed."""

REQUEST_RANDOM_BYTES = 8
"""Number of random bytes in a request id: 64 bits, so that the id is unique in the logs that operators search for
it."""

MATCH_NUMBER_BYTES = 4
MAX_MATCH_NUMBER = 2**31 - 1
"""Maximum id of a match for the match plugin, which stores it in a signed 32-bit integer."""

_CHECK: Final = "chk_"

_SHORT: Final = 6
"""Number of characters of the server id in a server's name. They are enough to distinguish the servers of a day."""

_KEPT: Final = 4096
"""Maximum number of cached map ids, enough for a thousand series. They are cached because every write needs them."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_BITS = 5
_TIME_BITS = 48
_ID_CHARACTERS = 26


def new_server_id(now_ms: int, random_bytes: bytes) -> str:
    """Return `srv_` and 26 characters that sort by time. `random_bytes` must be 10 bytes."""
    return f"srv_{_sortable(now_ms, random_bytes)}"


def new_callback_id(now_ms: int, random_bytes: bytes) -> str:
    """Return `msg_` and 26 characters that sort by time. `random_bytes` must be 10 bytes."""
    return f"msg_{_sortable(now_ms, random_bytes)}"


def new_action_id(now_ms: int, random_bytes: bytes) -> str:
    """Return `action_` and 26 characters that sort by time. `random_bytes` must be 10 bytes."""
    return f"action_{_sortable(now_ms, random_bytes)}"


def new_audit_id(now_ms: int, random_bytes: bytes) -> str:
    """Return `act_` and 26 characters that sort by time. `random_bytes` must be 10 bytes."""
    return f"act_{_sortable(now_ms, random_bytes)}"


def new_webhook_id(now_ms: int, random_bytes: bytes) -> str:
    """Return `wh_` and 26 characters that sort by time. `random_bytes` must be 10 bytes."""
    return f"wh_{_sortable(now_ms, random_bytes)}"


def new_ruling_id(now_ms: int, random_bytes: bytes) -> str:
    """Return `rul_` and 26 characters that sort by time. `random_bytes` must be 10 bytes."""
    return f"rul_{_sortable(now_ms, random_bytes)}"


def new_check_id(now_ms: int, random_bytes: bytes) -> str:
    """Return `chk_` and 26 characters that sort by time. `random_bytes` must be 10 bytes."""
    return f"{_CHECK}{_sortable(now_ms, random_bytes)}"


def is_check_id(text: str) -> bool:
    """True if the text has the prefix of a check id."""
    return text.startswith(_CHECK)


def new_request_id(random_bytes: bytes) -> str:
    """Return `req_` and 8 random bytes in hex. Hex is fast, and every request gets an id."""
    if len(random_bytes) != REQUEST_RANDOM_BYTES:
        raise ValueError(f"expected {REQUEST_RANDOM_BYTES} random bytes, got {len(random_bytes)}")
    return f"req_{random_bytes.hex()}"


def new_token(random_bytes: bytes) -> str:
    """Return 43 characters that are valid in a URL path and in a header. `random_bytes` must be 32 bytes."""
    _number(random_bytes, TOKEN_RANDOM_BYTES)
    return base64.urlsafe_b64encode(random_bytes).rstrip(b"=").decode()


def is_token(text: str) -> bool:
    """True if the text has the format of a token from `new_token`."""
    return _TOKEN.fullmatch(text) is not None


def new_plugin_match_id(random_bytes: bytes) -> int:
    """Return an integer from 1 to 2**31 - 1. `random_bytes` must be 4 bytes."""
    return _number(random_bytes, MATCH_NUMBER_BYTES) % MAX_MATCH_NUMBER + 1


@lru_cache(_KEPT)
def map_id(game_id: str, number: int) -> str:
    """Return the UUID of a map, derived from the id of its match and its number in the series."""
    return _uuid5(game_id, f"map {number}")


def series_uuid(game_id: str) -> str:
    return _uuid5(game_id, "series")


def series_id(server_id: str) -> str:
    """Return `ser_` and the server id without its prefix. Series ids sort by time, as server ids do."""
    return f"ser_{server_id.removeprefix('srv_')}"


def server_name(region_name: str, server_id: str) -> str:
    return f"{region_name} {server_id[-_SHORT:]}"


def _sortable(now_ms: int, random_bytes: bytes) -> str:
    if not 0 <= now_ms < 1 << _TIME_BITS:
        raise ValueError(f"a time of {now_ms} ms does not fit into an id")
    number = _number(random_bytes, ID_RANDOM_BYTES)
    return _base32(now_ms << (8 * ID_RANDOM_BYTES) | number, _ID_CHARACTERS)


def _number(random_bytes: bytes, size: int) -> int:
    # Without this check, ids and tokens from too few random bytes could be guessed.
    if len(random_bytes) != size:
        raise ValueError(f"expected {size} random bytes, got {len(random_bytes)}")
    return int.from_bytes(random_bytes)


def _base32(number: int, characters: int) -> str:
    """Encode a number, two characters at a time for speed. The number of characters must be even."""
    shifts = range((characters - 2) * _BITS, -1, -2 * _BITS)
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in shifts])


def _uuid5(namespace: str, name: str) -> str:
    """Return the same as `uuid.uuid5` in a third of the time, because each match needs several of these ids."""
    space = bytes.fromhex(namespace.replace("-", ""))
    digest = bytearray(hashlib.sha1(space + name.encode(), usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
