"""Read the parameters of a query string and report all faults at once.

A read method returns None for a parameter that is absent or invalid; faults are collected, and `check` raises them.
A repeated parameter is a fault because it is ambiguous; an empty one because it is probably a bug in the client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from matchpod.core.errors import Fault, InvalidParamsError
from matchpod.core.iso_dates import INVALID_DATE, Span, read_date
from matchpod.core.requests.text_rules import nearest, printable

_MAX_DIGITS: Final = 18
"""A number with more digits exceeds every limit; only one more is converted, since conversion is expensive."""
MAX_HINTS: Final = 16
"""Faults after which hints stop. Finding the nearest name is slow, and a query may have a thousand unknown ones."""

E = TypeVar("E", bound=StrEnum)


class QueryFields:
    """The decoded parameters of one query string, and the names that are allowed."""

    def __init__(self, pairs: Sequence[tuple[str, str]], known: tuple[str, ...]) -> None:
        self._known = known
        self._faults: list[Fault] = []
        self._values: dict[str, str] = {}
        counts: dict[str, int] = {}
        for name, value in pairs:
            counts[name] = counts.get(name, 0) + 1
            self._values[name] = value
        for name, count in counts.items():
            self._check_given(name, count)

    def fault(self, name: str, message: str) -> None:
        """Add a fault; the message is a phrase that follows the name of the parameter."""
        self._faults.append(Fault(name, message))

    def check(self) -> None:
        """Raise InvalidParamsError with all faults, if there are any."""
        if not self._faults:
            return
        first, count = self._faults[0], len(self._faults)
        message = f"{first.path} {first.message}" if count == 1 else f"{count} faults in the query"
        raise InvalidParamsError(message, tuple(self._faults))

    def integer(self, name: str, *, at_least: int, at_most: int | None = None) -> int | None:
        """Read a decimal integer within its bounds."""
        text = self._values.get(name)
        if text is None:
            return None
        number = _number(text)
        if number is None or number < at_least or (at_most is not None and number > at_most):
            bounds = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
            self.fault(name, f"must be a whole number {bounds}")
            return None
        return number

    def choice(self, name: str, values: type[E]) -> E | None:
        """Read a member of an enum."""
        text = self._values.get(name)
        member = next((member for member in values if member.value == text), None)
        if text is not None and member is None:
            self.fault(name, f"must be one of {', '.join(values)}")
        return member

    def text(self, name: str, rule: Callable[[str], str | None]) -> str | None:
        """Read a text. The rule returns None for a valid text, else an error message."""
        text = self._values.get(name)
        message = None if text is None else rule(text)
        if message is not None:
            self.fault(name, message)
            return None
        return text

    def date(self, name: str) -> Span | None:
        """Read the time range of a date or date-time."""
        text = self._values.get(name)
        span = None if text is None else read_date(text)
        if text is not None and span is None:
            self.fault(name, INVALID_DATE)
        return span

    def _check_given(self, name: str, count: int) -> None:
        """Add a fault and drop the value, unless the parameter is known, given once and not empty."""
        if name in self._known and count == 1 and self._values[name]:
            return
        if name not in self._known:
            hint = f"; {self._hint(name)}" if len(self._faults) < MAX_HINTS else ""
            self.fault(_quoted_name(name), f"is not a known parameter{hint}")
        elif count > 1:
            self.fault(name, f"must be given once, not {count} times")
        else:
            self.fault(name, "must not be empty")
        del self._values[name]

    def _hint(self, name: str) -> str:
        if not self._known:
            return "this address has none"
        suggestion = nearest(name, self._known)
        return f"did you mean {suggestion}?" if suggestion else f"known parameters: {', '.join(self._known)}"


def _quoted_name(name: str) -> str:
    """Return an unknown name, in quotes if it is empty or has surrounding whitespace."""
    return printable(name) if name and name == name.strip() else f'"{printable(name)}"'


def _number(text: str) -> int | None:
    if not (text.isascii() and text.isdigit()):
        return None
    return int(text.lstrip("0")[: _MAX_DIGITS + 1] or "0")
