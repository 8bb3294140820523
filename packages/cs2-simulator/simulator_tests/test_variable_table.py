"""Tests of the table of console variables."""

from __future__ import annotations

from cs2_simulator.variable_table import VARIABLES, VariableKind


def test_colons_in_a_default_text_are_not_parsed_as_bounds() -> None:
    variable = VARIABLES["tv_broadcast_url"]
    assert (variable.kind, variable.default, variable.minimum) == (VariableKind.TEXT, "http://localhost:8080", None)
