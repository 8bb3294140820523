"""Read the fields of a decoded JSON object and report all faults at once.

`Faults` collects faults, `Fields` reads one object. Reading a field returns None if the field is absent or invalid, and
adds a fault if it is invalid. JSON null counts as absent. The rules of values are in `field_rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from matchpod.core.errors import InvalidFieldsError
from matchpod.core.faults import Fault, FaultCode, FaultParameter, FieldPath
from matchpod.core.model import MatchType
from matchpod.core.requests.text_rules import nearest, printable

MAX_FAULTS = 50
"""Maximum number of faults listed per request, more than a person corrects at once. Further faults are only counted."""

MAX_HINTS = 4
"""Maximum number of unknown fields per object that get a suggestion, because finding the nearest name is slow."""

Schema = dict[str, object]

T = TypeVar("T")


class Faults:
    """All faults of one request, in the order in which they were found. Faults beyond MAX_FAULTS are only counted."""

    def __init__(self) -> None:
        self._listed: list[Fault] = []
        self._total = 0

    def __len__(self) -> int:
        return self._total

    @property
    def is_full(self) -> bool:
        """True if further faults are only counted, so that their details are not needed."""
        return len(self._listed) == MAX_FAULTS

    def add(self, fault: Fault) -> None:
        self._total += 1
        if not self.is_full:
            self._listed.append(fault)

    def count(self, faults: int) -> None:
        """Add a number of faults to the total without listing them."""
        self._total += faults

    def error(self, request: str = "the request body") -> InvalidFieldsError:
        return InvalidFieldsError(tuple(self._listed), request=request, unlisted=self._total - len(self._listed))


class FieldRule(msgspec.Struct, Generic[T], frozen=True):
    """A rule for a JSON value: the function that reads it, and the JSON Schema of valid values.

    `read` returns the value. For an invalid value it adds its faults and returns None.
    """

    schema: Schema
    read: Callable[[object, FieldPath, Faults], T | None]


class RequestField(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One field of a request body.

    `meaning` is its documentation, `label` its name in forms. Without `match_types` it is allowed for all match types.
    """

    name: str
    rule: FieldRule[T]
    meaning: str = ""
    label: str = ""
    example: str = ""
    is_required: bool = False
    match_types: tuple[MatchType, ...] = ()

    def is_for(self, match_type: str) -> bool:
        """True if the field is allowed for matches of this type."""
        return not self.match_types or match_type in self.match_types


AnyField = RequestField[Any]


class Fields:
    """One JSON object at a path, and the fields that it may have."""

    def __init__(
        self, members: dict[object, object], path: FieldPath, known: Sequence[AnyField], faults: Faults
    ) -> None:
        self._members = members
        self._path = path
        self._known = tuple(field.name for field in known)
        self.faults = faults

    @staticmethod
    def of(value: object, path: FieldPath, known: Sequence[AnyField], faults: Faults) -> Fields | None:
        """Return an object's fields; add a fault per unknown field. For a non-object, add a fault and return None."""
        if not isinstance(value, dict):
            faults.add(Fault(FaultCode.NOT_AN_OBJECT, path=path))
            return None
        fields = Fields(value, path, known, faults)
        fields._reject_unknown()
        return fields

    def has(self, field: AnyField) -> bool:
        """True if the field is present and not null."""
        return self._members.get(field.name) is not None

    def length(self, field: AnyField) -> int:
        """Return the number of items of an array, valid or not; 0 for anything else."""
        value = self._members.get(field.name)
        return len(value) if isinstance(value, list | tuple) else 0

    def fault(self, field: AnyField, code: FaultCode, /, **parameters: FaultParameter) -> None:
        self.faults.add(Fault(code, parameters, self._path / field.name))

    def read(self, field: RequestField[T], rule: FieldRule[T] | None = None) -> T | None:
        """Read a field. `rule` replaces its rule if the rule depends on the rest of the request."""
        value = self._members.get(field.name)
        if value is not None:
            return (rule or field.rule).read(value, self._path / field.name, self.faults)
        if field.is_required:
            self.fault(field, FaultCode.REQUIRED)
        return None

    def _reject_unknown(self) -> None:
        unknown = [name for name in map(str, self._members) if name not in self._known]
        for number, name in enumerate(unknown):
            if self.faults.is_full:
                self.faults.count(len(unknown) - number)
                return
            path = self._path / printable(name)
            meant = nearest(name, self._known) if number < MAX_HINTS else None
            if meant is None:
                self.faults.add(Fault(FaultCode.UNKNOWN_FIELD, path=path))
            else:
                self.faults.add(Fault(FaultCode.MISSPELLED_FIELD, {"meant": meant}, path))
