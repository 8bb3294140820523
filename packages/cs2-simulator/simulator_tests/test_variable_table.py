"""Tests of the table of console variables."""

from __future__ import annotations

from cs2_simulator.variable_table import VARIABLES, VariableKind


def test_defaults_are_normalized() -> None:
    assert [
        variable.name for variable in VARIABLES.values() if variable.normalize(variable.default) != variable.default
    ] == []


def test_minimum_is_below_maximum() -> None:
    for variable in VARIABLES.values():
        if variable.minimum is not None and variable.maximum is not None:
            assert variable.minimum < variable.maximum


def test_names_differ_in_more_than_case() -> None:
    assert len({name.lower() for name in VARIABLES}) == len(VARIABLES)


def test_colons_in_a_default_text_are_not_parsed_as_bounds() -> None:
    variable = VARIABLES["tv_broadcast_url"]
    assert (variable.kind, variable.default, variable.minimum) == (VariableKind.TEXT, "http://localhost:8080", None)


def test_missing_bounds_are_none() -> None:
    assert (VARIABLES["mp_warmuptime"].minimum, VARIABLES["mp_warmuptime"].maximum) == (5, None)
    assert (VARIABLES["sv_vote_command_delay"].minimum, VARIABLES["sv_vote_command_delay"].maximum) == (None, 4.5)
