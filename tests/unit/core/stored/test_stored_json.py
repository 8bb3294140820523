"""Stored JSON of other versions is read as far as possible, and nothing is made up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, get_args

import msgspec
import pytest

from matchpod.core.stored.stored_json import StoredReader, UnreadableError
from matchpod.core.views.result_shapes import StoredDetection, StoredPlayer
from matchpod.core.views.round_shapes import RoundEntry, StoredRound
from matchpod.core.views.timeline_items import TimelineItem

NEEDED = {
    ("map_end", "status"),
    ("round_restored", "roundsKept"),
    ("anti_cheat", "detection"),
    ("anti_cheat", "detection.mapNumber"),
}
"""Fields of items without which an item cannot be shown. Do not add to them: give a new field a type with null."""


class Color(StrEnum):
    RED = "red"
    UNKNOWN = "unknown"


class Size(StrEnum):
    SMALL = "small"


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    count: int


class Outer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    text_of: str
    flag: bool
    color: Color
    ratio: float | None
    size: Size | None
    inner: Inner | None
    entries: tuple[Inner, ...]
    names: dict[str, str]
    limit: int = 7


FULL = {
    "textOf": "t", "flag": True, "color": "red", "ratio": 1, "size": "small", "inner": {"name": "a", "count": 1},
    "entries": [{"name": "b", "count": 2}], "names": {"x": "y"}, "limit": 3,
}  # fmt: skip
OUTER = StoredReader[Outer](Outer)
ITEM = StoredReader[TimelineItem](TimelineItem)


def read(**changes: object) -> Outer:
    return OUTER.read(json.dumps({**FULL, **changes}).encode())


def test_value_of_this_version_is_read_unchanged() -> None:
    assert read() == msgspec.json.decode(json.dumps(FULL).encode(), type=Outer)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("text_of", ""), ("flag", False), ("color", Color.UNKNOWN), ("ratio", None), ("size", None), ("inner", None),
     ("entries", ()), ("limit", 7)],
)  # fmt: skip
def test_missing_and_null_and_wrong_values_have_stand_ins(name: str, expected: object) -> None:
    encoded = {"text_of": "textOf"}.get(name, name)
    without = {key: value for key, value in FULL.items() if key != encoded}
    assert getattr(OUTER.read(json.dumps(without).encode()), name) == expected
    others: list[object] = [None, [], {}, "of tomorrow"]
    for wrong in others:
        if not (wrong == "of tomorrow" and name == "text_of"):
            assert getattr(read(**{encoded: wrong}), name) == expected


def test_number_has_no_stand_in() -> None:
    assert read(inner={"name": "a"}).inner is None
    assert read(entries=[{"name": "a"}, {"count": 2}, None]).entries == (Inner(name="", count=2),)
    with pytest.raises(UnreadableError):
        StoredReader[Inner](Inner).read(b'{"name": "a", "count": true}')
    assert StoredReader[Inner](Inner).read(b'{"name": "a"}', count=5).count == 5


def test_values_of_a_mapping_that_are_not_texts_are_left_out() -> None:
    assert read(names={"x": None, "y": "z"}).names == {"y": "z"}
    with pytest.raises(UnreadableError):
        read(names=None)


@pytest.mark.parametrize("stored", [b"", b"{", b"\xff", b"[]", b'"text"', b"null"])
def test_other_bytes_are_unreadable(stored: bytes) -> None:
    with pytest.raises(UnreadableError):
        OUTER.read(stored)


def test_member_without_a_stand_in_is_unreadable() -> None:
    class Sized(msgspec.Struct):
        size: Size
        inner: Inner

    reader = StoredReader[Sized](Sized)
    with pytest.raises(UnreadableError):
        reader.read(b'{"size": "huge", "inner": {"name": "a", "count": 1}}')
    with pytest.raises(UnreadableError):
        reader.read(b'{"size": "small"}')


@pytest.mark.parametrize("stored", [b'{"type":"voice","seq":1}', b'{"seq":1}', b"[]"])
def test_item_of_an_unknown_type_is_unreadable(stored: bytes) -> None:
    with pytest.raises(UnreadableError):
        ITEM.read(stored, seq=1)


def example(node: Any) -> Any:
    """Return a value of a type, as JSON, with all fields."""
    schema = msgspec.json.schema(node)
    return _example(schema, schema.get("$defs", {}))


def _example(schema: dict[str, Any], shapes: dict[str, Any]) -> Any:
    if "$ref" in schema:
        return _example(shapes[schema["$ref"].rpartition("/")[2]], shapes)
    if "anyOf" in schema:
        return _example(next(one for one in schema["anyOf"] if one != {"type": "null"}), shapes)
    if "enum" in schema:
        return next(one for one in schema["enum"] if one is not None)
    match schema.get("type"):
        case "object":
            return {name: _example(field, shapes) for name, field in schema.get("properties", {}).items()}
        case "array":
            return [_example(schema["items"], shapes)]
        case "string":
            return "text"
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return 1


def removals(value: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, inner in value.items():
        yield (*before, name)
        if isinstance(inner, dict):
            yield from removals(inner, (*before, name))


def without(value: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    first, *rest = names
    if rest:
        return {**value, first: without(value[first], tuple(rest))}
    return {name: inner for name, inner in value.items() if name != first}


@pytest.mark.parametrize("shape", get_args(TimelineItem), ids=lambda shape: shape.__struct_config__.tag)
def test_item_without_one_of_its_fields_is_still_an_item(shape: Any) -> None:
    tag = shape.__struct_config__.tag
    full = {**example(shape), "type": tag}
    for names in removals(full):
        if names == ("type",) or (tag, ".".join(names)) in NEEDED:
            continue
        item = ITEM.read(json.dumps(without(full, names)).encode(), seq=1)
        assert (type(item), item.seq) == (shape, 1), names


@pytest.mark.parametrize("shape", [StoredPlayer, StoredDetection, StoredRound])
def test_stored_shapes_need_no_field_but_the_number_of_a_round(shape: Any) -> None:
    full = example(shape)
    reader = StoredReader[Any](shape)
    for names in removals(full):
        if names == ("number",):
            continue
        assert isinstance(reader.read(json.dumps(without(full, names)).encode()), shape)


def test_stored_round_has_the_fields_of_a_round() -> None:
    assert set(StoredRound.__struct_encode_fields__) <= set(RoundEntry.__struct_encode_fields__)
