"""Read JSON that any version has stored, as values of the current types.

A stored value may lack fields that were added later, and have values that only a newer version knows. An unreadable
value is replaced with the default of its field, or else with null, an empty text or list, false, or the member
`unknown`. Numbers are not replaced, because 0 would look like a measurement: an object that lacks a required number is
unreadable, and so is an object of an unknown type. Unreadable objects are left out of lists, and replaced with null
where null is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import inspect

_T = TypeVar("_T")

_UNKNOWN: Final = "unknown"
_NONE: Final[Mapping[str, object]] = {}


class UnreadableError(Exception):
    """A stored value does not have the expected type, and cannot be replaced."""


class StoredReader(Generic[_T]):
    """Reads values of one type."""

    def __init__(self, shape: Any) -> None:
        self._shape = shape
        self._decode = msgspec.json.Decoder(shape).decode
        self._node = inspect.type_info(shape)

    def read(self, stored: bytes | msgspec.Raw, **stand_ins: object) -> _T:
        """Return the stored value; raise UnreadableError if it does not have this type or is not JSON.

        `stand_ins` has replacements for missing or unreadable fields of the outermost object, by field name.
        """
        try:
            value: _T = self._decode(stored)
        except msgspec.ValidationError:
            completed = _completed(msgspec.json.decode(stored), self._node, stand_ins)
            value = msgspec.convert(completed, self._shape)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise UnreadableError(str(exc)) from exc
        return value


def _completed(value: object, node: inspect.Type, stand_ins: Mapping[str, object] = _NONE) -> object:
    """Replace the missing and unreadable parts of a value so that it fits the type; else raise UnreadableError."""
    match node:
        case inspect.Metadata():
            return _completed(value, node.type, stand_ins)
        case inspect.UnionType():
            return _completed_choice(value, node, stand_ins)
        case inspect.StructType():
            return _completed_struct(value, node, stand_ins)
        case inspect.VarTupleType() | inspect.ListType():
            return _completed_list(value, node.item_type)
        case inspect.DictType():
            return _completed_dict(value, node.value_type)
        case inspect.EnumType():
            return _completed_member(value, node.cls)
        case _:
            return _checked(value, node)


def _completed_struct(value: object, node: inspect.StructType, stand_ins: Mapping[str, object] = _NONE) -> object:
    if not isinstance(value, dict):
        raise UnreadableError(f"not an object, but {node.cls.__name__} is expected")
    if node.tag_field is not None and value.get(node.tag_field) != node.tag:
        raise UnreadableError(f"the tag is not {node.tag}")
    completed: dict[str, object] = {} if node.tag_field is None else {node.tag_field: node.tag}
    for field in node.fields:
        name = field.encode_name
        try:
            if name not in value:
                raise UnreadableError(f"the field {name} is missing")
            completed[name] = _completed(value[name], field.type)
        except UnreadableError:
            if field.name in stand_ins:
                completed[name] = stand_ins[field.name]
            elif field.required:  # other fields have defaults
                completed[name] = _stand_in(field.type)
    return completed


def _completed_choice(value: object, node: inspect.UnionType, stand_ins: Mapping[str, object]) -> object:
    """Return the value as the first type of a union that it fits. If it fits none, return null if null is allowed."""
    for choice in node.types:
        with suppress(UnreadableError):
            return _completed(value, choice, stand_ins)
    if not node.includes_none:
        raise UnreadableError("the value fits none of the expected types")
    return None


def _completed_list(value: object, item: inspect.Type) -> list[object]:
    """Return the readable objects of a list. Lists of plain values are read as a whole: positions may matter."""
    if not isinstance(value, list):
        raise UnreadableError("not a list")
    if not isinstance(item, inspect.StructType):
        return [_completed(element, item) for element in value]
    completed = []
    for element in value:
        with suppress(UnreadableError):
            completed.append(_completed(element, item))
    return completed


def _completed_dict(value: object, item: inspect.Type) -> dict[str, object]:
    if not isinstance(value, dict):
        raise UnreadableError("not an object")
    completed = {}
    for name, element in value.items():
        with suppress(UnreadableError):
            completed[name] = _completed(element, item)
    return completed


def _completed_member(value: object, members: type[Enum]) -> object:
    known = {member.value for member in members}
    if isinstance(value, str) and value in known:
        return value
    if _UNKNOWN in known:
        return _UNKNOWN
    raise UnreadableError(f"not a member of {members.__name__}")


def _checked(value: object, node: inspect.Type) -> object:
    """Return a plain value; raise UnreadableError if it does not have the expected type."""
    kinds: dict[type, tuple[type, ...]] = {
        inspect.IntType: (int,),
        inspect.FloatType: (int, float),
        inspect.BoolType: (bool,),
        inspect.StrType: (str,),
        inspect.NoneType: (type(None),),
    }
    expected = kinds.get(type(node))
    if expected is None:
        return value
    if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
        raise UnreadableError(f"{type(value).__name__} instead of {type(node).__name__}")
    return value


def _stand_in(node: inspect.Type) -> object:
    """Return the replacement of a missing required value; raise UnreadableError if its type has none."""
    match node:
        case inspect.Metadata():
            return _stand_in(node.type)
        case inspect.UnionType() if node.includes_none:
            return None
        case inspect.StrType():
            return ""
        case inspect.BoolType():
            return False
        case inspect.VarTupleType() | inspect.ListType():
            return []
        case inspect.EnumType():
            return _completed_member(None, node.cls)
        case inspect.StructType() if node.tag_field is None:
            return _completed_struct({}, node)
        case _:
            raise UnreadableError("a required value is missing and has no replacement")
