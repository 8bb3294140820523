"""Reading query parameters and collecting all faults."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.errors import InvalidParamsError
from matchpod.core.faults import Fault, FaultCode
from matchpod.core.iso_dates import DateRange
from matchpod.core.match.played_map import MapStatus
from matchpod.core.requests.json_fields import MAX_FAULTS
from matchpod.core.requests.query_fields import MAX_HINTS, QueryFields
from matchpod.core.requests.text_rules import label_fault
from tests.unit.core.requests.shown_faults import Shown, shown

KNOWN = ("page", "pageSize", "status", "name", "from")


def fields(*given: tuple[str, str]) -> QueryFields:
    return QueryFields(given, KNOWN)


def faults(read: QueryFields) -> list[Shown]:
    with pytest.raises(InvalidParamsError) as caught:
        read.check()
    return shown(caught.value.faults)


def test_absent_parameters_are_no_faults() -> None:
    read = fields()
    assert read.integer("page", at_least=1) is None
    assert read.choice("status", MapStatus) is None
    assert read.text("name", lambda _: Fault(FaultCode.EMPTY)) is None
    assert read.date("from") is None
    read.check()


def test_valid_values_are_read() -> None:
    read = fields(("page", "7"), ("status", "live"), ("name", "x"), ("from", "1970-01-02"))
    assert read.integer("page", at_least=1, at_most=7) == 7
    assert read.choice("status", MapStatus) is MapStatus.LIVE
    assert read.text("name", lambda _: None) == "x"
    assert read.date("from") == DateRange(86_400_000, 172_800_000)
    read.check()


def test_numbers_are_plain_digits() -> None:
    for text, number in [("1", 1), ("007", 7), ("100", 100), ("0" * 4000 + "5", 5)]:
        assert fields(("page", text)).integer("page", at_least=1, at_most=100) == number


@pytest.mark.parametrize(
    "text",
    ["0", "101", "-1", "+1", " 1", "1 ", "1.0", "1e1", "0x1", "1_0", "٣", "²", "one", "true", "9" * 5000, "000", "1,2"],
)
def test_invalid_numbers_are_reported_with_the_bounds(text: str) -> None:
    read = fields(("page", text))
    assert read.integer("page", at_least=1, at_most=100) is None
    assert faults(read) == [("page", "must be a whole number from 1 to 100")]


def test_number_without_an_upper_bound_may_have_any_length() -> None:
    number = fields(("page", "9" * 5000)).integer("page", at_least=1)
    assert number is not None
    assert number > 2**53
    read = fields(("page", "0"))
    read.integer("page", at_least=1)
    assert faults(read) == [("page", "must be a whole number of at least 1")]


def test_number_with_nineteen_digits_is_not_truncated() -> None:
    assert fields(("page", "1234567890123456789")).integer("page", at_least=1) == 1_234_567_890_123_456_789


def test_invalid_choice_is_reported_with_all_values() -> None:
    read = fields(("status", "canceled"))
    assert read.choice("status", MapStatus) is None
    assert faults(read) == [("status", "must be one of upcoming, live, finished, cancelled")]


def test_text_that_violates_its_rule_is_not_returned() -> None:
    read = fields(("name", "x"))
    assert read.text("name", lambda text: Fault(FaultCode.FORBIDDEN_TEXT, {"found": text})) is None
    assert faults(read) == [("name", "must not contain x")]


def test_invalid_date_is_reported_with_the_expected_format() -> None:
    read = fields(("from", "yesterday"))
    assert read.date("from") is None
    assert faults(read) == [
        ("from", "must be an ISO 8601 date or date-time such as 2026-09-21 or 2026-09-21T14:30:00Z")
    ]


def test_unknown_parameter_is_reported_with_the_nearest_name() -> None:
    for name, message in [
        ("pagesize", "is not a known parameter; did you mean pageSize?"),
        ("stat", "is not a known parameter; did you mean status?"),
        ("Page", "is not a known parameter; did you mean page?"),
        ("zzz", "is not a known parameter; known parameters: page, pageSize, status, name, from"),
    ]:
        assert faults(fields((name, "1"))) == [(name, message)]


def test_address_without_parameters_says_so() -> None:
    assert faults(QueryFields([("x", "1")], ())) == [("x", "is not a known parameter; this address has none")]


@pytest.mark.parametrize("name", ["", " ", " page", "\t"])
def test_blank_or_padded_name_is_quoted(name: str) -> None:
    with pytest.raises(InvalidParamsError, match=r'^"[^"]*" is not a known parameter; ') as caught:
        fields((name, "1")).check()
    assert str(caught.value.faults[0].path) == f'"{name}"'.replace("\t", "\ufffd")


def test_only_the_first_of_many_unknown_parameters_get_a_hint() -> None:
    reported = faults(fields(*[(f"page{number}", "1") for number in range(MAX_HINTS + 1)]))
    assert [message.endswith("did you mean page?") for _, message in reported] == [True] * MAX_HINTS + [False]
    assert reported[-1][1] == "is not a known parameter"


def test_unprintable_characters_in_names_are_replaced() -> None:
    reported = faults(fields(("\x00\udcff\u2028" + "x" * 100, "1")))
    assert reported[0][0] == "\ufffd\ufffd\ufffd" + "x" * 61 + "…"


def test_repeated_unknown_parameter_is_reported_once() -> None:
    assert len(faults(fields(("sort", "1"), ("sort", "2")))) == 1


def test_repeated_parameter_has_no_value() -> None:
    for values in [("1", "1"), ("1", "2"), ("1", ""), ("", ""), ("x", "y")]:
        read = fields(*[("page", value) for value in values])
        assert read.integer("page", at_least=1) is None
        assert faults(read) == [("page", "must be given once, not 2 times")]


def test_empty_parameter_has_no_value() -> None:
    read = fields(("name", ""))
    assert read.text("name", lambda _: Fault(FaultCode.NOT_UTF8)) is None
    assert faults(read) == [("name", "must not be empty")]


def test_all_faults_are_reported_at_once() -> None:
    read = fields(("page", "0"), ("pagSize", "1"), ("status", ""), ("name", "x"), ("name", "x"), ("from", "never"))
    read.integer("page", at_least=1, at_most=5)
    read.choice("status", MapStatus)
    read.date("from")
    with pytest.raises(InvalidParamsError, match=r"^5 faults in the query$") as caught:
        read.check()
    assert sorted(path for path, _ in shown(caught.value.faults)) == ["from", "name", "pagSize", "page", "status"]


def test_single_fault_is_the_error_message() -> None:
    with pytest.raises(InvalidParamsError, match=r"^name must not be empty$"):
        fields(("name", "")).check()


@given(st.lists(st.tuples(st.sampled_from(KNOWN) | st.text(max_size=8), st.text(max_size=8)), max_size=8))
def test_every_query_is_either_valid_or_rejected(given_pairs: list[tuple[str, str]]) -> None:
    read = QueryFields(given_pairs, KNOWN)
    read.integer("page", at_least=0, at_most=9)
    read.choice("status", MapStatus)
    names = {name for name, _ in given_pairs}
    is_clean = len(names) == len(given_pairs) and names <= set(KNOWN) and all(value for _, value in given_pairs)
    with suppress(InvalidParamsError):
        read.check()
        assert is_clean


def test_faults_beyond_the_limit_are_only_counted() -> None:
    read = fields(*[(f"x{number}", "1") for number in range(480)], ("page", "0"))
    assert read.integer("page", at_least=1) is None
    reported = faults(read)
    assert len(reported) == MAX_FAULTS + 1
    assert reported[-1] == ("", f"faults that are not listed: {481 - MAX_FAULTS}")
    with pytest.raises(InvalidParamsError, match="481 faults in the query"):
        read.check()


def test_parameter_that_may_be_repeated_has_different_texts() -> None:
    def read(*texts: str) -> QueryFields:
        return QueryFields([("label", text) for text in texts], ("label",), repeatable=("label",))

    assert read("a:1", "b:2", "a:1").texts("label", label_fault, at_most=2) == ["a:1", "b:2"]
    assert read().texts("label", label_fault, at_most=2) == []
    many, wrong = read("a:1", "b:2", "c:3"), read("a:1", "none")
    assert many.texts("label", label_fault, at_most=2) == []
    assert faults(many) == [("label", "must be given at most 2 times, not 3")]
    wrong.texts("label", label_fault, at_most=2)
    assert [path for path, _ in faults(wrong)] == ["label"]
