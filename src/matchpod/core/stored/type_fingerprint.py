"""Compute a short digest of a type and of every type that it contains.

Stored state contains the digest of the types with which it was written. If a field is added, removed, moved, renamed or
gets another type or default, the digest differs, and the state is rebuilt instead of being decoded into the wrong
fields. A field that keeps its name and type but changes its meaning is not detected, so rename it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import Enum
from typing import Final

import msgspec
from msgspec import inspect

DIGEST_BYTES: Final = 16
"""Length of a digest. With 128 bits, a collision of two versions of our types is practically impossible."""


def type_fingerprint(root: type) -> bytes:
    """Return a digest of everything that affects how values of this type are encoded and decoded."""
    seen: set[type] = set()
    text = "\n".join(_describe(inspect.type_info(root), seen))
    return hashlib.sha256(text.encode()).digest()[:DIGEST_BYTES]


def _describe(node: object, seen: set[type]) -> Iterator[str]:
    """Yield one line per node of the type tree; a struct is described at its first occurrence only."""
    while isinstance(node, inspect.Metadata):  # descriptions for the API documentation
        node = node.type
    if isinstance(node, inspect.StructType):
        yield f"struct {_name(node.cls)}"
        if node.cls in seen:
            return
        seen.add(node.cls)
        yield f"omit_defaults {node.cls.__struct_config__.omit_defaults}"
    if isinstance(node, inspect.Type | inspect.Field):
        yield f"{type(node).__name__}("
        for name in node.__struct_fields__:
            yield f"{name}:"
            yield from _describe(getattr(node, name), seen)
        yield ")"
    elif isinstance(node, tuple):
        yield f"tuple of {len(node)}"
        for item in node:
            yield from _describe(item, seen)
    else:
        yield _describe_leaf(node)


def _describe_leaf(value: object) -> str:
    """Return a class, function or default value as text that is stable across processes."""
    if isinstance(value, type) and issubclass(value, Enum):
        return f"enum {_name(value)} {[member.value for member in value]!r}"
    if isinstance(value, frozenset | set):
        return repr(sorted(map(repr, value)))
    if callable(value) and not isinstance(value, msgspec.Struct):
        return _name(value)
    return repr(value)


def _name(value: object) -> str:
    """Return the name of a class or function without its module, so that moving it does not change the digest."""
    return str(getattr(value, "__qualname__", repr(value)))
