"""Define the marks that are shown with a match: its labels, whether it is simulated, and its GOTV port and delay.

Marks that a match does not have are left out. Labels never change, and GOTV is known once the server is running. The
stored form of the marks is the form that is shown. Only the console shows which secrets the caller set.
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
    """Where people can watch a match."""

    port: Annotated[
        int | None, Meta(description="The port of GOTV, at the `ip` of the server; null if it is not known.")
    ] = None
    delay_seconds: Annotated[int, Meta(description="How far GOTV is behind the game.")]


GotvIfOn = Annotated[
    Gotv | UnsetType,
    Meta(description="GOTV, if the match is recorded and its server is running or was; else left out."),
]


class Marks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The marks of a match, in the form in which they are stored and shown."""

    labels: LabelsIfAny = UNSET
    simulated: SimulatedIfSo = UNSET
    gotv: GotvIfOn = UNSET
    secrets: tuple[str, ...] = ()
    """The names of the secret fields in the create request. Their values are not shown, so a person who repeats the
    match must enter them again."""


NO_MARKS: Final = Marks()

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Marks).decode


def encode_marks(labels: Mapping[str, str], *, is_simulated: bool, secrets: tuple[str, ...] = ()) -> bytes | None:
    """Return the stored form of the marks; None if there are none."""
    marks = Marks(labels=dict(labels) or UNSET, simulated=is_simulated or UNSET, secrets=secrets)
    return None if marks == NO_MARKS else _encode(marks)


def with_gotv(stored: bytes | None, gotv: Gotv) -> bytes:
    """Return the stored marks with GOTV added."""
    return _encode(msgspec.structs.replace(read_marks(stored), gotv=gotv))


def read_marks(stored: bytes | None) -> Marks:
    """Return the stored marks; no marks if this version cannot read them."""
    if stored is None:
        return NO_MARKS
    try:
        return _decode(stored)
    except msgspec.DecodeError:
        return NO_MARKS
