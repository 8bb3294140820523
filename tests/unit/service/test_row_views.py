"""Views take their fields from rows."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.service.row_views import view_of


class Row(msgspec.Struct, frozen=True):
    """A row with a secret that its view does not have."""

    name: str = "one"
    secret: str = "hidden"
    started_at_ms: int = 1_763_196_000_045
    ended_at_ms: int | None = None


class View(msgspec.Struct, frozen=True):
    name: str
    started_at: str
    ended_at: str | None


class LargerView(View, frozen=True):
    """A view with a field that rows do not have."""

    number: int


def test_given_fields_take_precedence_over_the_row() -> None:
    view = view_of(LargerView, Row(), name="two", number=7)
    assert view == LargerView("two", "2025-11-15T08:40:00.045Z", None, 7)


def test_first_row_that_has_a_field_provides_it() -> None:
    class Numbered(msgspec.Struct, frozen=True):
        number: int = 7
        name: str = "two"

    view = view_of(LargerView, Row(), Numbered())
    assert view == LargerView("one", "2025-11-15T08:40:00.045Z", None, 7)


def test_missing_field_is_an_error() -> None:
    with pytest.raises(TypeError, match="number"):
        view_of(LargerView, Row())


def test_field_that_no_row_has_keeps_its_default() -> None:
    class Noted(View, frozen=True):
        note: str = "none"

    assert view_of(Noted, Row()).note == "none"
