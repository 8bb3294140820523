"""The tables of request fields: complete, and each with what its users need."""

from __future__ import annotations

import re

import msgspec

from matchpod.core.faults import FieldPath
from matchpod.core.model import GameSettings, MatchRequest
from matchpod.core.requests import request_table as table
from matchpod.core.requests.json_fields import AnyField, Faults

OBJECTS = (
    table.BODY,
    table.SETTINGS,
    tuple(table.LISTED_TEAMS.values()),
    table.TEAM,
    table.OVERTIME_RULES,
    tuple(table.MAPS_GIVEN.values()),
)


def names(fields: tuple[AnyField, ...]) -> set[str]:
    return {field.name for field in fields}


def encoded(shape: type[msgspec.Struct]) -> set[str]:
    """Return the names of a struct's fields, spelled as in the API."""
    return {re.sub(r"_([a-z])", lambda found: found[1].upper(), name) for name in shape.__struct_fields__}


def test_names_are_unique() -> None:
    for fields in OBJECTS:
        assert len(names(fields)) == len(fields)


def test_every_value_of_a_request_has_a_field() -> None:
    assert encoded(MatchRequest) - names(table.BODY) == {"labels"}
    assert encoded(GameSettings) - names(table.SETTINGS) == {"team1", "team2", "tvDelayS"}
    assert names(table.SETTINGS) - encoded(GameSettings) == {"map", "teams", "labels"}


def test_every_field_of_a_form_has_a_label() -> None:
    without = {field.name for fields in OBJECTS for field in fields if not field.label}
    assert without == {"gameType", "gameSettings", "overtime", "mapsWon", "team1", "team2"}


def test_example_satisfies_its_rule() -> None:
    for field in [field for fields in OBJECTS for field in fields if field.example]:
        faults = Faults()
        assert field.rule.read(field.example, FieldPath(), faults) == field.example
        assert not faults
