"""Tests of the console variables of a server."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.console_answers import parse_cvar
from cs2_simulator.variable_table import VARIABLES, VariableKind
from cs2_simulator.variables import Variables

NAMES = [
    name for name, variable in VARIABLES.items() if variable.kind is not VariableKind.RAW and not variable.is_hidden
]
"""All variables of the game that its console accepts."""


@pytest.fixture
def variables() -> Variables:
    return Variables()


def test_unknown_variable_is_empty_and_cannot_be_set(variables: Variables) -> None:
    assert not variables.is_known("mp_nonsense")
    assert variables.text("mp_nonsense") == ""
    assert variables.number("mp_nonsense") == 0
    assert variables.set("mp_nonsense", "1") == "mp_nonsense is not a console variable"
    assert variables.describe("mp_nonsense") == "mp_nonsense = "


def test_developer_variable_is_readable_but_unknown_to_the_console(variables: Variables) -> None:
    assert variables.text("mp_winlimit") == "0"
    assert not variables.is_known("mp_winlimit")
    assert variables.set("mp_winlimit", "5") is not None
    assert variables.text("mp_winlimit") == "0"


def test_values_are_formatted_by_kind(variables: Variables) -> None:
    assert variables.describe("mp_maxrounds") == "mp_maxrounds = 0"
    assert variables.describe("mp_friendlyfire") == "mp_friendlyfire = false"
    assert variables.describe("mp_roundtime") == "mp_roundtime = 5.000000"
    assert variables.describe("bot_quota_mode") == "bot_quota_mode = normal"


def test_names_are_case_insensitive_and_printed_in_canonical_case(variables: Variables) -> None:
    assert variables.set("AMMO_50ae_max", "7") is None
    assert variables.describe("ammo_50ae_MAX") == "ammo_50AE_max = 7"


@pytest.mark.parametrize(
    ("name", "value", "after"),
    [
        ("mp_freezetime", "99", "60"),
        ("mp_freezetime", "-3", "0"),
        ("mp_freezetime", "15.9", "15"),
        ("mp_warmuptime", "1", "5.000000"),
        ("mp_roundtime", "999", "60.000000"),
        ("mp_maxrounds", "-5", "0"),
        ("mp_match_restart_delay", "0", "1"),
        ("mp_maxrounds", "24 rounds", "24"),
        ("mp_maxrounds", "many", "0"),
        ("mp_maxrounds", "true", "1"),
        ("mp_maxrounds", "9" * 400, "2147483647"),
        ("mp_friendlyfire", "TRUE", "true"),
        ("mp_friendlyfire", "2", "true"),
        ("mp_friendlyfire", "off", "false"),
        ("mp_timelimit", "7.5", "7.500000"),
        ("hostname", "  A  B ", "  A  B "),
    ],
)
def test_value_is_parsed_and_clamped_as_in_the_game(variables: Variables, name: str, value: str, after: str) -> None:
    assert variables.set(name, value) is None
    assert variables.text(name) == after


def test_observers_are_called_only_on_changes(variables: Variables) -> None:
    changed_names: list[str] = []
    variables.observers.append(changed_names.append)
    variables.set("MP_freezetime", "9")
    variables.set("mp_freezetime", "9")
    variables.set("mp_warmuptime", "30")
    variables.set("mp_winlimit", "1")
    variables.load_mode()
    assert changed_names == ["mp_freezetime"]


def test_mode_config_overrides_only_its_own_variables(variables: Variables) -> None:
    variables.set("mp_maxrounds", "6")
    variables.set("mp_match_restart_delay", "120")
    variables.load_mode()
    assert (variables.whole("mp_maxrounds"), variables.whole("mp_match_restart_delay")) == (24, 120)


def test_value_set_after_the_mode_config_lasts_until_the_next_load(variables: Variables) -> None:
    variables.load_mode()
    variables.set("mp_maxrounds", "6")
    assert variables.whole("mp_maxrounds") == 6
    variables.load_mode()
    assert variables.whole("mp_maxrounds") == 24


def test_mode_depends_on_game_type_and_game_mode(variables: Variables) -> None:
    assert variables.mode_name == "competitive"
    variables.set("game_type", "1")
    variables.set("game_mode", "2")
    assert variables.mode_name == "deathmatch"
    assert variables.whole("mp_maxrounds") == 0
    variables.load_mode()
    assert variables.number("mp_timelimit") == 10


def test_variables_of_a_server_use_little_memory(variables: Variables) -> None:
    for name in NAMES[:200]:
        variables.set(name, "3")
    changed = variables._changed
    size = sys.getsizeof(changed) + sum(sys.getsizeof(value) for value in changed.values())
    assert size < 32_000
    fresh = Variables()
    fresh.load_mode()
    assert sys.getsizeof(fresh._changed) < 1_000


@given(st.sampled_from(NAMES), st.text(alphabet="0123456789.-+aeE ", max_size=12))
def test_printed_value_can_be_parsed(name: str, value: str) -> None:
    variables = Variables()
    assert variables.set(name, value) is None
    shown = parse_cvar(variables.describe(name), name)
    assert shown is not None
    assert shown.equals(variables.text(name))
    variables.whole(name)
