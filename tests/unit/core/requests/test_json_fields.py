from __future__ import annotations

from enum import StrEnum

import pytest

from matchpod.core.faults import Fault, FaultCode, FieldPath
from matchpod.core.requests.json_fields import MAX_FAULTS, MAX_HINTS, Faults, Fields
from tests.unit.core.requests.shown_faults import shown


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def read(members: dict[object, object], *known: str) -> tuple[Fields, Faults]:
    faults = Faults()
    fields = Fields.of(members, FieldPath(("at",)), known or ("x",), faults)
    assert fields is not None
    return fields, faults


def only(faults: Faults) -> tuple[str, str]:
    (fault,) = shown(faults.error().faults)
    return fault


@pytest.mark.parametrize(("value", "read_as"), [(0, 0), (30, 30), (30.0, 30), (-0.0, 0), (60, 60)])
def test_integer_may_be_written_as_a_float(value: object, read_as: int) -> None:
    fields, faults = read({"x": value})
    number = fields.integer("x", at_least=0, at_most=60)
    assert (number, type(number)) == (read_as, int)
    assert not faults


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (True, "must be a number"),
        ("30", "must be a number"),
        ([1], "must be a number"),
        (30.5, "must be a whole number"),
        (float("nan"), "must be a finite number"),
        (float("inf"), "must be a finite number"),
        (-1, "must be at least 0"),
        (61, "must be at most 60"),
        (10**400, "must be at most 60"),
        (-(10**400), "must be at least 0"),
        (1e308, "must be at most 60"),
    ],
)
def test_invalid_integer_is_a_fault(value: object, message: str) -> None:
    fields, faults = read({"x": value})
    assert fields.integer("x", at_least=0, at_most=60) is None
    assert only(faults) == ("at.x", message)


@pytest.mark.parametrize(("value", "read_as"), [(1, 1.0), (7.25, 7.25), (1440, 1440.0)])
def test_number_may_have_a_fraction(value: object, read_as: float) -> None:
    fields, faults = read({"x": value})
    number = fields.number("x", at_least=1, at_most=1440)
    assert (number, type(number)) == (read_as, float)
    assert not faults


@pytest.mark.parametrize(
    ("value", "message"), [(0.99, "must be at least 1"), (10**400, "must be at most 1440"), (False, "must be a number")]
)
def test_invalid_number_is_a_fault(value: object, message: str) -> None:
    fields, faults = read({"x": value})
    assert fields.number("x", at_least=1, at_most=1440) is None
    assert only(faults) == ("at.x", message)


def test_null_is_the_same_as_absent() -> None:
    absent: list[dict[object, object]] = [{}, {"x": None}]
    for members in absent:
        fields, faults = read(members)
        assert not fields.has("x")
        assert fields.text("x") is None
        assert fields.texts("x", lambda text: None) is None
        assert fields.integer("x", at_least=1, at_most=2) is None
        assert fields.number("x", at_least=1, at_most=2) is None
        assert fields.choice("x", Colour) is None
        assert fields.nested("x", ()) is None
        assert not faults
        assert fields.text("x", required=True) is None
        assert only(faults) == ("at.x", "is required")


def test_valid_strings_are_read_with_their_paths_and_others_are_faults() -> None:
    fields, faults = read({"x": ["a", 1, "", "b"]})
    texts = fields.texts("x", lambda text: None if text else Fault(FaultCode.EMPTY)) or ()
    assert [(str(path), text) for path, text in texts] == [("at.x[0]", "a"), ("at.x[3]", "b")]
    assert shown(faults.error().faults) == [("at.x[1]", "must be a string"), ("at.x[2]", "must not be empty")]


@pytest.mark.parametrize("value", ["abc", {"0": "a"}, 3])
def test_value_that_is_not_an_array_is_a_fault(value: object) -> None:
    fields, faults = read({"x": value})
    assert fields.texts("x", lambda text: None) is None
    assert only(faults) == ("at.x", "must be an array of strings")


def test_choice_must_be_an_enum_value() -> None:
    assert read({"x": "red"})[0].choice("x", Colour) is Colour.RED
    others: list[object] = ["green", "RED", 1, ["red"], {}]
    for value in others:
        fields, faults = read({"x": value})
        assert fields.choice("x", Colour) is None
        assert only(faults) == ("at.x", "must be one of red, blue")


def test_unknown_fields_are_reported_with_the_nearest_known_name() -> None:
    _, faults = read({"colors": 1, "zzz": 2, "color": 3, 5: 4}, "color")
    assert shown(faults.error().faults) == [
        ("at.colors", "is not a known field; did you mean color?"),
        ("at.zzz", "is not a known field"),
        ("at.5", "is not a known field"),
    ]


def test_only_the_first_unknown_fields_have_a_suggestion() -> None:
    _, faults = read({f"colors{number}": 1 for number in range(MAX_FAULTS)}, "color")
    assert sum("did you mean color?" in fault.message for fault in faults.error().faults) == MAX_HINTS


def test_unknown_name_is_truncated_and_lone_surrogates_are_replaced() -> None:
    _, faults = read({"\ud800" + "x" * 1000: 1})
    path, _ = only(faults)
    assert path == "at.\ufffd" + "x" * 63 + "…"


def test_single_fault_is_the_error_message() -> None:
    faults = Faults()
    faults.add(Fault(FaultCode.TOO_LOW, {"minimum": 1}, FieldPath(("a", "b"))))
    assert str(faults.error()) == "a.b must be at least 1"
    assert faults.error().status == 400


def test_fault_without_a_path_refers_to_the_request_body() -> None:
    faults = Faults()
    assert Fields.of([], FieldPath(), (), faults) is None
    assert str(faults.error()) == "the request body must be a JSON object"


def test_faults_beyond_the_limit_are_only_counted() -> None:
    faults = Faults()
    for number in range(MAX_FAULTS):
        faults.add(Fault(FaultCode.REQUIRED, path=FieldPath((f"f{number}",))))
    assert len(faults.error().faults) == MAX_FAULTS
    assert str(faults.error().faults[-1].path) == f"f{MAX_FAULTS - 1}"
    for _ in range(10):
        faults.add(Fault(FaultCode.REQUIRED))
    error = faults.error()
    assert str(error) == f"{MAX_FAULTS + 10} faults in the request body"
    assert len(error.faults) == MAX_FAULTS
    assert str(error.faults[-2].path) == f"f{MAX_FAULTS - 2}"
    assert shown(error.faults)[-1] == ("", "11 more faults are not listed")
