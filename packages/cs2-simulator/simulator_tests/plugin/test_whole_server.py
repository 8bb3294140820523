"""Tests of the plugin on a complete simulated server with simulated players."""

from __future__ import annotations

import json

import pytest

from cs2_protocol import matchzy
from cs2_protocol.console_answers import parse_get5_status
from cs2_protocol.log_lines.reader import Line
from cs2_simulator.agenda import Agenda
from cs2_simulator.console.console import Console
from cs2_simulator.console.parts import ServerParts
from cs2_simulator.log_stream import LogStream
from cs2_simulator.outside import FetchResult
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.door import Door
from cs2_simulator.play.flow.game import Game, GamePhase
from cs2_simulator.play.people.visitors import Visitors
from cs2_simulator.plugin.match_plugin import MatchPlugin
from cs2_simulator.variables import Variables
from simulator_tests.null_outside import no_headers
from simulator_tests.plugin.plugin_harness import MATCH_URL, START_MS, FakeOutside, id64, match

CVARS = {"mp_maxrounds": "4", "mp_freezetime": "2", "matchzy_remote_log_url": "http://h/e"}
ALL_ROUNDS = {"mp_match_can_clinch": "0"}


class Log(LogStream):
    def __init__(self, agenda: Agenda) -> None:
        super().__init__(agenda, describe=no_headers)
        self.is_on = True
        self.texts: list[str] = []

    def write(self, line: Line) -> None:
        self.texts.append(line.text())


class Server:
    def __init__(self, scenario: str = "full_match", seed: str = "1") -> None:
        self.variables = Variables()
        for name, value in {"sim_scenario": scenario, "sim_seed": seed, "game_mode": "1"}.items():
            assert self.variables.set(name, value) is None
        self.agenda = Agenda(START_MS)
        self.log = Log(self.agenda)
        self.arena = Arena(self.agenda, self.log, self.variables)
        self.door = Door(self.arena)
        self.game = Game(self.arena)
        self.visitors = Visitors(self.arena, self.door, self.game)
        self.outside = FakeOutside()
        parts = ServerParts(self.arena, self.game, self.door, self.visitors, self.outside, self.log)
        self.console = Console(parts)
        self.plugin = MatchPlugin(parts, self.console)
        self.game.load_map("de_dust2")
        self.wait(10)

    def rcon(self, command: str) -> str:
        return self.console.execute(command, "198.51.100.1:5000")

    def load(self, **changes: object) -> None:
        fields = match(2, **{"cvars": CVARS, **changes})  # type: ignore[arg-type]
        self.outside.match = FetchResult(200, json.dumps(fields).encode())
        self.rcon(f'matchzy_loadmatch_url "{MATCH_URL}"')
        self.wait(1)

    def wait(self, seconds: float) -> None:
        self.agenda.run_until(self.agenda.now_ms + int(seconds * 1000))

    def wait_for(self, event: str, count: int = 1, *, within_s: int = 4000) -> None:
        for _ in range(within_s):
            if self.outside.events.count(event) >= count:
                return
            self.wait(1)
        raise AssertionError(f"fewer than {count} {event} within {within_s} s: {self.outside.events}")

    def state(self) -> str:
        status = parse_get5_status(self.rcon("get5_status"))
        assert status is not None
        return status.state


def test_full_roster_readies_up_and_plays_a_map() -> None:
    server = Server()
    server.load()
    server.wait_for("series_end")
    events = server.outside.events
    assert events[:2] == ["series_start", "going_live"]
    assert events[-2:] == ["map_result", "series_end"]
    assert not any(isinstance(report, matchzy.Malformed) for report in server.outside.reports)
    server.wait(120)
    assert server.state() == "none"
    assert server.arena.players == []


def test_players_keep_their_team_across_halves_and_maps() -> None:
    server = Server()
    server.load(maps=("de_nuke", "de_train", "de_mirage"), map_sides=["knife", "team1_t", "team2_t"])
    series = server.plugin.course.series
    assert series is not None
    for _ in range(1500):
        server.wait(1)
        if not server.plugin.has_match:
            break
        if server.game.phase not in (GamePhase.KNIFE, GamePhase.LIVE):
            continue
        for player in server.arena.playing:
            assert player.team == series.required_team(player, server.game.team1_side)
    assert server.outside.events[-1] == "series_end"


def watchers(server: Server) -> list[int]:
    return sorted(player.person.account for player in server.arena.players if player.team == "Spectator")


def test_admins_wait_for_the_end_of_halftime() -> None:
    server = Server()
    server.load(cvars=CVARS | ALL_ROUNDS)
    commands = ("css_forcepause", "css_restore 1", f"matchzy_addplayer {id64(3)} team1", "matchzy_removeplayer 0")
    server.wait_for("round_end", 2)
    assert all("during halftime" in server.rcon(command) for command in commands)
    server.wait(15)
    assert all("during halftime" in server.rcon(command) for command in commands)
    server.wait(6)
    assert all("halftime" not in server.rcon(command) for command in commands)


def test_border_of_overtime_is_a_halftime() -> None:
    server = Server("overtime")
    server.load(cvars=CVARS)
    server.wait_for("round_end", 4)
    assert "during halftime" in server.rcon("css_forcepause")
    server.wait(10)
    assert "has paused" in server.rcon("css_forcepause")


def test_timeout_is_in_the_way_of_admins_only_while_it_runs() -> None:
    server = Server()
    server.load(cvars=CVARS | ALL_ROUNDS | {"mp_maxrounds": "12"})
    server.wait_for("round_end")
    server.wait(5 + 2 + 1)
    server.rcon(f"sim_say {id64(1)} .tac")
    assert "has paused" in server.rcon("css_forcepause")
    server.rcon("css_forceunpause")
    server.wait_for("round_end", 2)
    server.wait(6)
    timeout = "tactical timeout is active"
    assert [timeout in server.rcon(command) for command in ("css_forcepause", "css_restore 0")] == [True, True]
    server.wait(30)
    assert timeout not in server.rcon("css_forcepause")


