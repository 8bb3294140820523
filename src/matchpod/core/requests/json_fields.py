"""Read the fields of a decoded JSON object and report all faults at once.

`Faults` collects faults, `Fields` reads one object. A read method returns None for a field that is absent or invalid,
and adds a fault if it is invalid. JSON null counts as absent, true and false are not numbers, 30.0 is the integer 30.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from matchpod.core.errors import InvalidFieldsError
from matchpod.core.faults import Fault, FaultCode, FaultParameter, FieldPath
from matchpod.core.requests.text_rules import nearest, printable

MAX_FAULTS = 100
"""Most faults listed per body, more than anyone corrects at once. Further ones are only counted."""

MAX_HINTS = 16
"""Unknown fields of one object after which suggestions stop: finding the nearest name is slow."""

TextRule = Callable[[str], Fault | None]
"""A function that returns None for a valid text, else a fault without a path."""

E = TypeVar("E", bound=StrEnum)


class Faults:
    """All faults of one body, in the order they were found; beyond MAX_FAULTS they are only counted."""

    def __init__(self) -> None:
        self._listed: list[Fault] = []
        self._total = 0

    def __bool__(self) -> bool:
        return self._total > 0

    @property
    def is_full(self) -> bool:
        """True if further faults are only counted, so what they are about is not needed."""
        return len(self._listed) == MAX_FAULTS

    def add(self, fault: Fault) -> None:
        """Add a fault with its path."""
        self._total += 1
        if not self.is_full:
            self._listed.append(fault)

    def error(self) -> InvalidFieldsError:
        """Return the error for the caller."""
        return InvalidFieldsError(tuple(self._listed), unlisted=self._total - len(self._listed))


class Fields:
    """One JSON object at a path, and the field names that are allowed."""

    def __init__(self, members: dict[object, object], path: FieldPath, known: tuple[str, ...], faults: Faults) -> None:
        self._members = members
        self._path = path
        self._known = known
        self.faults = faults

    @staticmethod
    def of(value: object, path: FieldPath, known: tuple[str, ...], faults: Faults) -> Fields | None:
        """Return the fields of an object and add a fault for each unknown one; None and a fault for a non-object."""
        if not isinstance(value, dict):
            faults.add(Fault(FaultCode.NOT_AN_OBJECT, path=path))
            return None
        fields = Fields(value, path, known, faults)
        fields._reject_unknown()
        return fields

    def has(self, name: str) -> bool:
        """True if the field is present and not null."""
        return self._members.get(name) is not None

    def fault(self, name: str, code: FaultCode, /, **parameters: FaultParameter) -> None:
        """Add a fault of a field."""
        self.faults.add(Fault(code, parameters, self._path / name))

    def nested(self, name: str, known: tuple[str, ...], *, required: bool = False) -> Fields | None:
        """Read the fields of a nested object."""
        value = self._value(name, required=required)
        return None if value is None else Fields.of(value, self._path / name, known, self.faults)

    def text(self, name: str, rule: TextRule | None = None, *, required: bool = False) -> str | None:
        """Read a string that satisfies its rule."""
        value = self._value(name, required=required)
        return None if value is None else self._checked(value, self._path / name, rule)

    def texts(self, name: str, rule: TextRule) -> tuple[tuple[FieldPath, str], ...] | None:
        """Read the valid strings of an array, each with its path."""
        value = self._value(name)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            self.fault(name, FaultCode.NOT_STRINGS)
            return None
        paths = [self._path / name / index for index in range(len(value))]
        checked = ((path, self._checked(item, path, rule)) for path, item in zip(paths, value, strict=True))
        return tuple((path, text) for path, text in checked if text is not None)

    def length(self, name: str) -> int:
        """Return the number of items of an array, valid or not; 0 for anything else."""
        value = self._members.get(name)
        return len(value) if isinstance(value, list | tuple) else 0

    def choice(self, name: str, values: type[E], *, required: bool = False) -> E | None:
        """Read a member of an enum."""
        value = self._value(name, required=required)
        if value is None:
            return None
        member = next((member for member in values if member.value == value), None)
        if member is None:
            self.fault(name, FaultCode.NOT_A_CHOICE, choices=tuple(values))
        return member

    def integer(self, name: str, *, at_least: int, at_most: int) -> int | None:
        """Read an integer within its bounds."""
        value = self._number(name)
        if value is None:
            return None
        if isinstance(value, float) and not value.is_integer():
            self.fault(name, FaultCode.NOT_WHOLE)
            return None
        return int(value) if self._is_within(name, value, at_least, at_most) else None

    def number(self, name: str, *, at_least: float, at_most: float) -> float | None:
        """Read a number within its bounds; it may have a fraction."""
        value = self._number(name)
        # Compare before converting: float() of an integer with 400 digits raises.
        return float(value) if value is not None and self._is_within(name, value, at_least, at_most) else None

    def _number(self, name: str) -> int | float | None:
        value = self._value(name)
        if value is None:
            return None
        # bool is a subclass of int in Python, not in JSON.
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fault(name, FaultCode.NOT_A_NUMBER)
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self.fault(name, FaultCode.NOT_FINITE)
            return None
        return value

    def _is_within(self, name: str, value: float, at_least: float, at_most: float) -> bool:
        if value < at_least:
            self.fault(name, FaultCode.TOO_LOW, minimum=at_least)
        elif value > at_most:
            self.fault(name, FaultCode.TOO_HIGH, maximum=at_most)
        return at_least <= value <= at_most

    def _value(self, name: str, *, required: bool = False) -> object:
        value = self._members.get(name)
        if value is None and required:
            self.fault(name, FaultCode.REQUIRED)
        return value

    def _checked(self, value: object, path: FieldPath, rule: TextRule | None) -> str | None:
        if not isinstance(value, str):
            self.faults.add(Fault(FaultCode.NOT_A_STRING, path=path))
            return None
        fault = rule(value) if rule else None
        if fault is not None:
            self.faults.add(fault.at(path))
            return None
        return value

    def _reject_unknown(self) -> None:
        unknown = [name for name in map(str, self._members) if name not in self._known]
        for number, name in enumerate(unknown):
            meant = nearest(name, self._known) if number < MAX_HINTS and not self.faults.is_full else None
            if meant is None:
                self.fault(printable(name), FaultCode.UNKNOWN_FIELD)
            else:
                self.fault(printable(name), FaultCode.MISSPELLED_FIELD, meant=meant)
