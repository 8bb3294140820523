"""A decoded state has each text once."""

from __future__ import annotations

import msgspec

from matchpod.core.stored.shared_texts import share_texts


class Person(msgspec.Struct, frozen=True, array_like=True):
    name: str
    nick: str | None = None
    number: int = 0


class State(msgspec.Struct):
    people: list[Person] = []
    captain: Person | None = None
    line_up: tuple[str, ...] = ()
    by_round: dict[int, dict[str, str]] = {}
    next: State | None = None
    money: dict[str, int] = {}


def test_equal_texts_are_one_object_wherever_they_are() -> None:
    ann = [Person("Ann", "Annie", 1), Person("Annie")]
    state = State(ann, ann[0], ("Ann", "Ben"), {1: {"best": "Ann"}}, State(line_up=("Ann",)), {"Ann": 800})
    encoded = msgspec.msgpack.encode(state)
    shared = share_texts(msgspec.msgpack.decode(encoded, type=State))
    assert msgspec.msgpack.encode(shared) == encoded
    first, second = shared.people
    assert shared.captain is not None
    assert shared.next is not None
    found = (shared.captain.name, shared.line_up[0], shared.by_round[1]["best"], shared.next.line_up[0])
    assert all(text is first.name for text in found)
    assert first.nick is second.name
