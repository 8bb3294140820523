from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.errors import InvalidParamsError
from matchpod.core.requests.json_limits import MAX_DIGITS, MAX_ITEMS, decode_json, json_size_fault

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


# --- what is not JSON ---------------------------------------------------------------------------------------------


def fault_of(body: bytes) -> str:
    with pytest.raises(InvalidParamsError) as caught:
        decode_json(body)
    return str(caught.value)


def test_fault_of_malformed_json_says_where_it_is() -> None:
    for body, place in [
        (b"", "at line 1, column 1"),
        (b"region", "at line 1, column 1"),
        (b'{"a": 1', "at line 1, column 8"),
        (b'{"a" 1}', "at line 1, column 6"),
        (b'{"a": 1} x', "at line 1, column 10"),
        (b'{\n  "a": tru\n}', "at line 2, column 8"),
        (b'{\r\n  "a": "b\r\n}', "at line 2, column 10"),
        ('{"ä": "ö" "b"}'.encode(), "at line 1, column 11"),
        (b'{"a": "b', "at line 1, column 7"),
        (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
    ]:
        fault = fault_of(body)
        assert fault.startswith("The request body is not JSON: ")
        assert fault.endswith(f"{place}.")


def test_what_only_the_other_decoder_accepts_has_no_place() -> None:
    for body in [b"NaN", b'{"a": Infinity}', b"1e999", b'"\\ud800"']:
        assert fault_of(body) == "The request body is not JSON."


def test_fault_does_not_repeat_what_was_sent() -> None:
    assert "s3cret" not in fault_of(b'{"callbackAuthToken": "s3cret" "x"}')


@given(json_values, st.data())
def test_every_cut_of_a_document_is_reported_at_its_end_or_before(value: object, data: st.DataObject) -> None:
    whole = msgspec.json.encode([value])
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    assert fault_of(cut).startswith("The request body is not JSON")


def test_body_within_the_limits_is_decoded_and_another_is_not() -> None:
    assert decode_json(b'{"a": [1, null]}') == {"a": [1, None]}
    assert fault_of(b"[" * (MAX_ITEMS + 1)) == f"The request body {TOO_MANY}."
