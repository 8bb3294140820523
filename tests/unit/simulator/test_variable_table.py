"""The table of variables."""

from __future__ import annotations

from matchpod.simulator.variable_table import VARIABLES, Kind


def test_every_default_is_a_value_the_variable_keeps() -> None:
    assert [
        variable.name for variable in VARIABLES.values() if variable.read(variable.default) != variable.default
    ] == []


def test_bounds_stand_in_their_order() -> None:
    for variable in VARIABLES.values():
        if variable.least is not None and variable.greatest is not None:
            assert variable.least < variable.greatest


def test_names_differ_in_more_than_case() -> None:
    assert len({name.lower() for name in VARIABLES}) == len(VARIABLES)


def test_text_with_colons_has_no_bounds() -> None:
    variable = VARIABLES["tv_broadcast_url"]
    assert (variable.kind, variable.default, variable.least) == (Kind.TEXT, "http://localhost:8080", None)


def test_open_ends_are_no_bounds() -> None:
    assert (VARIABLES["mp_warmuptime"].least, VARIABLES["mp_warmuptime"].greatest) == (5, None)
    assert (VARIABLES["sv_vote_command_delay"].least, VARIABLES["sv_vote_command_delay"].greatest) == (None, 4.5)
