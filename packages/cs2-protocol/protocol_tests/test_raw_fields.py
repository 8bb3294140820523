"""Tests of single JSON fields: they equal those of a complete decoder; a field of another type is missing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.raw_fields import read_fields, read_items

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), values))
def test_fields_equal_those_of_a_complete_decoder(document: dict[str, object]) -> None:
    fields = read_fields(json.dumps(document).encode())
    assert fields is not None
    for key in "abcd":
        value = document.get(key)
        assert fields.text(key) == (value if isinstance(value, str) else None)
        assert fields.integer(key) == (value if type(value) is int else None)
        assert fields.is_true(key) is (value is True)
        assert (key in fields) is (key in document)
        items = fields.items(key, 2)
        assert (items is not None) is isinstance(value, list)
        if isinstance(value, list) and items is not None:
            assert len(items) == sum(isinstance(item, dict) for item in value[:2])
        if isinstance(value, dict):
            assert all(name in fields.fields(key) for name in value)


@pytest.mark.parametrize("body", [b"[1]", b'"x"', b"1", b"null", b" [] "])
def test_document_that_is_not_an_object_has_no_fields(body: bytes) -> None:
    assert read_fields(body) is None


@pytest.mark.parametrize("body", [b"", b"{", b"{]", b'{"a":1,}', b"[1", b"x", b"[" * 100_000, b'{"a":' * 100_000])
def test_invalid_json_is_rejected(body: bytes) -> None:
    with pytest.raises(ValueError):
        read_fields(body)


def test_string_or_integer_is_read_as_text() -> None:
    fields = read_fields(b'{"a": "7", "b": 7, "c": 7.0, "d": 123456789012345678901}')
    assert fields is not None
    assert [fields.text_or_integer(key) for key in "abcde"] == ["7", "7", None, None, None]


def test_items_beyond_the_limit_and_other_values_are_skipped() -> None:
    items = read_items(b'[{"a": 1}, 2, {"a": 3}, {"a": 4}]', 3)
    assert items is not None
    assert [item.integer("a") for item in items] == [1, 3]
    assert read_items(b"{}", 3) is None


def test_invalid_text_inside_valid_json_is_missing() -> None:
    fields = read_fields(b'{"a": "\xff", "b": 1}')
    assert fields is not None
    assert (fields.text("a"), fields.integer("b")) == (None, 1)
