"""Parse the filters of a list from the query string of its page. A fault is shown next to its field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar
from urllib.parse import urlencode

import msgspec

from matchpod.core.errors import InvalidParamsError

Q = TypeVar("Q")

PAGING = ("page", "pageSize")


class Filters(msgspec.Struct, Generic[Q], frozen=True, kw_only=True):
    """The filters of a list, as given and as parsed, with their faults."""

    given: Mapping[str, str]
    """The given parameters, as shown on the page and used in links."""
    query: Q | None
    """The parsed filters; None if a parameter has a fault."""
    faults: Mapping[str, str]
    """The fault of each invalid parameter, as a phrase that follows the parameter's name in a sentence."""
    labels: Mapping[str, str]
    """Labels of the parameters that have a field on the page, in the order of the page."""

    @property
    def is_narrowed(self) -> bool:
        return any(name not in PAGING for name in self.given)

    def value(self, name: str) -> str:
        """Return the value of a filter; empty if the filter is not set."""
        return self.given.get(name, "")

    @property
    def wrong_fields(self) -> list[tuple[str, str, str]]:
        """Name, label and fault of each invalid field, in the order of the page."""
        return [(name, label, self.faults[name]) for name, label in self.labels.items() if name in self.faults]

    @property
    def other_faults(self) -> list[tuple[str, str]]:
        """Name and fault of each invalid parameter that has no field on the page."""
        return [(name, message) for name, message in self.faults.items() if name not in self.labels]

    def link(self, **changes: str) -> str:
        """Return the query string for the first page with some filters changed; an empty value removes a filter."""
        changed = {**self.given, **changes}
        return urlencode({name: value for name, value in changed.items() if value and name != "page"})


def read_filters(
    given: Mapping[str, str], read: Callable[[Sequence[tuple[str, str]]], Q], labels: Mapping[str, str]
) -> Filters[Q]:
    """Parse the parameters of a page with `read`, the parser that the API uses."""
    pairs = list(given.items())
    shown = {storable(name): storable(value) for name, value in pairs}
    try:
        return Filters(given=shown, query=read(pairs), faults={}, labels=labels)
    except InvalidParamsError as exc:
        faults = {str(fault.path): fault.message for fault in exc.faults}
        return Filters(given=shown, query=None, faults=faults, labels=labels)


def storable(text: str) -> str:
    """Return the text with undecodable bytes replaced, so that a page can contain it."""
    return text.encode(errors="replace").decode()


def is_day(text: str) -> bool:
    """True if an input for a date can show the text: it is empty or has the form `2026-09-21`."""
    parts = text.split("-")
    return not text or ([len(part) for part in parts] == [4, 2, 2] and all(part.isdecimal() for part in parts))
