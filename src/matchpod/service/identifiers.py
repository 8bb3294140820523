"""How are things named? Ids, tokens and request ids as pure functions: time and chance come in as arguments.

Ids that people sort carry their time in front: 48 bits of milliseconds, then 80 bits of chance, in Crockford's
base 32 (no I, L, O, U to misread). Their text sorts like their time.
"""

from __future__ import annotations

import base64

ID_RANDOM_BYTES = 10
"""80 bits: two ids of the same millisecond do not meet."""

TOKEN_RANDOM_BYTES = 32
"""A token is the only thing that guards an ingest address: 256 bits are not guessed."""

REQUEST_RANDOM_BYTES = 10
"""Request ids are looked up in logs for days; 80 bits are unique there."""

MATCH_NUMBER_BYTES = 4
MAX_MATCH_NUMBER = 2**31 - 1
"""The match plugin keeps the match id in a signed 32-bit number."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_BITS = 5
_TIME_BITS = 48
_ID_CHARACTERS = 26
_REQUEST_CHARACTERS = 16


def new_server_id(now_ms: int, random_bytes: bytes) -> str:
    """`srv_` and 26 characters that sort by time; takes 10 random bytes."""
    return f"srv_{_sortable(now_ms, random_bytes)}"


def new_callback_id(now_ms: int, random_bytes: bytes) -> str:
    """`msg_` and 26 characters that sort by time; takes 10 random bytes."""
    return f"msg_{_sortable(now_ms, random_bytes)}"


def new_request_id(random_bytes: bytes) -> str:
    """`req_` and 16 characters; takes 10 random bytes."""
    chance = _number(random_bytes, REQUEST_RANDOM_BYTES)
    return f"req_{_base32(chance, _REQUEST_CHARACTERS)}"


def new_token(random_bytes: bytes) -> str:
    """43 characters that fit a URL path and a header; takes 32 random bytes."""
    _number(random_bytes, TOKEN_RANDOM_BYTES)
    return base64.urlsafe_b64encode(random_bytes).rstrip(b"=").decode()


def new_plugin_match_id(random_bytes: bytes) -> int:
    """A whole number from 1 to 2**31 - 1; takes 4 random bytes."""
    return _number(random_bytes, MATCH_NUMBER_BYTES) % MAX_MATCH_NUMBER + 1


def _sortable(now_ms: int, random_bytes: bytes) -> str:
    if not 0 <= now_ms < 1 << _TIME_BITS:
        raise ValueError(f"a time of {now_ms} ms does not fit an id")
    chance = _number(random_bytes, ID_RANDOM_BYTES)
    return _base32(now_ms << (8 * ID_RANDOM_BYTES) | chance, _ID_CHARACTERS)


def _number(random_bytes: bytes, size: int) -> int:
    # Fewer bytes than promised would quietly make guessable names.
    if len(random_bytes) != size:
        raise ValueError(f"{size} random bytes are needed, {len(random_bytes)} were given")
    return int.from_bytes(random_bytes)


def _base32(number: int, characters: int) -> str:
    """The number in so many characters, an even count; two at a time, since every request gets an id."""
    shifts = range((characters - 2) * _BITS, -1, -2 * _BITS)
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in shifts])
