"""Views take their fields from rows."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.service.common.row_views import view_of


class Row(msgspec.Struct, frozen=True):
    """A row with a secret that its view does not have."""

    name: str = "one"
    secret: str = "hidden"
    started_at_ms: int = 1_763_196_000_045
    ended_at_ms: int | None = None


class View(msgspec.Struct, frozen=True):
    """A view of a row."""

    name: str
    started_at: str
    ended_at: str | None


class LargerView(View, frozen=True):
    """A view with a field that rows do not have."""

    number: int


def test_fields_are_copied_and_times_are_text() -> None:
    assert view_of(View, Row()) == View("one", "2025-11-15T08:40:00.045Z", None)


def test_given_fields_take_precedence_over_the_row() -> None:
    view = view_of(LargerView, Row(), name="two", number=7)
    assert view == LargerView("two", "2025-11-15T08:40:00.045Z", None, 7)


def test_missing_field_is_an_error() -> None:
    with pytest.raises(AttributeError, match="number_ms"):
        view_of(LargerView, Row())
