"""Tests of coaches, whom the plugin takes out of each round."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest

from cs2_protocol import matchzy
from simulator_tests.plugin.plugin_harness import PluginHarness, id64, match
from simulator_tests.plugin.test_whole_server import ALL_ROUNDS, CVARS, Server

COACH = 3
LONG = CVARS | ALL_ROUNDS | {"mp_maxrounds": "8", "mp_freezetime": "10"}


def coached(**cvars: str) -> Server:
    """A server on whose match the first team has two players and a coach."""
    players = {id64(number): "" for number in (1, 2, COACH)}
    server = Server()
    server.load(cvars=LONG | cvars, team1={"name": "Blue", "players": players, "coaches": {id64(COACH): ""}})
    server.wait_for("going_live")
    server.log.texts.clear()  # in warmup coaches play
    return server


def of_coach(server: Server) -> list[str]:
    return [text for text in server.log.texts if f"[U:1:{COACH}]" in text]


def fights_of_coach(server: Server) -> list[str]:
    return [text for text in of_coach(server) if re.search("killed|attacked|assisted|purchased|threw", text)]


def test_coach_dies_in_every_freeze_time_and_takes_no_part_in_the_rounds() -> None:
    server = coached()
    server.wait_for("series_end")
    deaths = [number for number, text in enumerate(server.log.texts) if "[U:1:3]" in text and "committed" in text]
    starts = [number for number, text in enumerate(server.log.texts) if text == 'World triggered "Round_Start"']
    assert len(deaths) == len(starts) == 8
    assert all(death < start for death, start in zip(deaths, starts, strict=True))
    assert fights_of_coach(server) == []
    assert id64(COACH) not in [tally.player_id for tally in server.arena.book.tallies()]


def test_coach_is_in_the_numbers_of_the_plugin_and_the_game_with_one_death() -> None:
    server = coached()
    server.wait_for("round_end", 3)
    report = server.outside.reports[-1]
    assert isinstance(report, matchzy.RoundEndReport)
    assert [player.stats["deaths"] for player in report.players if player.player_id == id64(COACH)] == [1]
    server.wait(15)
    row = next(text for text in reversed(server.log.texts) if re.match(rf'"player_\d+" : " +{COACH},', text))
    team, _money, kills, deaths = row.split(",")[1:5]
    assert [team.strip(), kills.strip(), deaths.strip()] == ["3", "0", "1"]


def test_coach_passes_the_bomb_on() -> None:
    server = coached(mp_maxrounds="24", mp_halftime="0")
    server.rcon("mp_swapteams")
    server.wait_for("round_end", 12)
    carriers = [re.findall(r"U:1:(\d+)", text)[0] for text in server.log.texts if "Got_The_Bomb" in text]
    passed = [after for before, after in pairwise(carriers) if before == str(COACH)]
    assert passed
    assert set(passed) <= {"1", "2"}
    assert not any("Bomb_Begin_Plant" in text for text in of_coach(server))


def test_coach_whom_a_pause_saves_is_moved_out_of_the_round() -> None:
    server = coached()
    server.wait_for("round_end")
    server.rcon("css_forcepause")
    server.wait(60)
    before = len(of_coach(server))
    server.rcon("css_forceunpause")
    server.wait(13)
    moves = [text.partition("switched ")[2] for text in of_coach(server)[before:] if "switched" in text]
    assert moves == ["from team <CT> to <Spectator>", "from team <Spectator> to <CT>"]
    server.wait_for("round_end", 2)
    assert not any("killed" in text for text in of_coach(server))
    assert id64(COACH) not in [tally.player_id for tally in server.arena.book.tallies()]


def test_coach_lives_on_if_the_match_is_paused_in_freeze_time_for_a_moment() -> None:
    server = coached()
    server.wait_for("round_end")
    server.wait(7)
    before = len(of_coach(server))
    server.rcon("css_forcepause")
    server.rcon("css_forceunpause")
    server.wait(9.5)
    assert of_coach(server)[before:] == []
    server.wait(3)
    assert any("<Spectator>" in text for text in of_coach(server)[before:])


def test_restore_makes_coaches_players_until_they_ask_again() -> None:
    server = coached()
    server.wait_for("round_end", 3)
    server.wait(8)
    player = next(player for player in server.arena.players if player.person.account == COACH)
    assert player.is_coach
    assert server.rcon("css_restore 1") == ""
    server.wait(0.5)
    assert not player.is_coach
    server.wait(4)
    assert player.is_coach
    server.wait_for("series_end")
    # One hit by the restore, one by the change of the team.
    assert [text.count(f"[U:1:{COACH}]") for text in fights_of_coach(server)] == [2, 2]


@pytest.mark.parametrize("command", [".coach ct", ".coach t"])
def test_nobody_coaches_in_wingman(command: str) -> None:
    harness = PluginHarness()
    harness.load(match(wingman=True))
    player = harness.enter(1)
    assert player is not None
    harness.door.say(player, command)
    assert not player.is_coach


def test_coach_may_play_again(harness: PluginHarness) -> None:
    harness.load(match())
    player = harness.enter(1)
    assert player is not None
    for command, is_coach in ((".coach", False), (".coach ct", True), (".uncoach", False)):
        harness.door.say(player, command)
        assert player.is_coach is is_coach


def test_coach_who_is_added_later_is_named_by_a_variable() -> None:
    server = Server()
    server.load(cvars=LONG | {"sim_coaches": id64(COACH)})
    server.wait_for("round_end")
    server.rcon(f"matchzy_addplayer {id64(COACH)} team2")
    server.wait_for("series_end")
    assert any(".coach t" in text for text in of_coach(server))
    assert json.dumps(server.outside.bodies).count(id64(COACH))
    assert id64(COACH) not in [tally.player_id for tally in server.arena.book.tallies()]
