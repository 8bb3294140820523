"""Read the parameters of a query string and report all faults at once.

A read method returns None for a parameter that is absent or invalid; faults are collected, and `check` raises them.
A repeated parameter is a fault, because it is ambiguous, unless it is `repeatable`. An empty parameter is a fault,
because it is probably a bug in the client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from matchpod.core.faults import Fault, FaultCode, FaultParameter, FieldPath
from matchpod.core.iso_dates import DateRange, read_date
from matchpod.core.requests.json_fields import Faults
from matchpod.core.requests.text_rules import nearest, printable

_MAX_DIGITS: Final = 18
"""Maximum number of digits of a number. A longer number exceeds every limit, so only one more digit is read."""
MAX_HINTS: Final = 4
"""Maximum number of faults that suggest a name. Finding a name is slow, and a query may have 1,000 unknown names."""

E = TypeVar("E", bound=StrEnum)


class QueryFields:
    """The decoded parameters of one query string, and the names that are allowed."""

    def __init__(
        self, pairs: Sequence[tuple[str, str]], known: tuple[str, ...], *, repeatable: tuple[str, ...] = ()
    ) -> None:
        self._known, self._repeatable = known, repeatable
        self._faults = Faults()
        self._values: dict[str, str] = {}
        self._given: dict[str, list[str]] = {}
        for name, value in pairs:
            self._given.setdefault(name, []).append(value)
            self._values[name] = value
        for name, values in self._given.items():
            self._check_given(name, values)

    def fault(self, name: str, code: FaultCode, /, **parameters: FaultParameter) -> None:
        self._faults.add(Fault(code, parameters, FieldPath((name,))))

    def check(self) -> None:
        """Raise InvalidParamsError if there are faults."""
        if self._faults:
            raise self._faults.error("the query")

    def integer(self, name: str, *, at_least: int, at_most: int | None = None) -> int | None:
        """Read a decimal integer within its bounds."""
        text = self._values.get(name)
        if text is None:
            return None
        number = _number(text)
        if number is None or number < at_least or (at_most is not None and number > at_most):
            if at_most is None:
                self.fault(name, FaultCode.NOT_A_NUMBER_FROM, minimum=at_least)
            else:
                self.fault(name, FaultCode.NOT_A_NUMBER_BETWEEN, minimum=at_least, maximum=at_most)
            return None
        return number

    def choice(self, name: str, values: type[E]) -> E | None:
        """Read a member of an enum."""
        text = self._values.get(name)
        member = next((member for member in values if member.value == text), None)
        if text is not None and member is None:
            self.fault(name, FaultCode.NOT_A_CHOICE, choices=tuple(values))
        return member

    def text(self, name: str, rule: Callable[[str], Fault | None]) -> str | None:
        """Read a text that satisfies its rule."""
        text = self._values.get(name)
        fault = None if text is None else rule(text)
        if fault is not None:
            self._faults.add(fault.at(FieldPath((name,))))
            return None
        return text

    def texts(self, name: str, rule: Callable[[str], Fault | None], *, at_most: int) -> list[str]:
        """Read the distinct texts of a parameter that may be repeated."""
        found = list(dict.fromkeys(self._given[name])) if name in self._values else []
        if len(found) > at_most:
            self.fault(name, FaultCode.TOO_OFTEN, maximum=at_most, count=len(found))
            return []
        for text in found:
            if fault := rule(text):
                self._faults.add(fault.at(FieldPath((name,))))
        return found

    def date(self, name: str) -> DateRange | None:
        """Read the time range of a date or date-time."""
        text = self._values.get(name)
        span = None if text is None else read_date(text)
        if text is not None and span is None:
            self.fault(name, FaultCode.NOT_A_DATE)
        return span

    def _check_given(self, name: str, values: Sequence[str]) -> None:
        """Add a fault and drop the value if the parameter is unknown, empty, or repeated and not `repeatable`."""
        is_often = len(values) > 1 and name not in self._repeatable
        if name in self._known and not is_often and all(values):
            return
        if name not in self._known:
            self._reject_unknown(name)
        elif is_often:
            self.fault(name, FaultCode.REPEATED, count=len(values))
        else:
            self.fault(name, FaultCode.EMPTY)
        del self._values[name]

    def _reject_unknown(self, name: str) -> None:
        if self._faults.is_full:
            self._faults.count(1)
            return
        shown = _quoted_name(name)
        if len(self._faults) >= MAX_HINTS:
            self.fault(shown, FaultCode.UNKNOWN_PARAMETER)
        elif not self._known:
            self.fault(shown, FaultCode.NO_PARAMETERS)
        elif meant := nearest(name, self._known):
            self.fault(shown, FaultCode.MISSPELLED_PARAMETER, meant=meant)
        else:
            self.fault(shown, FaultCode.NOT_AMONG_PARAMETERS, known=self._known)


def _quoted_name(name: str) -> str:
    """Return an unknown parameter name, in quotes if it is empty or has whitespace at its ends."""
    return printable(name) if name and name == name.strip() else f'"{printable(name)}"'


def _number(text: str) -> int | None:
    if not (text.isascii() and text.isdigit()):
        return None
    return int(text.lstrip("0")[: _MAX_DIGITS + 1] or "0")
