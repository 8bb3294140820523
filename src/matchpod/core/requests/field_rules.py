"""Define the rules for JSON values in requests: each parses a value and provides its JSON Schema.

Booleans are not numbers, and 30.0 is the integer 30. A `format` in a schema names a rule that no pattern can express.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from matchpod.core.faults import Fault, FaultCode, FieldPath
from matchpod.core.iso_dates import read_date
from matchpod.core.requests.json_fields import AnyField, Faults, FieldRule, Fields, Schema
from matchpod.core.requests.text_rules import printable

DATE_SCHEMA: Final[Schema] = {
    "type": "string",
    "anyOf": [{"format": "date"}, {"format": "date-time"}],
    "example": "2026-09-21",
}

TextCheck = Callable[[str], Fault | None]
"""A function that checks a text. It returns None for a valid text, and otherwise a fault without a path."""

Texts = tuple[tuple[FieldPath, str], ...]
"""The valid strings of an array, each with its path."""

E = TypeVar("E", bound=StrEnum)


def schema_ref(name: str) -> Schema:
    """Return a reference to the schema that is published under this name."""
    return {"$ref": f"#/components/schemas/{name}"}


def text(check: TextCheck | None = None, *, longest: int | None = None, **schema: object) -> FieldRule[str]:
    """Return the rule for a string that passes a check. With `longest`, its schema allows 1 to `longest` characters."""

    def read(value: object, path: FieldPath, faults: Faults) -> str | None:
        if not isinstance(value, str):
            faults.add(Fault(FaultCode.NOT_A_STRING, path=path))
            return None
        fault = check(value) if check else None
        if fault is not None:
            faults.add(fault.at(path))
            return None
        return value

    lengths: Schema = {} if longest is None else {"minLength": 1, "maxLength": longest}
    return FieldRule({"type": "string", **lengths, **schema}, read)


def texts(item: FieldRule[str], **schema: object) -> FieldRule[Texts]:
    """Return the rule for an array of strings. Valid strings are read even if others are invalid."""

    def read(value: object, path: FieldPath, faults: Faults) -> Texts | None:
        if not isinstance(value, list | tuple):
            faults.add(Fault(FaultCode.NOT_STRINGS, path=path))
            return None
        places = [path / at for at in range(len(value))]
        items = [(place, item.read(element, place, faults)) for place, element in zip(places, value, strict=True)]
        return tuple([(place, found) for place, found in items if found is not None])

    return FieldRule({"type": "array", "items": item.schema, **schema}, read)


def texts_by_name(
    check_name: TextCheck, item: FieldRule[str], *, names: str, maximum: int
) -> FieldRule[dict[str, str]]:
    """Return the rule for an object with string values. Its names must pass a check and match the pattern `names`."""

    def read(value: object, path: FieldPath, faults: Faults) -> dict[str, str] | None:
        if not isinstance(value, dict):
            faults.add(Fault(FaultCode.NOT_TEXTS, path=path))
            return None
        if len(value) > maximum:
            faults.add(Fault(FaultCode.TOO_MANY_ENTRIES, {"maximum": maximum, "found": len(value)}, path))
            return None
        found: dict[str, str] = {}
        for name, element in value.items():
            place = path / printable(str(name))
            if fault := check_name(str(name)):
                faults.add(fault.at(place))
            elif (text := item.read(element, place, faults)) is not None:
                found[str(name)] = text
        return found

    schema: Schema = {
        "type": "object",
        "propertyNames": {"pattern": f"^{names}$"},
        "additionalProperties": item.schema,
        "maxProperties": maximum,
    }
    return FieldRule(schema, read)


def choice(values: type[E]) -> FieldRule[E]:
    """Return the rule for a member of an enum."""
    members = {member.value: member for member in values}

    def read(value: object, path: FieldPath, faults: Faults) -> E | None:
        member = members.get(value) if isinstance(value, str) else None
        if member is None:
            faults.add(not_a_choice(values).at(path))
        return member

    return FieldRule({"type": "string", "enum": [member.value for member in values]}, read)


def not_a_choice(values: type[StrEnum]) -> Fault:
    return Fault(FaultCode.NOT_A_CHOICE, {"choices": tuple(values)})


def boolean() -> FieldRule[bool]:
    """Return the rule for a boolean."""

    def read(value: object, path: FieldPath, faults: Faults) -> bool | None:
        if isinstance(value, bool):
            return value
        faults.add(Fault(FaultCode.NOT_A_BOOLEAN, path=path))
        return None

    return FieldRule({"type": "boolean"}, read)


def integer(minimum: int, maximum: int) -> FieldRule[int]:
    """Return the rule for an integer from `minimum` to `maximum`."""

    def read(value: object, path: FieldPath, faults: Faults) -> int | None:
        found = _read_number(value, minimum, maximum, is_whole=True)
        if isinstance(found, Fault):
            faults.add(found.at(path))
            return None
        return int(found)

    return FieldRule({"type": "integer", "minimum": minimum, "maximum": maximum}, read)


def even(minimum: int, maximum: int) -> FieldRule[int]:
    """Return the rule for an even integer from `minimum` to `maximum`."""
    whole = integer(minimum, maximum)

    def read(value: object, path: FieldPath, faults: Faults) -> int | None:
        found = whole.read(value, path, faults)
        if found is not None and found % 2:
            faults.add(Fault(FaultCode.NOT_EVEN, path=path))
            return None
        return found

    return FieldRule({**whole.schema, "multipleOf": 2}, read)


def number(minimum: int, maximum: int) -> FieldRule[float]:
    """Return the rule for a number from `minimum` to `maximum`. The number may have a fraction."""

    def read(value: object, path: FieldPath, faults: Faults) -> float | None:
        found = _read_number(value, minimum, maximum, is_whole=False)
        if isinstance(found, Fault):
            faults.add(found.at(path))
            return None
        return float(found)

    return FieldRule({"type": "number", "minimum": minimum, "maximum": maximum}, read)


def date() -> FieldRule[str]:
    """Return the rule for an ISO 8601 date or date-time."""
    rule = text(lambda value: Fault(FaultCode.NOT_A_DATE) if read_date(value) is None else None)
    return FieldRule(DATE_SCHEMA, rule.read)


def nested(schema: str, known: Sequence[AnyField]) -> FieldRule[Fields]:
    """Return the rule for an object with these fields. The schema of the object is published separately."""
    return FieldRule(schema_ref(schema), lambda value, path, faults: Fields.of(value, path, known, faults))


def _read_number(value: object, minimum: int, maximum: int, *, is_whole: bool) -> float | Fault:
    # bool is a subclass of int in Python, not in JSON.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Fault(FaultCode.NOT_A_NUMBER)
    if isinstance(value, float) and not math.isfinite(value):
        return Fault(FaultCode.NOT_FINITE)
    if is_whole and isinstance(value, float) and not value.is_integer():
        return Fault(FaultCode.NOT_WHOLE)
    # Compare the value without converting it: float() of an integer with 400 digits raises.
    if value < minimum:
        return Fault(FaultCode.TOO_LOW, {"minimum": minimum})
    return Fault(FaultCode.TOO_HIGH, {"maximum": maximum}) if value > maximum else value
