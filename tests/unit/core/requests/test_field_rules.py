"""The rules of JSON values: what each reads, which faults it finds, and its schema."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest

from matchpod.core.faults import FieldPath
from matchpod.core.requests import field_rules as rules
from matchpod.core.requests import text_rules
from matchpod.core.requests.json_fields import Faults, FieldRule, RequestField
from tests.unit.core.requests.shown_faults import Shown, shown

AT = FieldPath(("at", "x"))


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def read(rule: FieldRule[Any], value: object) -> tuple[Any, list[Shown]]:
    faults = Faults()
    found = rule.read(value, AT, faults)
    return found, shown(faults.error().faults)


def test_integer_may_be_written_as_a_float() -> None:
    for value, read_as in [(0, 0), (30, 30), (30.0, 30), (-0.0, 0), (60, 60)]:
        number, faults = read(rules.integer(0, 60), value)
        assert (number, type(number), faults) == (read_as, int, [])


def test_invalid_integer_is_a_fault() -> None:
    for value, message in [
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
    ]:
        assert read(rules.integer(0, 60), value) == (None, [("at.x", message)])


@pytest.mark.parametrize(("value", "read_as"), [(1, 1.0), (7.25, 7.25), (1440, 1440.0)])
def test_number_may_have_a_fraction(value: object, read_as: float) -> None:
    number, faults = read(rules.number(1, 1440), value)
    assert (number, type(number), faults) == (read_as, float, [])


@pytest.mark.parametrize(
    ("value", "message"), [(0.99, "must be at least 1"), (10**400, "must be at most 1440"), (False, "must be a number")]
)
def test_invalid_number_is_a_fault(value: object, message: str) -> None:
    assert read(rules.number(1, 1440), value) == (None, [("at.x", message)])


@pytest.mark.parametrize("value", ["abc", {"0": "a"}, 3])
def test_value_that_is_not_an_array_is_a_fault(value: object) -> None:
    assert read(rules.texts(rules.text()), value) == (None, [("at.x", "must be an array of strings")])


def test_choice_must_be_an_enum_value() -> None:
    assert read(rules.choice(Colour), "red") == (Colour.RED, [])
    others: list[object] = ["green", "RED", 1, ["red"], {}]
    for value in others:
        assert read(rules.choice(Colour), value) == (None, [("at.x", "must be one of red, blue")])


def test_date_must_be_iso_8601() -> None:
    assert read(rules.date(), "2026-09-21") == ("2026-09-21", [])
    ((path, message),) = read(rules.date(), "yesterday")[1]
    assert (path, message.startswith("must be an ISO 8601 date")) == ("at.x", True)


def test_nested_object_has_known_fields_only() -> None:
    rule = rules.nested("Team", (RequestField(name="name", rule=rules.text()),))
    assert read(rule, {"name": "a", "x": 1})[1] == [("at.x.x", "is not a known field")]
    assert read(rule, [])[1] == [("at.x", "must be a JSON object")]


def test_texts_have_names_that_pass_their_check() -> None:
    rule = rules.texts_by_name(text_rules.label_name_fault, rules.text(longest=3), names="[a-z]+", maximum=2)
    assert read(rule, {"event": "a", "round": "b"}) == ({"event": "a", "round": "b"}, [])
    assert read(rule, [])[1] == [("at.x", "must be a JSON object whose values are strings")]
    assert read(rule, {"a": "", "b": "", "c": ""})[1] == [("at.x", "must have at most 2 entries, not 3")]
    assert [path for path, _ in read(rule, {"!": "a", "event": 5})[1]] == ["at.x.!", "at.x.event"]
    assert rule.schema["propertyNames"] == {"pattern": "^[a-z]+$"}


def test_schema_says_what_is_allowed() -> None:
    assert rules.text(longest=32, format="team-name").schema == {
        "type": "string", "minLength": 1, "maxLength": 32, "format": "team-name",
    }  # fmt: skip
    assert rules.texts(rules.text(enum=["red", "blue"]), maxItems=2).schema == {
        "type": "array", "items": {"type": "string", "enum": ["red", "blue"]}, "maxItems": 2,
    }  # fmt: skip
    assert rules.integer(0, 60).schema == {"type": "integer", "minimum": 0, "maximum": 60}
    assert rules.number(1, 2).schema == {"type": "number", "minimum": 1, "maximum": 2}
    assert rules.choice(Colour).schema == {"type": "string", "enum": ["red", "blue"]}
    assert rules.nested("Team", ()).schema == {"$ref": "#/components/schemas/Team"}
