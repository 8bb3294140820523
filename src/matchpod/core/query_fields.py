"""How is a query string read so that every fault is told at once?

A reading method answers None for a parameter that is absent or wrong; what is wrong stands in the faults, and `check`
raises them. A parameter is given once, with a value: which of two is meant cannot be told, and an empty one is the
slip of a program that filled in nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from matchpod.core.errors import Fault, InvalidParamsError
from matchpod.core.iso_dates import EXPECTED, Span, read_date
from matchpod.core.text_rules import nearest, shown

_MAX_DIGITS: Final = 18
"""More are past every bound here, and thousands of them would be dear to read."""
MAX_HINTS: Final = 16
"""Unknown parameters that get one: finding the nearest name is the dear part, and a query has room for a thousand."""

E = TypeVar("E", bound=StrEnum)


class QueryFields:
    """The parameters of one query string, already decoded, with the names they may have."""

    def __init__(self, given: Sequence[tuple[str, str]], known: tuple[str, ...]) -> None:
        self._known = known
        self._faults: list[Fault] = []
        self._values: dict[str, str] = {}
        times: dict[str, int] = {}
        for name, value in given:
            times[name] = times.get(name, 0) + 1
            self._values[name] = value
        for name, count in times.items():
            self._admit(name, count)

    def fault(self, name: str, message: str) -> None:
        """Note a fault of a parameter; the message is a predicate of its name."""
        self._faults.append(Fault(name, message))

    def check(self) -> None:
        """Raise everything that is wrong, if anything is."""
        if not self._faults:
            return
        only = self._faults[0]
        told = f"{only.path} {only.message}" if len(self._faults) == 1 else f"{len(self._faults)} faults in the query"
        raise InvalidParamsError(told, tuple(self._faults))

    def whole(self, name: str, *, at_least: int, at_most: int | None = None) -> int | None:
        """A whole number in plain digits, within its bounds."""
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
        """One value of a closed set."""
        text = self._values.get(name)
        member = next((member for member in values if member.value == text), None)
        if text is not None and member is None:
            self.fault(name, f"must be one of {', '.join(values)}")
        return member

    def text(self, name: str, rule: Callable[[str], str | None]) -> str | None:
        """Text that keeps its rule: None for good text, else what would be right."""
        text = self._values.get(name)
        message = None if text is None else rule(text)
        if message is not None:
            self.fault(name, message)
            return None
        return text

    def date(self, name: str) -> Span | None:
        """The time that a date or date-time means."""
        text = self._values.get(name)
        span = None if text is None else read_date(text)
        if text is not None and span is None:
            self.fault(name, EXPECTED)
        return span

    def _admit(self, name: str, count: int) -> None:
        """Let a parameter be read that is known and given once, with a value."""
        if name in self._known and count == 1 and self._values[name]:
            return
        if name not in self._known:
            hint = f"; {self._hint(name)}" if len(self._faults) < MAX_HINTS else ""
            self.fault(_named(name), f"is not a known parameter{hint}")
        elif count > 1:
            self.fault(name, f"must be given once, not {count} times")
        else:
            self.fault(name, "must not be empty")
        del self._values[name]

    def _hint(self, name: str) -> str:
        meant = nearest(name, self._known)
        return f"did you mean {meant}?" if meant else f"known are {', '.join(self._known)}"


def _named(name: str) -> str:
    """A name that nobody knows; in quotes where it could not be seen else."""
    return shown(name) if name and name == name.strip() else f'"{shown(name)}"'


def _number(text: str) -> int | None:
    if not (text.isascii() and text.isdigit()):
        return None
    return int(text.lstrip("0")[: _MAX_DIGITS + 1] or "0")