def test_restore_ends_a_timeout_that_was_called_in_the_round() -> None:
    server = Server()
    server.load(cvars=CVARS | ALL_ROUNDS | {"mp_maxrounds": "12"})
    server.wait_for("round_end")
    server.wait(5 + 2 + 1)
    server.rcon(f"sim_say {id64(1)} .tac")
    server.rcon("css_restore 1")
    server.wait(1)
    server.rcon("css_forceunpause")
    assert not server.game.is_paused
    server.wait(3)
    assert server.log.texts.count('World triggered "Round_Start"') == 3


def test_overtime_is_played_by_the_rules_of_the_match_file() -> None:
    server = Server("overtime")
    rules = {"mp_overtime_enable": "1", "mp_overtime_maxrounds": "4", "mp_overtime_startmoney": "12500"}
    server.load(cvars=CVARS | rules | {"mp_logmoney": "1"})
    server.wait_for("map_result", within_s=8000)
    rounds = [report for report in server.outside.reports if isinstance(report, matchzy.RoundEndReport)]
    scores = [(report.team1_score, report.team2_score) for report in rounds]
    assert scores[3] == (2, 2)
    assert max(scores[-1]) in (5, 7)
    assert any("money change 12500-" in text for text in server.log.texts)


def test_series_with_everything_that_admins_do_is_played_to_its_end() -> None:
    people = {"sim_substitutes": id64(4), "sim_casters": id64(8)}
    listed = {id64(number): "" for number in (1, 2, 3)}
    server = Server()
    server.load(
        maps=("de_nuke", "de_train", "de_mirage"),
        cvars=CVARS | ALL_ROUNDS | people | {"mp_maxrounds": "7", "mp_overtime_enable": "0"},
        team1={"name": "Blue", "players": listed, "coaches": {id64(3): ""}},
        spectators={"players": {id64(8): ""}},
    )
    server.wait_for("round_end", 2)
    assert "has paused" in server.rcon("css_forcepause")
    server.wait(90)
    assert "unpaused" in server.rcon("css_forceunpause")
    server.wait_for("going_live", 2)
    server.wait_for("round_end", server.outside.events.count("round_end") + 2)
    server.rcon(f"matchzy_removeplayer {id64(2)}")
    server.rcon(f"matchzy_addplayer {id64(4)} team1")
    server.wait_for("round_end", server.outside.events.count("round_end") + 2)
    assert {1, 3, 4} <= {player.person.account for player in server.arena.playing}
    assert server.rcon("css_restore 1") == ""
    server.wait(2)
    # The lists are those of before the substitution; who is there stays.
    assert 4 in [player.person.account for player in server.arena.playing]
    assert server.rcon(f"matchzy_removeplayer {id64(2)}").startswith("Successfully")
    assert "added to team1" in server.rcon(f"matchzy_addplayer {id64(4)} team1")
    server.wait_for("series_end", within_s=20_000)
    assert server.outside.events.count("map_result") in (2, 3)
    last = next(report for report in reversed(server.outside.reports) if isinstance(report, matchzy.RoundEndReport))
    assert {player.player_id for player in last.players} == {id64(number) for number in (1, 3, 4, 101, 102)}
    assert watchers(server) == [8]


def test_absent_and_unready_players_keep_the_match_from_starting() -> None:
    for cvars in ({"sim_absent": id64(102)}, {"sim_unready": f"{id64(1)},{id64(2)}"}):
        server = Server()
        server.load(cvars=CVARS | cvars)
        server.wait(300)
        assert server.state() == "warmup"
    assert len(server.arena.playing) == 4
    for account in (1, 2):
        assert server.rcon(f"sim_say {id64(account)} .ready") == ""
    server.wait(3)
    assert server.state() == "live"
    assert "Usage" in server.rcon(f"sim_say {id64(9)} .ready")


def test_tie_ends_the_map_but_not_the_series() -> None:
    server = Server("tie")
    server.load()
    server.wait_for("map_result")
    server.wait(200)
    assert "series_end" not in server.outside.events
    assert server.arena.players == []


@pytest.mark.parametrize("header", ['"X Token" "t"', '"X-Token" "t\r"', '"Content-Type" "t"', '"X-Token" "é"'])
def test_match_is_not_fetched_with_an_invalid_header(header: str) -> None:
    server = Server()
    assert server.rcon(f'matchzy_loadmatch_url "{MATCH_URL}" {header}') == ""
    assert server.outside.requests == []


def test_events_are_not_sent_with_an_invalid_header() -> None:
    server = Server()
    server.load(cvars=CVARS | {"matchzy_remote_log_header_key": "X Token", "matchzy_remote_log_header_value": "t"})
    assert server.state() == "warmup"
    assert server.outside.posts == []


def test_players_of_an_ended_match_do_not_join_the_next() -> None:
    server = Server()
    server.load()
    server.wait_for("round_end")
    server.rcon("css_endmatch")
    others = {f"7656119800000{number:04d}": "" for number in range(1000, 1004)}
    ids = list(others)
    server.load(
        matchid=28,
        team1={"name": "C", "players": dict.fromkeys(ids[:2], "")},
        team2={"name": "D", "players": dict.fromkeys(ids[2:], "")},
    )
    server.wait_for("series_end")
    assert {player.person.player_id for player in server.arena.players} <= set(ids)
    assert (server.variables.text("mp_teamname_1"), server.variables.text("mp_teamname_2")) == ("C", "D")
