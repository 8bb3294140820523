"""Commands that steer play and throw people out."""

from __future__ import annotations

import pytest

from matchpod.simulator.play.player import Person
from tests.unit.simulator.console.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize(
    ("command", "note"),
    [
        ("mp_warmup_start", "start warmup"),
        ("mp_warmup_end", "end warmup"),
        ("mp_pause_match", "pause mp_pause_match"),
        ("mp_unpause_match", "unpause mp_unpause_match"),
        ("timeout_ct_start", "pause TimeOutCTs"),
        ("timeout_terrorist_start", "pause TimeOutTs"),
        ("mp_swapteams", "swap"),
    ],
)
def test_command_is_told_to_the_game(bench: Bench, command: str, note: str) -> None:
    assert bench.say(command) == ""
    assert bench.notes == [note, "settle"]


def test_restart_acts_and_is_zero_again(bench: Bench) -> None:
    assert bench.say("mp_restartgame 4;") == ""
    assert bench.notes == ["settle", "restart 4"]
    assert bench.say("mp_restartgame") == "mp_restartgame = 0\n"


@pytest.mark.parametrize("value", ["0", "-1", "soon", "1e999"])
def test_restart_without_a_time_does_nothing(bench: Bench, value: str) -> None:
    assert bench.say(f"mp_restartgame {value}") == ""
    assert bench.notes == []


def test_backups_are_listed_newest_first_five_unless_told_otherwise(bench: Bench) -> None:
    bench.game.files = [f"backup_round{number:02}.txt" for number in range(7, 0, -1)]
    listed = bench.say("mp_backup_restore_list_files").splitlines()
    assert listed[0] == "Listing backup files with prefix: backup"
    assert listed[1:6] == [f" backup_round{number:02}.txt" for number in range(7, 2, -1)]
    assert listed[6] == "7 backup files total."
    assert len(bench.say("mp_backup_restore_list_files 2").splitlines()) == 4
    assert len(bench.say("mp_backup_restore_list_files -2").splitlines()) == 2


def test_backup_is_loaded(bench: Bench) -> None:
    bench.game.files = ["backup_round03.txt"]
    assert bench.say('mp_backup_restore_load_file "backup_round03.txt"') == ""
    assert bench.notes == ["restore backup_round03.txt", "settle"]


def test_backup_that_does_not_exist_is_named(bench: Bench) -> None:
    assert bench.say("mp_backup_restore_load_file x.txt") == "Failed to load file: x.txt\n"
    assert bench.say("mp_backup_restore_load_file").startswith("Usage:")


def test_last_backup_is_the_games(bench: Bench) -> None:
    assert bench.say("mp_backup_round_file_last") == "mp_backup_round_file_last = \n"
    bench.game.files = ["backup_round03.txt"]
    assert bench.say("mp_backup_round_file_last") == "mp_backup_round_file_last = backup_round03.txt\n"


def test_player_is_kicked_by_number_with_a_message(bench: Bench) -> None:
    bench.seat(Person("A", 7), 3)
    assert bench.say('kickid 3 "not on the list"') == ""
    assert bench.log.lines == ['"A<3><[U:1:7]><CT>" disconnected (reason "NETWORK_DISCONNECT_KICKED")']
    assert bench.notes == []


def test_player_is_kicked_by_his_steam_id(bench: Bench) -> None:
    bench.seat(Person("A", 7), 3)
    assert bench.say('kickid "[U:1:7]"') == ""
    assert bench.arena.players == []


@pytest.mark.parametrize("wanted", ["9", "65539", "999999", "STEAM_1:1:9", "somebody"])
def test_nobody_is_kicked_where_the_number_is_free(bench: Bench, wanted: str) -> None:
    bench.seat(Person("A", 7), 3)
    assert bench.say(f'kickid "{wanted}"') == f'Can\'t kick "{wanted}", name not found\n'
    assert len(bench.arena.players) == 1


def test_player_is_kicked_by_name(bench: Bench) -> None:
    bench.seat(Person("Some One", 7), 3)
    assert bench.say("kick some one") == ""
    assert bench.arena.players == []
    assert bench.say("kick some one") == 'Can\'t kick "some one", name not found\n'


def test_somebody_who_is_loading_is_kicked_by_the_number_in_status(bench: Bench) -> None:
    bench.seat(Person("a", 7), 3, is_in_game=False)
    assert "65283" in bench.say("status")
    assert bench.say('kickid 65283 "not on the list"') == ""
    assert bench.arena.players == []


@pytest.mark.parametrize("command", ["kick", "kickid"])
def test_kick_needs_somebody(bench: Bench, command: str) -> None:
    assert bench.say(command).startswith("Usage:")


def test_only_bots_are_kicked_by_bot_kick(bench: Bench) -> None:
    bench.seat(Person("A", 7), 1)
    bench.seat(Person("Rebel", 0), 2)
    bench.say("bot_kick")
    assert [player.person.name for player in bench.arena.players] == ["A"]


@pytest.mark.parametrize("command", ["bot_add", "bot_add_ct", "bot_add_t"])
def test_bots_do_not_come(bench: Bench, command: str) -> None:
    assert bench.say(command) == ""
    assert bench.arena.players == []
