"""Decode a JSON body, and limit the time that this takes: some bodies within the size limit would take a second."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Final

import msgspec

from matchpod.core.errors import InvalidParamsError

MAX_ITEMS: Final = 500
"""Maximum number of fields, array items, objects and arrays in a body, several times as many as in any valid body.
Decoding 160 KB of numbers would block all other requests for half a second."""

MAX_DIGITS: Final = 400
"""Maximum number of characters in a number. The largest float has 309 digits. The time to decode a number is quadratic
in its length."""

# An unterminated string matches up to the end of the body; otherwise every quote would cause a scan to the end.
_TOKEN: Final = re.compile(rb'[,\[{]|"(?:[^"\\]++|\\.)*+"?|[0-9][0-9.eE+-]*+', re.DOTALL)
# Matches only from the start of a run of digits, so that the search does not begin again at every digit.
_LONG_NUMBER: Final = re.compile(rb"(?<![0-9.eE+-])[0-9.eE+-]{%d}" % (MAX_DIGITS + 1))
_SEPARATORS: Final = frozenset(b",[{")
_TOKENS_OF_ITEM: Final = 3
"""Maximum number of tokens per item: a separator, a name and a value. A body with more tokens is malformed."""


NOT_JSON: Final = "The request body is not JSON."


def decode_json(body: bytes) -> object:
    """Return the decoded body. Raise InvalidParamsError if the body exceeds a limit or is not JSON."""
    if fault := json_size_fault(body):
        raise InvalidParamsError(f"The request body {fault}.")
    try:
        decoded: object = msgspec.json.decode(body)
    except (ValueError, RecursionError) as exc:  # ValueError: malformed, or not UTF-8
        raise InvalidParamsError(_not_json(body)) from exc
    return decoded


def _not_json(body: bytes) -> str:
    """Return what is wrong with a body that is not JSON, and where."""
    with suppress(RecursionError):
        try:
            # Decode again with `json`, because only its decoder reports an exact position. The size limits hold for it
            # too.
            json.loads(body.decode())
        except json.JSONDecodeError as exc:
            what = exc.msg[:1].lower() + exc.msg[1:].removesuffix(" at")
            return f"{NOT_JSON.removesuffix('.')}: {what} at line {exc.lineno}, column {exc.colno}."
        except UnicodeDecodeError as exc:
            return f"{NOT_JSON.removesuffix('.')}: byte {exc.start} is not UTF-8."
    return NOT_JSON


def json_size_fault(body: bytes) -> str | None:
    """Return the limit that a JSON body exceeds, as a phrase that follows "The request body"; None if it exceeds none.

    Malformed JSON is not a fault here: the decoder rejects it, and stops at the first error.
    """
    if len(body) <= MAX_ITEMS:
        return None
    # Fast path for most bodies. This count includes characters inside strings, so it can only be too high.
    if sum(map(body.count, (b",", b"[", b"{"))) <= MAX_ITEMS and _LONG_NUMBER.search(body) is None:
        return None
    items = 0
    for number, token in enumerate(_TOKEN.finditer(body)):
        first = body[token.start()]
        if first in _SEPARATORS:
            items += 1
            if items > MAX_ITEMS:
                return f"has more than {MAX_ITEMS} fields and items"
        elif first != ord('"') and token.end() - token.start() > MAX_DIGITS:
            return f"has a number with more than {MAX_DIGITS} digits"
        elif number > _TOKENS_OF_ITEM * MAX_ITEMS:
            break
    return None
