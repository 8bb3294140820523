"""Decode a JSON body within limits of what that costs: a body within the size limit could take a second."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Final

import msgspec

from matchpod.core.errors import InvalidParamsError

MAX_ITEMS: Final = 500
"""Most fields, array items, objects and arrays of a body, several times what a valid one can have. Decoding 160 KB of
numbers would take half a second, in which no other request is served."""

MAX_DIGITS: Final = 400
"""Most characters of a number: the largest float has 309 digits. The cost of a number is quadratic in its length."""

# A string without its end matches to the end of the body: otherwise every quote in it would be searched that far.
_TOKEN: Final = re.compile(rb'[,\[{]|"(?:[^"\\]++|\\.)*+"?|[0-9][0-9.eE+-]*+', re.DOTALL)
# Searched from the start of each run only: otherwise every character of a long run would be one.
_LONG_NUMBER: Final = re.compile(rb"(?<![0-9.eE+-])[0-9.eE+-]{%d}" % (MAX_DIGITS + 1))
_SEPARATORS: Final = frozenset(b",[{")
_TOKENS_OF_ITEM: Final = 3
"""A separator, a name and a value. A body with more tokens than that is malformed."""


NOT_JSON: Final = "The request body is not JSON."


def decode_json(body: bytes) -> object:
    """Return the decoded body; InvalidParamsError if it exceeds a limit or is not JSON."""
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
            # Only of this decoder the position is exact. It stops at the first mistake too, so the limits hold for it.
            json.loads(body.decode())
        except json.JSONDecodeError as exc:
            what = exc.msg[:1].lower() + exc.msg[1:].removesuffix(" at")
            return f"{NOT_JSON.removesuffix('.')}: {what} at line {exc.lineno}, column {exc.colno}."
        except UnicodeDecodeError as exc:
            return f"{NOT_JSON.removesuffix('.')}: byte {exc.start} is not UTF-8."
    return NOT_JSON


def json_size_fault(body: bytes) -> str | None:
    """Return the limit that a JSON body exceeds, as a phrase that follows "The request body", or None.

    Malformed JSON is not a fault here: decoding it stops at the first mistake.
    """
    if len(body) <= MAX_ITEMS:
        return None
    # Most bodies, counted with what is inside of strings.
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
