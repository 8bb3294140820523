"""Tests of the limits of console answers: real answers fit many times, and each command has a limit on purpose."""

from __future__ import annotations

import pytest

from cs2_protocol import console_commands
from cs2_protocol.console_limits import ACTION_BYTES, CVAR_BYTES, LOAD_BYTES, MAX_CALL_BYTES, answer_limit
from matchpod.core.model import CvarSetting, GameSettings, MatchType, TeamRoster
from matchpod.core.requests.request_table import MAX_CVAR_BYTES, MAX_CVAR_LINES
from matchpod.cs2 import match_commands


def settings(match_type: MatchType) -> GameSettings:
    teams = [TeamRoster(name, (f"7656119800000000{number}",)) for number, name in enumerate(("Reds", "Blues"))]
    custom = (CvarSetting("mp_buytime", "77"),)
    return GameSettings(match_type=match_type, maps=("de_nuke",), custom_cvars=custom, team1=teams[0], team2=teams[1])


@pytest.mark.parametrize("match_type", MatchType)
def test_commands_that_do_something_may_print_more_than_a_variable(match_type: MatchType) -> None:
    game = settings(match_type)
    *setup, load = match_commands.setup_commands(game, map_name="de_nuke")
    sent = [
        *setup,
        *match_commands.match_commands(game),
        *match_commands.warmup_commands(game),
        *match_commands.restart_commands(game),
        *match_commands.start_commands(game),
        *match_commands.reset_commands(),
        console_commands.end_match_command(),
        console_commands.REMOVE_LOG_LISTENERS,
        console_commands.kick_command(2, "The match is over"),
        console_commands.load_match_command("http://x.example", header_name="X", header_value="y"),
    ]
    assert {answer_limit(command) for command in sent} == {ACTION_BYTES}
    assert answer_limit(load) == answer_limit(match_commands.load_map_command("workshop/123")) == LOAD_BYTES
    assert {answer_limit(name) for name in match_commands.expected_cvars(game)} == {CVAR_BYTES}


def test_variables_of_the_largest_match_fit_into_one_call() -> None:
    line = len("mp_guardian_bomb_plant_custom_x_mark_location = \n")
    assert 10 * (MAX_CVAR_BYTES + MAX_CVAR_LINES * line) < MAX_CALL_BYTES
