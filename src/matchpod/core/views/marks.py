"""What marks a match wherever it is shown: its labels, and whether it is simulated; both are left out if not.

Labels never change, and GOTV is known once the server runs. They are stored as shown. Only the console shows which
secrets were given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

LabelsIfAny = Annotated[
    dict[str, str] | UnsetType, Meta(description="The `labels` given at creation; left out if there are none.")
]
SimulatedIfSo = Annotated[
    bool | UnsetType,
    Meta(
        description="Whether the match is in a sandbox, so that its game is simulated or faster than real time; left "
        "out if not."
    ),
]


class Gotv(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How people watch a match."""

    port: Annotated[
        int | None, Meta(description="The port of GOTV, at the `ip` of the server; null if it is not known.")
    ] = None
    delay_seconds: Annotated[int, Meta(description="How far GOTV is behind the game.")]


GotvIfOn = Annotated[
    Gotv | UnsetType,
    Meta(description="GOTV, if the match is recorded and its server is running or was; else left out."),
]


class Marks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The marks of a match."""

    labels: LabelsIfAny = UNSET
    simulated: SimulatedIfSo = UNSET
    gotv: GotvIfOn = UNSET
    secrets: tuple[str, ...] = ()
    """The fields of the request whose values are not kept readable: a match that is created again needs them again."""


NO_MARKS: Final = Marks()

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Marks).decode


def encode_marks(labels: Mapping[str, str], *, is_simulated: bool, secrets: tuple[str, ...] = ()) -> bytes | None:
    """Return what is stored; None if there is nothing to store."""
    marks = Marks(labels=dict(labels) or UNSET, simulated=is_simulated or UNSET, secrets=secrets)
    return None if marks == NO_MARKS else _encode(marks)


def with_gotv(stored: bytes | None, gotv: Gotv) -> bytes:
    """Return what is stored once GOTV is known."""
    return _encode(msgspec.structs.replace(read_marks(stored), gotv=gotv))


def read_marks(stored: bytes | None) -> Marks:
    """Return the stored marks; those of a form that this version does not know are left out."""
    if stored is None:
        return NO_MARKS
    try:
        return _decode(stored)
    except msgspec.DecodeError:
        return NO_MARKS
