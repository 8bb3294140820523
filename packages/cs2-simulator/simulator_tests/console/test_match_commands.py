"""Tests of the commands that control the match and kick players."""

from __future__ import annotations

import pytest

from cs2_simulator.play.player import Participant
from simulator_tests.console.console_harness import ConsoleHarness


@pytest.mark.parametrize(
    ("command", "calls"),
    [
        ("mp_warmup_start", ["start warmup"]),
        ("mp_warmup_end", ["end warmup"]),
        ("mp_pause_match", ["pause mp_pause_match"]),
        ("mp_unpause_match", ["unpause mp_unpause_match"]),
        ("timeout_ct_start", ["pause TimeOutCTs"]),
        ("timeout_terrorist_start", ["pause TimeOutTs"]),
        ("mp_swapteams", ["swap"]),
        ('mp_backup_restore_load_file "backup_round03.txt"', ["restore backup_round03.txt"]),
    ],
)
def test_command_is_passed_to_the_game(harness: ConsoleHarness, command: str, calls: list[str]) -> None:
    harness.game.files = ["backup_round03.txt"]
    assert harness.execute(command) == ""
    assert harness.calls == [*calls, "restart countdown"]


@pytest.mark.parametrize(
    ("files", "command", "answer"),
    [
        ([], "mp_backup_restore_load_file x.txt", "Failed to load file: x.txt\n"),
        ([], "mp_backup_restore_load_file", "Usage:"),
        ([], "mp_backup_round_file_last", "mp_backup_round_file_last = \n"),
        (["backup_round03.txt"], "mp_backup_round_file_last", "mp_backup_round_file_last = backup_round03.txt\n"),
        ([], "kick", "Usage:"),
        ([], "kickid", "Usage:"),
        ([], "kick some one", 'Can\'t kick "some one", name not found\n'),
    ],
)
def test_answer_of_a_command_of_the_match(harness: ConsoleHarness, files: list[str], command: str, answer: str) -> None:
    harness.game.files = files
    assert harness.execute(command).startswith(answer)


@pytest.mark.parametrize("command", ['kickid "[U:1:7]"', "kick some one", 'kickid 65283 "not on the list"'])
@pytest.mark.parametrize("is_in_game", [True, False])
def test_player_is_kicked_by_steam_id_name_or_the_user_id_in_status(
    harness: ConsoleHarness, command: str, is_in_game: bool
) -> None:
    harness.add_player(Participant("Some One", 7), 3, is_in_game=is_in_game)
    assert ("65283" in harness.execute("status")) is not is_in_game
    harness.execute(command)
    assert harness.arena.players == []


def test_restart_variable_triggers_a_restart_and_reads_as_zero(harness: ConsoleHarness) -> None:
    assert harness.execute("mp_restartgame 4;") == ""
    assert harness.calls == ["restart countdown", "restart 4"]
    assert harness.execute("mp_restartgame") == "mp_restartgame = 0\n"


@pytest.mark.parametrize("value", ["0", "-1", "soon", "1e999"])
def test_restart_without_a_positive_time_does_nothing(harness: ConsoleHarness, value: str) -> None:
    assert harness.execute(f"mp_restartgame {value}") == ""
    assert harness.calls == []


def test_backups_are_listed_newest_first_and_five_by_default(harness: ConsoleHarness) -> None:
    harness.game.files = [f"backup_round{number:02}.txt" for number in range(7, 0, -1)]
    listed = harness.execute("mp_backup_restore_list_files").splitlines()
    assert listed[0] == "Listing backup files with prefix: backup"
    assert listed[1:6] == [f" backup_round{number:02}.txt" for number in range(7, 2, -1)]
    assert listed[6] == "7 backup files total."
    assert len(harness.execute("mp_backup_restore_list_files 2").splitlines()) == 4
    assert len(harness.execute("mp_backup_restore_list_files -2").splitlines()) == 2


def test_player_is_kicked_by_user_id(harness: ConsoleHarness) -> None:
    harness.add_player(Participant("A", 7), 3)
    assert harness.execute('kickid 3 "not on the list"') == ""
    assert harness.log.lines == ['"A<3><[U:1:7]><CT>" disconnected (reason "NETWORK_DISCONNECT_KICKED")']
    assert harness.calls == []


def test_bot_kick_kicks_only_bots(harness: ConsoleHarness) -> None:
    harness.add_player(Participant("A", 7), 1)
    harness.add_player(Participant("Rebel", 0), 2)
    harness.execute("bot_kick")
    assert [player.person.name for player in harness.arena.players] == ["A"]
