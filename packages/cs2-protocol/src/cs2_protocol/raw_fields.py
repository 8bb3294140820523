"""Read single fields of untrusted JSON without decoding the rest of the document.

Decoding a whole document creates a value for each of its numbers and strings, and takes seconds for 1 MiB of long
numbers. Here, fields are decoded when they are read, and all others are only skipped. A field with an unexpected type
counts as missing.
"""

from __future__ import annotations

import re

import msgspec

_INTEGER = re.compile(rb"-?[0-9]{1,20}")

_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode

_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)


class RawFields:
    """The fields of one object, undecoded."""

    def __init__(self, raw: dict[str, msgspec.Raw] | None = None) -> None:
        self._raw = raw or {}

    def __contains__(self, key: str) -> bool:
        return key in self._raw

    def text(self, key: str) -> str | None:
        """Return a string field; None if it is missing."""
        return _text(self._raw.get(key))

    def integer(self, key: str) -> int | None:
        """Return an integer field of up to 20 digits; None if it is missing."""
        raw = self._raw.get(key)
        return int(raw) if raw is not None and _INTEGER.fullmatch(raw) else None

    def text_or_integer(self, key: str) -> str | None:
        """Return a string field, or an integer field as a string; None if it is missing."""
        text = self.text(key)
        number = self.integer(key) if text is None else None
        return text if number is None else str(number)

    def is_true(self, key: str) -> bool:
        """True if the field is `true`."""
        return bytes(self._raw.get(key) or b"") == b"true"

    def fields(self, key: str) -> RawFields:
        """Return a field that is an object. If it is missing, return an object without fields."""
        return _fields(self._raw.get(key)) or RawFields()

    def items(self, key: str, limit: int) -> list[RawFields] | None:
        """Return the objects among the first `limit` items of a list; None if the field is not a list."""
        raw = self._raw.get(key)
        return None if raw is None else read_items(raw, limit)


def read_fields(body: bytes) -> RawFields | None:
    """Return the fields of a document; None if it is not an object. Raise ValueError if it is not JSON."""
    try:
        if body.lstrip()[:1] == b"{":
            return RawFields(_decode_object(body))
        msgspec.json.decode(body, type=msgspec.Raw)
    except _ERRORS as exc:
        raise ValueError(str(exc)) from exc
    return None


def read_items(raw: bytes | msgspec.Raw, limit: int) -> list[RawFields] | None:
    """Return the objects among the first `limit` items of a list; None if it is not a list."""
    try:
        listed = _decode_list(raw)[:limit]
    except _ERRORS:
        return None
    read = (_fields(item) for item in listed)
    return [fields for fields in read if fields is not None]


def _fields(raw: msgspec.Raw | None) -> RawFields | None:
    if raw is None or bytes(raw)[:1] != b"{":
        return None
    try:
        return RawFields(_decode_object(raw))
    except _ERRORS:
        return None


def _text(raw: msgspec.Raw | None) -> str | None:
    if raw is None or bytes(raw)[:1] != b'"':
        return None
    try:
        return _decode_text(raw)
    except _ERRORS:
        return None
