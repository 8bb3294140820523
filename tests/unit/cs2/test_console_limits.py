"""Tests of the limits of console answers: real answers fit many times, and each command has a limit on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchpod.core.model import CvarSetting, GameSettings, MatchType, TeamRoster
from matchpod.cs2 import console_commands as commands
from matchpod.cs2.console_limits import ACTION_BYTES, CVAR_BYTES, LOAD_BYTES, MAX_CALL_BYTES, answer_limit
from matchpod.cs2.cvars import MAX_LINES, MAX_TEXT_BYTES
from matchpod.cs2.rcon import BURST_BYTES, MAX_ANSWER_BYTES

KIB = 1024


def test_limits_of_questions() -> None:
    limits = {name: answer_limit(name) // KIB for name in ("status", "status_json", "get5_status", "mp_maxrounds")}
    assert limits == {"status": 256, "status_json": 64, "get5_status": 32, "mp_maxrounds": 4}
    assert answer_limit("logaddress_list_http") == 32 * KIB


def settings(match_type: MatchType) -> GameSettings:
    teams = [TeamRoster(name, (f"7656119800000000{number}",)) for number, name in enumerate(("Reds", "Blues"))]
    custom = (CvarSetting("mp_buytime", "77"),)
    return GameSettings(match_type=match_type, maps=("de_nuke",), custom_cvars=custom, team1=teams[0], team2=teams[1])


@pytest.mark.parametrize("match_type", MatchType)
def test_commands_that_do_something_may_print_more_than_a_variable(match_type: MatchType) -> None:
    game = settings(match_type)
    *setup, load = commands.setup_commands(game, map_name="de_nuke")
    sent = [
        *setup,
        *commands.match_commands(game),
        *commands.warmup_commands(game),
        *commands.restart_commands(game),
        *commands.start_commands(game),
        *commands.reset_commands(),
        commands.end_match_command(),
        commands.REMOVE_LOG_LISTENERS,
        commands.kick_command(2, "The match is over"),
        commands.load_match_command("http://x.example", header_name="X", header_value="y"),
    ]
    assert {answer_limit(command) for command in sent} == {ACTION_BYTES}
    assert answer_limit(load) == answer_limit(commands.load_map_command("workshop/123")) == LOAD_BYTES
    assert {answer_limit(name) for name in commands.expected_cvars(game)} == {CVAR_BYTES}


def test_answers_of_real_servers_fit_ten_times(corpus: Path) -> None:
    for file in corpus.glob("status_*"):
        command = "status_json" if file.suffix == ".json" else "status"
        assert 10 * file.stat().st_size < answer_limit(command)


def test_variables_of_the_largest_match_fit_into_one_call() -> None:
    line = len("mp_guardian_bomb_plant_custom_x_mark_location = \n")
    assert 10 * (MAX_TEXT_BYTES + MAX_LINES * line) < MAX_CALL_BYTES


def test_largest_answers_fit_into_a_call_and_a_burst() -> None:
    assert answer_limit("status") <= MAX_ANSWER_BYTES <= MAX_CALL_BYTES <= BURST_BYTES / 2
