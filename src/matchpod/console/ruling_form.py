"""Define the form for a ruling on a match: its choices, the values that were entered, and their faults."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from matchpod.console.filters import storable
from matchpod.console.match_view import team_names
from matchpod.core.errors import InvalidParamsError
from matchpod.core.requests.ruling_request import RULING
from matchpod.core.requests.text_rules import MAX_PERSON, MAX_REASON
from matchpod.core.rulings import RuledWinner, has_ruled_teams, rulings_end_ms
from matchpod.service.reading.match_details import MatchDetail

_EMPTY: Final[Mapping[str, str]] = MappingProxyType({field.name: "" for field in RULING})
_LABELS: Final = {field.name: field.label for field in RULING}


class RulingForm(msgspec.Struct, frozen=True, kw_only=True):
    until_ms: int
    choices: tuple[tuple[str, str], ...]
    given: Mapping[str, str] = _EMPTY
    faults: Mapping[str, str] = MappingProxyType({})
    """Faults by field name."""
    max_reason: int = MAX_REASON
    max_person: int = MAX_PERSON

    @property
    def first_fault(self) -> str:
        """Name of the first invalid field on the page; empty if all are valid."""
        return next((name for name in _EMPTY if name in self.faults), "")

    @property
    def summary(self) -> list[tuple[str, str, str]]:
        """Id, label and fault of each invalid field."""
        return [(f"ruling-{name}", _LABELS[name], self.faults[name]) for name in _EMPTY if name in self.faults]


def ruling_form(match: MatchDetail, now_ms: int) -> RulingForm | None:
    """Return the form with nothing entered; None if the match has not ended, or ended too long ago for a ruling."""
    if match.ended_at_ms is None or now_ms > rulings_end_ms(match.ended_at_ms):
        return None
    team1, team2 = team_names(match)
    teams = ((RuledWinner.TEAM1.value, team1), (RuledWinner.TEAM2.value, team2))
    void = (RuledWinner.NONE.value, "No team: the match is void")
    return RulingForm(
        until_ms=rulings_end_ms(match.ended_at_ms),
        choices=(*(teams if has_ruled_teams(match.settings) else ()), void),
    )


def read_given(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the values that were entered, without whitespace at their ends."""
    return {name: storable(fields.get(name, "").strip()) for name in _EMPTY}


def with_faults(form: RulingForm, given: Mapping[str, str], error: InvalidParamsError) -> RulingForm:
    """Return the form with the values that were entered, and why they were rejected."""
    faults = {str(fault.path): f"{fault.message}." for fault in error.faults}
    return msgspec.structs.replace(form, given=given, faults=faults)
