"""Every way in which a match ends without a result, in one service on each database.

What takes time is begun for all matches at once; each test then looks at its own. `max_duration_exceeded` is not here:
at the greatest speed of the clocks it takes twelve minutes.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from matchpod.settings.table import SIMULATOR_COMMAND
from tests.e2e.service.callback_receiver import CallbackReceiver, Received
from tests.e2e.service.game_server import OverheardLog, ask
from tests.e2e.service.read_history import History, check_counts, get, is_final, page, read_history
from tests.e2e.service.running_service import (
    Json,
    RunningService,
    cvars,
    default_regions,
    free_port_range,
    players,
    region,
    short_match,
    slow_command,
    teams,
    wait_until,
)

NOTICED_S = 15.0
"""So soon a lost server is noticed."""
SLACK_S = 60.0
"""For a busy machine."""
PENDING_S = 4

LONG = short_match(maxRounds=30, customCvars=cvars(15))
"""Still played when the tests are over."""

MATCHES: dict[str, Json] = {
    "no_show": short_match(customCvars=cvars(60, "no_show")),
    "incomplete-teams": short_match(teams=teams(3), customCvars=cvars(60, "incomplete_roster")),
    "incomplete-players": {
        "matchType": "deathmatch",
        "map": "de_dust2",
        "players": players(5),
        "customCvars": cvars(60, "incomplete_roster"),
    },
    "all_leave": short_match(customCvars=cvars(200, "all_leave")),
    "killed": LONG,
    "hung": LONG,
    "crash": short_match(maxRounds=12, customCvars=cvars(200, "server_crash")),
    "hang": short_match(maxRounds=12, customCvars=cvars(200, "server_hang")),
    # A single player does not start a match, and without a roster no others are expected.
    "idle": {
        "matchType": "competitive",
        "map": "de_dust2",
        "customCvars": cvars(30, sim_players=players(1)[0]),
    },
}


class Canceled:
    """The matches of one service."""

    def __init__(self, service: RunningService, receiver: CallbackReceiver) -> None:
        self.service = service
        self.receiver = receiver
        self.secret = service.webhook_secret()
        self.made = {name: self.create(name, settings) for name, settings in MATCHES.items()}
        for code in ("broken", "no-plugin"):
            self.made[code] = self.create(code, short_match(), region=code)
        self.logs: dict[str, OverheardLog] = {}
        for name in ("incomplete-teams", "incomplete-players"):
            self.logs[name] = OverheardLog(service.wait_for_status(self.id_of(name), "running"), receiver)
        self.ended_at_s: dict[str, float] = {}
        for name, number in (("killed", signal.SIGKILL), ("hung", signal.SIGSTOP)):
            service.wait_for(self.id_of(name), _has_kills)  # all players are there
            (game,) = service.server_processes(self.id_of(name))
            game.signal(number)
            self.ended_at_s[name] = time.monotonic()
        self._leave_alone(self.id_of("idle"))

    def _leave_alone(self, server_id: str) -> None:
        server = self.service.wait_for(server_id, lambda seen: bool(seen["match"] and seen["match"]["players"]))
        ask(server, f"kickid {players(1)[0]}")
        self.ended_at_s["idle"] = time.monotonic()

    def create(self, name: str, settings: Json, *, region: str = "sandbox") -> Json:
        """A match whose callback has this path."""
        return self.service.create(
            settings, region=region, externalMatchId=name, callbackUrl=self.receiver.url(f"/{name}")
        )

    def id_of(self, name: str) -> str:
        """The server of a match."""
        server_id: str = self.made[name]["serverId"]
        return server_id

    def told(self, name: str, reason: str, status: str) -> Received:
        """The callback of a match that ended for this reason, after a look at everything else that should be so."""
        received = self.receiver.wait_for(f"/{name}")[0]
        told, made = received.json, self.made[name]
        expected = {
            "eventType": "match_canceled",
            "gameId": "cs2",
            "externalMatchId": name,
            "serverId": made["serverId"],
            "sessionId": made["gameId"],
            "timestamp": told["timestamp"],
            "reason": reason,
        }
        assert {key: told[key] for key in told if key not in ("missingPlayers", "connectedPlayers")} == expected
        assert ("missingPlayers" in told) == ("connectedPlayers" in told) == (reason == "incomplete_roster")
        assert received.is_signed_with(self.secret)
        looked_up = self.service.match(name)
        assert (looked_up["status"], looked_up["result"]) == (status, None)
        server = self.service.get(made["serverId"])
        assert (server["status"], server["match"], server["rconPassword"]) == (status, None, None)
        self.service.wait_until_released(made["serverId"])
        assert len(self.receiver.at(f"/{name}")) == 1
        return received

    def history(self, name: str) -> History:
        """What is read of a match that was canceled, and released since; nothing of it changes any more."""
        told = read_history(self.service, self.id_of(name))
        for detail, items in zip(told.maps, told.timelines, strict=True):
            assert is_final(self.service, detail["id"], items)
            assert detail["status"] in ("finished", "cancelled")
            if detail["startedAt"] is not None:
                assert detail["players"]
                if len(told.maps) == 1:  # a map change drops what the server could not yet send
                    check_counts(detail, items)
            else:
                assert (detail["status"], detail["players"], detail["finishedAt"]) == ("cancelled", [], None)
        if told.series is not None:
            assert (told.series["status"], told.series["winnerTeam"]) == ("cancelled", None)
        assert told.statuses[-1] == "cancelled"
        return told

    def assert_told_live(self, name: str) -> History:
        """The history of a match that was canceled while its first map was live."""
        told = self.history(name)
        (detail,), (items,) = told.maps, told.timelines
        assert (items[-1]["type"], items[-1]["status"]) == ("map_end", "cancelled")
        assert {player["steamId"] for player in detail["players"]} == set(players(4))
        return told

    def assert_told_unplayed(self, name: str) -> History:
        """The history of a match that was canceled before any map was live."""
        told = self.history(name)
        assert [(detail["startedAt"], detail["playerCount"]) for detail in told.maps] == [(None, 0)] * len(told.maps)
        return told


def _has_kills(server: Json) -> bool:
    return bool(server["match"]) and any(player["kills"] for player in server["match"]["players"])


@pytest.fixture(scope="module")
def canceled(database_url: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Canceled]:
    folder: Path = tmp_path_factory.mktemp("canceled")
    settings = {"pending_s": str(PENDING_S)}
    without_plugin = (*SIMULATOR_COMMAND, "--scenario", "plugin_missing")
    regions = default_regions(20, speed=30) + region("no-plugin", free_port_range(3), command=without_plugin)
    regions += region("late", free_port_range(2), speed=1, command=slow_command(2))
    with (
        CallbackReceiver() as receiver,
        RunningService(folder, regions=regions, database_url=database_url, settings=settings) as service,
    ):
        yield Canceled(service, receiver)


# --- by time, people and servers ------------------------------------------------------------------------------------


def test_a_match_to_which_nobody_comes(canceled: Canceled) -> None:
    canceled.told("no_show", "no_players_joined", "stopped")
    assert canceled.assert_told_unplayed("no_show").timelines == [[]]


@pytest.mark.parametrize("name", ["incomplete-teams", "incomplete-players"])
def test_an_incomplete_roster_is_told_by_name_and_those_who_came_are_sent_away(canceled: Canceled, name: str) -> None:
    told = canceled.told(name, "incomplete_roster", "stopped").json
    log = canceled.logs[name]
    came = set(log.players_with(b"connected, address"))
    roster = players(6) if name == "incomplete-teams" else players(5)
    assert told["connectedPlayers"] == [player for player in roster if player in came]
    assert told["missingPlayers"] == [player for player in roster if player not in came]
    assert came
    assert told["missingPlayers"]
    assert set(log.players_with(b"NETWORK_DISCONNECT_KICKED")) == came
    kicks = [line for line in log.text.split(b"\n") if b"kickid" in line]
    assert len(kicks) >= len(came)
    assert all(b'"Match canceled: not all players joined in time"' in line for line in kicks)
    (items,) = canceled.assert_told_unplayed(name).timelines
    assert {item["player"]["steamId"] for item in items if item["type"] == "player_connected"} == came


def test_everybody_leaves_a_live_match(canceled: Canceled) -> None:
    canceled.told("all_leave", "all_players_left", "stopped")
    (items,) = canceled.assert_told_live("all_leave").timelines
    assert {item["player"]["steamId"] for item in items if item["type"] == "player_disconnected"} == set(players(4))


@pytest.mark.parametrize("name", ["killed", "hung"])
def test_a_lost_server_is_noticed_soon(canceled: Canceled, name: str) -> None:
    received = canceled.told(name, "server_lost", "failed")
    assert received.at_s - canceled.ended_at_s[name] < NOTICED_S + SLACK_S
    canceled.assert_told_live(name)


@pytest.mark.parametrize("name", ["crash", "hang"])
def test_a_server_that_dies_in_the_middle_of_a_round(canceled: Canceled, name: str) -> None:
    canceled.told(name, "server_lost", "failed")
    canceled.assert_told_live(name)


@pytest.mark.parametrize("name", ["broken", "no-plugin"])
def test_a_server_that_does_not_come_up(canceled: Canceled, name: str) -> None:
    canceled.told(name, "server_failed", "failed")
    server = canceled.service.get(canceled.id_of(name))
    assert (server["ip"], server["port"]) == (None, None)
    assert canceled.assert_told_unplayed(name).timelines == [[]]


def test_people_who_go_before_play_begins(canceled: Canceled) -> None:
    received = canceled.told("idle", "idle_timeout", "stopped")
    assert received.at_s - canceled.ended_at_s["idle"] > 15  # 10 minutes at the speed of the region
    (items,) = canceled.assert_told_unplayed("idle").timelines
    kinds = [item["type"] for item in items if item["type"] != "chat"]
    assert kinds == ["player_connected", "player_disconnected"]


def test_servers_that_come_back_end_no_match(canceled: Canceled) -> None:
    service, receiver = canceled.service, canceled.receiver
    settings = short_match(maxRounds=8, customCvars=cvars(50))
    paused = service.create(settings, callbackUrl=receiver.url("/paused"))["serverId"]
    service.wait_for(paused, _has_kills)
    starting = service.create(short_match(), region="late", callbackUrl=receiver.url("/replaced"))["serverId"]
    (sleeping,) = service.server_processes(paused)
    sleeping.signal(signal.SIGSTOP)
    stopped_at_s = time.monotonic()
    (first,) = wait_until(lambda: service.server_processes(starting), "it was started")
    first.signal(signal.SIGKILL)
    time.sleep(max(0.0, stopped_at_s + 6 - time.monotonic()))
    sleeping.signal(signal.SIGCONT)
    for path in ("/paused", "/replaced"):
        assert receiver.wait_for(path)[0].json["eventType"] == "match_over"


# --- by the region --------------------------------------------------------------------------------------------------


def test_a_full_region_lets_matches_wait_and_gives_them_the_first_place(canceled: Canceled) -> None:
    service, made = canceled.service, canceled.made
    holder = service.create(LONG, region="tiny")
    service.wait_for_status(holder["serverId"], "running")
    made["too-late"] = canceled.create("too-late", short_match(), region="tiny")
    waiting = service.wait_for_status(canceled.id_of("too-late"), "pending")
    assert (waiting["ip"], waiting["port"], waiting["match"]) == (None, None, None)
    assert listed(service, waiting["serverId"])[0]["status"] == "upcoming"
    canceled.told("too-late", "no_capacity", "failed")
    assert canceled.assert_told_unplayed("too-late").timelines == [[]]
    made["in-time"] = canceled.create("in-time", short_match(), region="tiny")
    service.wait_for_status(canceled.id_of("in-time"), "pending")
    made["gives-up"] = canceled.create("gives-up", short_match(), region="tiny")
    service.wait_for_status(canceled.id_of("gives-up"), "pending")
    assert service.cancel(canceled.id_of("gives-up")).json == {"ok": True}
    canceled.told("gives-up", "canceled_by_user", "stopped")
    canceled.assert_told_unplayed("gives-up")
    assert service.cancel(holder["serverId"]).json == {"ok": True}
    service.wait_for_status(canceled.id_of("in-time"), "running", "stopped")
    assert canceled.receiver.wait_for("/in-time")[0].json["eventType"] == "match_over"


# --- by the caller --------------------------------------------------------------------------------------------------


def listed(service: RunningService, server_id: str) -> list[Json]:
    """The maps of a match as the list has them, those that never started last."""
    return page(service, f"/api/v1/cs2/matches?serverId={server_id}")


def cancel_now(canceled: Canceled, name: str) -> None:
    """Cancel a match, twice, and look at what came of it."""
    service, server_id = canceled.service, canceled.id_of(name)
    for _ in range(2):
        answer = service.cancel(server_id)
        assert (answer.status, answer.json) == (200, {"ok": True})
        at_once = listed(service, server_id)
        assert at_once[-1]["status"] == "cancelled"
        assert {one["status"] for one in at_once} <= {"cancelled", "finished"}
        assert get(service, f"/api/v1/cs2/servers/{server_id}/series")["items"][0]["status"] == "cancelled"
    canceled.told(name, "canceled_by_user", "stopped")
    assert service.cancel(server_id).json == {"ok": True}
    assert len(canceled.receiver.at(f"/{name}")) == 1


def test_a_caller_cancels_while_the_server_starts(canceled: Canceled) -> None:
    made = canceled.made["starting"] = canceled.create("starting", short_match(), region="slow")
    wait_until(lambda: canceled.service.server_processes(made["serverId"]), "its process was started")
    assert canceled.service.get(made["serverId"])["status"] == "allocating"
    assert [one["status"] for one in listed(canceled.service, made["serverId"])] == ["upcoming"]
    cancel_now(canceled, "starting")
    assert canceled.assert_told_unplayed("starting").timelines == [[]]


def test_a_caller_cancels_right_after_the_creation(canceled: Canceled) -> None:
    canceled.made["at-once"] = canceled.create("at-once", short_match())
    cancel_now(canceled, "at-once")
    assert canceled.assert_told_unplayed("at-once").timelines == [[]]


def test_a_caller_cancels_before_anybody_came(canceled: Canceled) -> None:
    made = canceled.made["empty"] = canceled.create("empty", short_match(customCvars=cvars(30, "no_show")))
    server = canceled.service.wait_for_status(made["serverId"], "running")
    assert server["match"] == {
        "game": "cs2",
        "matchType": "competitive",
        "map": "de_mirage",
        "score": {"team1": 0, "team2": 0},
        "players": [],
    }
    cancel_now(canceled, "empty")
    canceled.assert_told_unplayed("empty")


def watch_score(service: RunningService, server_id: str, *, until: int) -> list[int]:
    """Poll the rounds played in the list of maps until there are `until` of them; return all values seen."""
    scores: list[int] = []

    def look() -> bool:
        (item,) = listed(service, server_id)
        scores.append(item["team1Score"] + item["team2Score"])
        assert item["status"] in ("upcoming", "live")
        assert scores[-1] == 0 or (item["status"], item["playerCount"]) == ("live", 4)
        return scores[-1] >= until

    wait_until(look, lambda: f"{until} rounds are listed: {scores}")
    assert scores == sorted(scores)
    return scores


def test_a_caller_cancels_a_live_match(canceled: Canceled) -> None:
    made = canceled.made["live"] = canceled.create("live", short_match(maxRounds=30, customCvars=cvars(40)))
    running = canceled.service.wait_for_status(made["serverId"], "running")
    log = OverheardLog(running, canceled.receiver)
    scores = watch_score(canceled.service, made["serverId"], until=2)
    seen = canceled.service.get(made["serverId"])
    assert {player["steamId"] for player in seen["match"]["players"]} == set(players(4))
    assert sum(player["kills"] for player in seen["match"]["players"]) > 0
    assert (seen["ip"], seen["port"], seen["status"]) == ("127.0.0.1", running["port"], "running")
    cancel_now(canceled, "live")
    (detail,) = canceled.assert_told_live("live").maps
    assert detail["team1Score"] + detail["team2Score"] >= scores[-1]
    assert set(log.players_with(b"NETWORK_DISCONNECT_KICKED")) == set(players(4))
    assert b"The match was canceled" in log.text


def test_a_caller_cancels_between_two_maps(canceled: Canceled) -> None:
    settings = short_match(seriesFormat="bo3", maps=["de_nuke"], maxRounds=2)
    # A minute, in a region where a map load may take two: the cancel comes in the middle of it on a slow machine too.
    settings["customCvars"] = cvars(100, sim_map_load=6000)
    made = canceled.made["between"] = canceled.create("between", settings, region="late")
    assert [one["status"] for one in listed(canceled.service, made["serverId"])] == ["upcoming"] * 3
    log = OverheardLog(canceled.service.wait_for_status(made["serverId"], "running"), canceled.receiver)
    wait_until(lambda: b"Game Over" in log.text, "the first map ends")
    wait_until(lambda: listed(canceled.service, made["serverId"])[0]["status"] == "finished", "that is listed")
    assert canceled.service.get(made["serverId"])["status"] == "running"
    cancel_now(canceled, "between")
    told = canceled.history("between")
    assert told.statuses == ["finished", "cancelled", "cancelled"]
    assert [detail["startedAt"] is None for detail in told.maps] == [False, True, True]
    assert told.timelines[0][-1]["type"] == "map_end"


def test_a_match_that_ended_otherwise_cannot_be_canceled(canceled: Canceled) -> None:
    for name in ("no_show", "broken", "killed"):
        canceled.receiver.wait_for(f"/{name}")
        answer = canceled.service.cancel(canceled.id_of(name))
        assert (answer.status, answer.json["error"]) == (409, "SERVER_NOT_RUNNING")
        assert len(canceled.receiver.at(f"/{name}")) == 1


def test_nothing_is_left_in_the_end(canceled: Canceled) -> None:
    for name in canceled.made:
        canceled.receiver.wait_for(f"/{name}")
    wait_until(lambda: not canceled.service.server_processes(), lambda: f"{canceled.service.server_processes()}")
    assert [len(canceled.receiver.at(f"/{name}")) for name in canceled.made] == [1] * len(canceled.made)
    errors = [entry for entry in canceled.service.log() if entry["level"] == "ERROR"]
    assert errors == [], json.dumps(errors, indent=1)
