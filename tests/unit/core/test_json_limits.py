from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.json_limits import MAX_DIGITS, MAX_ITEMS, json_size_fault

SIZE = 250_000
TOO_MANY = f"has more than {MAX_ITEMS} fields and items"
TOO_LONG = f"has a number with more than {MAX_DIGITS} digits"


@pytest.mark.parametrize("count", [MAX_ITEMS - 1, MAX_ITEMS])
@pytest.mark.parametrize("item", [b"1", b'"a,b"', b'"[{,\\",{["', b"null", b"-1.5e-10"])
def test_items_are_counted_outside_of_strings(item: bytes, count: int) -> None:
    array = b"[" + b",".join([item] * count) + b"]"
    assert json_size_fault(array) is None
    assert json_size_fault(array[:-1] + b"," + item + b"," + item + b"]") == TOO_MANY


@pytest.mark.parametrize("nested", [b"[", b'{"a":', b'[1,{"b":'])
def test_objects_and_arrays_count_as_items(nested: bytes) -> None:
    assert json_size_fault(nested * (MAX_ITEMS // 3)) is None
    assert json_size_fault(nested * (MAX_ITEMS + 1)) == TOO_MANY


@pytest.mark.parametrize("sign", [b"", b"-"])
def test_number_has_a_greatest_length(sign: bytes) -> None:
    fill = b" " * MAX_ITEMS
    assert json_size_fault(fill + sign + b"9" * MAX_DIGITS) is None
    assert json_size_fault(fill + sign + b"9" * (MAX_DIGITS + 1)) == TOO_LONG
    assert json_size_fault(fill + sign + b"0." + b"0" * MAX_DIGITS) == TOO_LONG
    assert json_size_fault(fill + b'"' + b"9" * (MAX_DIGITS + 1) + b'"') is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(json_values, st.sampled_from([0, 2]))
def test_small_values_are_accepted_however_they_are_written(value: object, indent: int) -> None:
    body = msgspec.json.format(msgspec.json.encode(value), indent=indent)
    assert json_size_fault(b" " * MAX_ITEMS + body) is None


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":"' + b'\\",' * (SIZE // 3),  # each quote could begin a string that has no end
        b'"\\' * (SIZE // 2) + b"," * MAX_ITEMS,
        b'"' * SIZE,
        b'"a" ' * (SIZE // 4),
        b"1 " * (SIZE // 2),
        (b"9" * MAX_DIGITS + b" ") * (SIZE // MAX_DIGITS),
        b" " * SIZE,
        b"\\" * SIZE,
    ],
    ids=["string without an end", "escapes", "quotes", "strings", "numbers", "long numbers", "spaces", "backslashes"],
)
def test_large_body_is_checked_in_no_time(body: bytes) -> None:
    began_s = time.thread_time()
    json_size_fault(body)
    assert time.thread_time() - began_s < 1.0, "for the first of these it took minutes"
