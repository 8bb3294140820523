"""The fingerprint of a type changes with everything that affects how its values are decoded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import NODEFAULT, Meta, Struct, defstruct, field

from matchpod.core.match.match import Match
from matchpod.core.stored.type_fingerprint import DIGEST_BYTES, type_fingerprint


class Colour(StrEnum):
    RED = "red"


class _MoreColours(StrEnum):
    RED = "red"
    BLUE = "blue"


class _RenamedColour(StrEnum):
    RED = "rot"


for _other in (_MoreColours, _RenamedColour):
    _other.__qualname__ = "Colour"  # pretend to be a changed version of the same enum


class Node(Struct):
    name: str
    next: Node | None = None


def holding(inner: Any, default: Any = NODEFAULT) -> Any:
    return defstruct("Holder", [("held", inner, default)], module="m")


SAME: list[Any] = [("kills", int, 0), ("deaths", int, 0)]

OTHERS: dict[str, list[Any]] = {
    "field added": [*SAME, ("assists", int, 0)],
    "field removed": SAME[:1],
    "fields swapped": SAME[::-1],
    "field renamed": [("kills", int, 0), ("died", int, 0)],
    "other type": [("kills", float, 0), ("deaths", int, 0)],
    "other default": [("kills", int, 1), ("deaths", int, 0)],
    "no default": [("kills", int), ("deaths", int, 0)],
    "other name in the encoding": [("kills", int, field(name="k", default=0)), ("deaths", int, 0)],
}


def player(fields: list[Any], **options: Any) -> Any:
    return defstruct("Player", fields, module="m", **options)


def test_fingerprint_has_a_fixed_length_and_is_stable() -> None:
    assert len(type_fingerprint(Match)) == DIGEST_BYTES
    assert type_fingerprint(Match) == type_fingerprint(Match)
    assert type_fingerprint(player(SAME)) == type_fingerprint(player(list(SAME)))


def test_fingerprint_is_the_same_in_every_process() -> None:
    program = "from matchpod.core.match.match import Match; from matchpod.core.stored.type_fingerprint import type_fingerprint;"
    program += "print(type_fingerprint(Match).hex())"
    environment = {**os.environ, "PYTHONHASHSEED": "1"}  # sets have another order than here, where it is random
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == type_fingerprint(Match).hex()


def test_changed_field_changes_the_fingerprint() -> None:
    for change in OTHERS:
        assert type_fingerprint(player(OTHERS[change])) != type_fingerprint(player(SAME))


def test_description_does_not_change_the_fingerprint() -> None:
    described = [("kills", Annotated[int, Meta(description="Enemies killed.")], 0), SAME[1]]
    constrained = [("kills", Annotated[int, Meta(description="Enemies killed.", ge=0)], 0), SAME[1]]
    assert type_fingerprint(player(described)) == type_fingerprint(player(SAME))
    assert type_fingerprint(player(constrained)) != type_fingerprint(player(SAME))


@pytest.mark.parametrize(
    "options",
    [{"array_like": True}, {"omit_defaults": True}, {"tag": True}, {"tag_field": "t"}, {"rename": "camel"}],
    ids=str,
)
def test_changed_encoding_changes_the_fingerprint(options: dict[str, Any]) -> None:
    changed = player([("first_kills", int, 0)], **options)
    assert type_fingerprint(changed) != type_fingerprint(player([("first_kills", int, 0)]))


def test_changed_enum_changes_the_fingerprint() -> None:
    for inner in [_MoreColours, _RenamedColour, str, Colour | None]:
        assert type_fingerprint(holding(inner)) != type_fingerprint(holding(Colour))


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "list": lambda one: list[one],  # type: ignore[valid-type]
    "dict": lambda one: dict[str, one],  # type: ignore[valid-type]
    "tuple": lambda one: tuple[one, ...],  # type: ignore[valid-type]
    "optional": lambda one: one | None,
}


def test_change_in_a_nested_type_changes_the_fingerprint() -> None:
    for kind in WRAPPERS:
        wrap = WRAPPERS[kind]
        deep = [holding(wrap(holding(wrap(player(fields))))) for fields in (SAME, OTHERS["field added"])]
        assert type_fingerprint(deep[0]) != type_fingerprint(deep[1])


def test_default_factories_and_sets_affect_the_fingerprint() -> None:
    made = [holding(dict[str, int], field(default_factory=factory)) for factory in (dict, lambda: {"a": 1})]
    assert type_fingerprint(made[0]) != type_fingerprint(made[1])
    sets = [holding(frozenset[str], frozenset(names)) for names in ("abc", "cba", "abd")]
    assert type_fingerprint(sets[0]) == type_fingerprint(sets[1]) != type_fingerprint(sets[2])


def test_recursive_type_has_a_fingerprint() -> None:
    assert type_fingerprint(Node) != type_fingerprint(msgspec.defstruct("Node", [("name", str)]))
