"""Replace equal texts in a decoded state with a single object, to save memory.

A decoder creates a new string for every value, such as a player's id in each kill and each line-up. A state that was
built from a log shares one string for all equal texts, so without this module a decoded state would need a third more
memory.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T")


def share_texts(state: T) -> T:
    """Return a state whose equal texts are the same object. Its lists, dicts and structs are changed in place."""
    shared: T = _share(state, {})
    return shared


def _share(value: Any, known: dict[str, str]) -> Any:
    kind = type(value)
    if kind is str:
        return known.setdefault(value, value)
    if kind is list:
        value[:] = [_share(item, known) for item in value]
    elif kind is dict:
        for key, item in value.items():
            value[key] = _share(item, known)
    elif kind is tuple:
        return tuple([_share(item, known) for item in value])
    elif issubclass(kind, msgspec.Struct):
        for name in _fields_with_texts(kind):
            item = getattr(value, name)
            if item:
                msgspec.structs.force_setattr(value, name, _share(item, known))
    return value


@functools.cache
def _fields_with_texts(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return tuple(field.name for field in info.fields if _has_texts(field.type, set()))


def _has_texts(node: inspect.Type, seen: set[type]) -> bool:
    """True if values of a type may contain texts other than object keys, which the decoder already shares."""
    match node:
        case inspect.StrType():
            return True
        case inspect.StructType():
            if node.cls in seen:
                return False
            return any(_has_texts(field.type, {*seen, node.cls}) for field in node.fields)
        case inspect.UnionType():
            return any(_has_texts(choice, seen) for choice in node.types)
        case inspect.ListType() | inspect.VarTupleType():
            return _has_texts(node.item_type, seen)
        case inspect.TupleType():
            return any(_has_texts(item, seen) for item in node.item_types)
        case inspect.DictType():
            return _has_texts(node.value_type, seen)
        case inspect.Metadata():
            return _has_texts(node.type, seen)
        case _:
            return False
