"""Matches end without a result for every reason, in one service on each database.

To save time all matches are created at once, and each test checks its own. `max_duration_exceeded` is not tested here:
it takes twelve minutes at the highest region speed.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from matchpod.settings.fleets import SIMULATOR_COMMAND
from tests.e2e.service.callback_receiver import CallbackReceiver, Received
from tests.e2e.service.game_server import CapturedLog, execute
from tests.e2e.service.read_history import History, check_counts, get_json, is_final, read_history, read_page
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
from tests.effort import IS_SOAK

NOTICED_S = {"killed": 2.0, "hung": 40.0}
"""A lost server is detected within this time: a hung one after 10 s or, together with others, 30 s, and a probe."""
SLACK_S = 60.0
"""Extra time for a busy machine."""
PENDING_S = 4

LONG = short_match(maxRounds=30, customCvars=cvars(15))
"""A match that is still running when the tests end."""

MATCHES: dict[str, Json] = {
    "no_show": short_match(customCvars=cvars(60, "no_show")),
    "incomplete-teams": short_match(teams=teams(3), customCvars=cvars(60, "incomplete_roster")),
    "incomplete-players": {
        "matchType": "deathmatch",
        "map": "de_dust2",
        "players": players(5),
        "customCvars": cvars(60, "incomplete_roster"),
    },
    "all_leave": short_match(teams=teams(5), maxRounds=12, customCvars=cvars(200, "all_leave")),
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


if not IS_SOAK:
    # Fewer starts of games: the reasons are the same as those of other matches here.
    for _name in ("incomplete-players", "crash", "hang"):
        del MATCHES[_name]

ROSTERS = [name for name in MATCHES if name.startswith("incomplete")]


class CanceledMatches:
    """The matches of one service, and a receiver for their callbacks."""

    def __init__(self, service: RunningService, receiver: CallbackReceiver) -> None:
        self.service = service
        self.receiver = receiver
        self.secret = service.webhook_secret()
        self.created = {name: self.create(name, settings) for name, settings in MATCHES.items()}
        for code in ("broken", "no-plugin"):
            self.created[code] = self.create(code, short_match(), region=code)
        self.logs: dict[str, CapturedLog] = {}
        for name in ROSTERS:
            self.logs[name] = CapturedLog(service.wait_for_status(self.id_of(name), "running"), receiver)
        self.ended_at_s: dict[str, float] = {}
        for name, number in (("killed", signal.SIGKILL), ("hung", signal.SIGSTOP)):
            service.wait_for(self.id_of(name), _has_kills)  # all players have joined
            (game,) = service.server_processes(self.id_of(name))
            game.signal(number)
            self.ended_at_s[name] = time.monotonic()
        self._kick_only_player(self.id_of("idle"))

    def _kick_only_player(self, server_id: str) -> None:
        server = self.service.wait_for(server_id, lambda state: bool(state["match"] and state["match"]["players"]))
        execute(server, f"kickid {players(1)[0]}")
        self.ended_at_s["idle"] = time.monotonic()

    def create(self, name: str, settings: Json, *, region: str = "sandbox") -> Json:
        """Create a match whose callback is sent to the path of this name."""
        return self.service.create(
            settings, region=region, externalMatchId=name, callbackUrl=self.receiver.url(f"/{name}")
        )

    def id_of(self, name: str) -> str:
        """Return the server id of a match."""
        server_id: str = self.created[name]["serverId"]
        return server_id

    def check_canceled(self, name: str, reason: str, status: str) -> Received:
        """Check callback, status and release of a match that was canceled for this reason; return the callback."""
        received = self.receiver.wait_for(f"/{name}")[0]
        body, created = received.json, self.created[name]
        expected = {
            "eventType": "match_canceled",
            "gameId": "cs2",
            "externalMatchId": name,
            "serverId": created["serverId"],
            "sessionId": created["gameId"],
            "timestamp": body["timestamp"],
            "reason": reason,
        }
        assert body.pop("logComplete", True) is True  # left out if nothing was played
        lists = {"missingPlayers", "connectedPlayers", "absentPlayers"}
        assert {key: body[key] for key in body if key not in lists} == expected
        assert lists & body.keys() == (lists if reason == "incomplete_roster" else set())
        assert received.is_signed_with(self.secret)
        match = self.service.match(name)
        assert (match["status"], match["result"]) == (status, None)
        server = self.service.get(created["serverId"])
        assert (server["status"], server["match"], server["rconPassword"]) == (status, None, None)
        self.service.wait_until_released(created["serverId"])
        assert len(self.receiver.at(f"/{name}")) == 1
        return received

    def check_history(self, name: str) -> History:
        """Check and return the history of a match that was canceled and released; it is final."""
        history = read_history(self.service, self.id_of(name))
        for detail, items in zip(history.maps, history.timelines, strict=True):
            assert is_final(self.service, detail["id"], items)
            assert detail["status"] in ("finished", "cancelled")
            if detail["startedAt"] is not None:
                assert detail["players"]
                if len(history.maps) == 1:  # a map change drops unsent log lines
                    check_counts(detail, items)
            else:
                assert (detail["status"], detail["players"], detail["finishedAt"]) == ("cancelled", [], None)
        if history.series is not None:
            assert (history.series["status"], history.series["winnerTeam"]) == ("cancelled", None)
        assert history.statuses[-1] == "cancelled"
        return history

    def check_live_history(self, name: str, *, player_count: int = 4) -> History:
        """Check and return the history of a match that was canceled while its first map was live."""
        history = self.check_history(name)
        (detail,), (items,) = history.maps, history.timelines
        assert (items[-1]["type"], items[-1]["status"]) == ("map_end", "cancelled")
        assert {player["steamId"] for player in detail["players"]} == set(players(player_count))
        return history

    def check_unplayed_history(self, name: str) -> History:
        """Check and return the history of a match that was canceled before any map was live."""
        history = self.check_history(name)
        assert [(detail["startedAt"], detail["playerCount"]) for detail in history.maps] == [(None, 0)] * len(
            history.maps
        )
        return history


def _has_kills(server: Json) -> bool:
    return bool(server["match"]) and any(player["kills"] for player in server["match"]["players"])


@pytest.fixture(scope="module")
def canceled(database_url: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CanceledMatches]:
    folder: Path = tmp_path_factory.mktemp("canceled")
    settings = {"pending_s": str(PENDING_S)}
    without_plugin = (*SIMULATOR_COMMAND, "--scenario", "plugin_missing")
    # Players come later than usual: scenarios without players must be set before, on a busy machine too.
    patient = (*SIMULATOR_COMMAND, "+sim_roster_delay", "45")
    regions = default_regions(20, speed=30, sandbox_command=patient) + region(
        "no-plugin", free_port_range(3), command=without_plugin
    )
    regions += region("late", free_port_range(2), speed=1, command=slow_command(2))
    with (
        CallbackReceiver() as receiver,
        RunningService(folder, regions=regions, database_url=database_url, settings=settings) as service,
    ):
        yield CanceledMatches(service, receiver)


# --- canceled by timeouts, players and servers ----------------------------------------------------------------------


def test_match_without_players_is_canceled(canceled: CanceledMatches) -> None:
    canceled.check_canceled("no_show", "no_players_joined", "stopped")
    assert canceled.check_unplayed_history("no_show").timelines == [[]]


@pytest.mark.parametrize("name", ROSTERS)
def test_incomplete_roster_is_reported_and_connected_players_are_kicked(canceled: CanceledMatches, name: str) -> None:
    body = canceled.check_canceled(name, "incomplete_roster", "stopped").json
    log = canceled.logs[name]
    joined = set(log.players_with(b"connected, address"))
    roster = players(6) if name == "incomplete-teams" else players(5)
    assert body["connectedPlayers"] == [player for player in roster if player in joined]
    assert body["missingPlayers"] == [player for player in roster if player not in joined]
    assert joined
    assert body["missingPlayers"]
    assert set(log.players_with(b"NETWORK_DISCONNECT_KICKED")) == joined
    kicks = [line for line in log.text.split(b"\n") if b"kickid" in line]
    assert len(kicks) >= len(joined)
    assert all(b'"Match canceled: not all players joined in time"' in line for line in kicks)
    (items,) = canceled.check_unplayed_history(name).timelines
    assert {item["player"]["steamId"] for item in items if item["type"] == "player_connected"} == joined


def test_live_match_is_canceled_when_all_players_leave(canceled: CanceledMatches) -> None:
    canceled.check_canceled("all_leave", "all_players_left", "stopped")
    (items,) = canceled.check_live_history("all_leave", player_count=10).timelines
    assert {item["player"]["steamId"] for item in items if item["type"] == "player_disconnected"} == set(players(10))


@pytest.mark.parametrize("name", [name for name in ("killed", "hung", "crash", "hang") if name in MATCHES])
def test_match_is_canceled_in_time_when_its_server_is_lost(canceled: CanceledMatches, name: str) -> None:
    received = canceled.check_canceled(name, "server_lost", "failed")
    if name in NOTICED_S:
        assert received.at_s - canceled.ended_at_s[name] < NOTICED_S[name] + SLACK_S
    canceled.check_live_history(name)


@pytest.mark.parametrize("name", ["broken", "no-plugin"])
def test_match_is_canceled_when_its_server_does_not_start(canceled: CanceledMatches, name: str) -> None:
    canceled.check_canceled(name, "server_failed", "failed")
    server = canceled.service.get(canceled.id_of(name))
    assert (server["ip"], server["port"]) == (None, None)
    (items,) = canceled.check_unplayed_history(name).timelines
    assert {item["type"] for item in items} <= {"player_connected"}  # before the missing plugin is noticed


def test_match_is_canceled_if_all_players_leave_before_it_goes_live(canceled: CanceledMatches) -> None:
    received = canceled.check_canceled("idle", "idle_timeout", "stopped")
    assert received.at_s - canceled.ended_at_s["idle"] > 15  # 10 minutes divided by the region speed are 20 s
    (items,) = canceled.check_unplayed_history("idle").timelines
    kinds = [item["type"] for item in items if item["type"] != "chat"]
    assert kinds == ["player_connected", "player_disconnected"]


def test_neither_a_paused_nor_a_replaced_server_ends_the_match(canceled: CanceledMatches) -> None:
    service, receiver = canceled.service, canceled.receiver
    settings = short_match(maxRounds=8, customCvars=cvars(50))
    paused = service.create(settings, callbackUrl=receiver.url("/paused"))["serverId"]
    service.wait_for(paused, _has_kills)
    starting = service.create(short_match(), region="late", callbackUrl=receiver.url("/replaced"))["serverId"]
    (paused_process,) = service.server_processes(paused)
    paused_process.signal(signal.SIGSTOP)
    stopped_at_s = time.monotonic()
    (first,) = wait_until(lambda: service.server_processes(starting), "the process has started")
    first.signal(signal.SIGKILL)
    time.sleep(max(0.0, stopped_at_s + 6 - time.monotonic()))
    paused_process.signal(signal.SIGCONT)
    for path in ("/paused", "/replaced"):
        assert receiver.wait_for(path)[0].json["eventType"] == "match_over"


# --- canceled by capacity -------------------------------------------------------------------------------------------


def test_matches_in_a_full_region_wait_for_the_first_free_server(canceled: CanceledMatches) -> None:
    service, created = canceled.service, canceled.created
    running = service.create(LONG, region="tiny")
    service.wait_for_status(running["serverId"], "running")
    created["too-late"] = canceled.create("too-late", short_match(), region="tiny")
    waiting = service.wait_for_status(canceled.id_of("too-late"), "pending")
    assert (waiting["ip"], waiting["port"], waiting["match"]) == (None, None, None)
    assert list_maps(service, waiting["serverId"])[0]["status"] == "upcoming"
    canceled.check_canceled("too-late", "no_capacity", "failed")
    assert canceled.check_unplayed_history("too-late").timelines == [[]]
    created["in-time"] = canceled.create("in-time", short_match(), region="tiny")
    service.wait_for_status(canceled.id_of("in-time"), "pending")
    created["canceled-pending"] = canceled.create("canceled-pending", short_match(), region="tiny")
    service.wait_for_status(canceled.id_of("canceled-pending"), "pending")
    assert service.cancel(canceled.id_of("canceled-pending")).json == {"ok": True}
    canceled.check_canceled("canceled-pending", "canceled_by_user", "stopped")
    canceled.check_unplayed_history("canceled-pending")
    assert service.cancel(running["serverId"]).json == {"ok": True}
    service.wait_for_status(canceled.id_of("in-time"), "running", "stopped")
    assert canceled.receiver.wait_for("/in-time")[0].json["eventType"] == "match_over"


# --- canceled by the caller -----------------------------------------------------------------------------------------


def list_maps(service: RunningService, server_id: str) -> list[Json]:
    """Return the maps of a match as the API lists them, those that never started last."""
    return read_page(service, f"/api/v1/cs2/matches?serverId={server_id}")


def cancel_twice(canceled: CanceledMatches, name: str) -> None:
    """Cancel a match twice and check the effects."""
    service, server_id = canceled.service, canceled.id_of(name)
    for _ in range(2):
        response = service.cancel(server_id)
        assert (response.status, response.json) == (200, {"ok": True})
        maps = list_maps(service, server_id)
        assert maps[-1]["status"] == "cancelled"
        assert {one["status"] for one in maps} <= {"cancelled", "finished"}
        assert get_json(service, f"/api/v1/cs2/servers/{server_id}/series")["items"][0]["status"] == "cancelled"
    canceled.check_canceled(name, "canceled_by_user", "stopped")
    assert service.cancel(server_id).json == {"ok": True}
    assert len(canceled.receiver.at(f"/{name}")) == 1


def test_match_can_be_canceled_while_its_server_starts(canceled: CanceledMatches) -> None:
    created = canceled.created["starting"] = canceled.create("starting", short_match(), region="slow")
    wait_until(lambda: canceled.service.server_processes(created["serverId"]), "the process has started")
    assert canceled.service.get(created["serverId"])["status"] == "allocating"
    assert [one["status"] for one in list_maps(canceled.service, created["serverId"])] == ["upcoming"]
    cancel_twice(canceled, "starting")
    assert canceled.check_unplayed_history("starting").timelines == [[]]


def test_match_can_be_canceled_immediately_after_creation(canceled: CanceledMatches) -> None:
    canceled.created["at-once"] = canceled.create("at-once", short_match())
    cancel_twice(canceled, "at-once")
    assert canceled.check_unplayed_history("at-once").timelines == [[]]


def test_match_can_be_canceled_before_any_player_joins(canceled: CanceledMatches) -> None:
    created = canceled.created["empty"] = canceled.create("empty", short_match(customCvars=cvars(30, "no_show")))
    server = canceled.service.wait_for_status(created["serverId"], "running")
    zero = {"team1": 0, "team2": 0}
    assert server["match"] == {
        "game": "cs2",
        "matchType": "competitive",
        "map": "de_mirage",
        "mapNumber": 1,
        "score": zero,
        "seriesScore": zero,
        "maps": [{"name": "de_mirage", "number": 1, "status": "upcoming", "score": zero, "winner": None}],
        "players": [],
    }
    cancel_twice(canceled, "empty")
    canceled.check_unplayed_history("empty")


def poll_scores(service: RunningService, server_id: str, *, until: int) -> list[int]:
    """Poll the listed score until `until` rounds are played; return the number of rounds of each poll."""
    scores: list[int] = []

    def poll() -> bool:
        (item,) = list_maps(service, server_id)
        scores.append(item["team1Score"] + item["team2Score"])
        assert item["status"] in ("upcoming", "live")
        assert scores[-1] == 0 or (item["status"], item["playerCount"]) == ("live", 4)
        return scores[-1] >= until

    wait_until(poll, lambda: f"{until} rounds are listed; polled: {scores}")
    assert scores == sorted(scores)
    return scores


def test_canceled_live_match_keeps_its_score_and_its_players_are_kicked(canceled: CanceledMatches) -> None:
    created = canceled.created["live"] = canceled.create("live", short_match(maxRounds=30, customCvars=cvars(40)))
    running = canceled.service.wait_for_status(created["serverId"], "running")
    log = CapturedLog(running, canceled.receiver)
    scores = poll_scores(canceled.service, created["serverId"], until=2)
    server = canceled.service.get(created["serverId"])
    assert {player["steamId"] for player in server["match"]["players"]} == set(players(4))
    assert sum(player["kills"] for player in server["match"]["players"]) > 0
    assert (server["ip"], server["port"], server["status"]) == ("127.0.0.1", running["port"], "running")
    cancel_twice(canceled, "live")
    (detail,) = canceled.check_live_history("live").maps
    assert detail["team1Score"] + detail["team2Score"] >= scores[-1]
    assert set(log.players_with(b"NETWORK_DISCONNECT_KICKED")) == set(players(4))
    assert b"The match was canceled" in log.text


def test_match_can_be_canceled_between_two_maps(canceled: CanceledMatches) -> None:
    settings = short_match(seriesFormat="bo3", maps=["de_nuke"], maxRounds=2)
    # The map load takes a minute, and the region allows two, so that even a slow machine cancels in the middle of it.
    settings["customCvars"] = cvars(100, sim_map_load=6000)
    created = canceled.created["between"] = canceled.create("between", settings, region="late")
    assert [one["status"] for one in list_maps(canceled.service, created["serverId"])] == ["upcoming"] * 3
    log = CapturedLog(canceled.service.wait_for_status(created["serverId"], "running"), canceled.receiver)
    wait_until(lambda: b"Game Over" in log.text, "the first map has ended")
    wait_until(
        lambda: list_maps(canceled.service, created["serverId"])[0]["status"] == "finished",
        "the first map is listed as finished",
    )
    assert canceled.service.get(created["serverId"])["status"] == "running"
    cancel_twice(canceled, "between")
    history = canceled.check_history("between")
    assert history.statuses == ["finished", "cancelled", "cancelled"]
    assert [detail["startedAt"] is None for detail in history.maps] == [False, True, True]
    assert history.timelines[0][-1]["type"] == "map_end"


def test_match_that_already_ended_cannot_be_canceled(canceled: CanceledMatches) -> None:
    for name in ("no_show", "broken", "killed"):
        canceled.receiver.wait_for(f"/{name}")
        response = canceled.service.cancel(canceled.id_of(name))
        assert (response.status, response.json["error"]) == (409, "SERVER_NOT_RUNNING")
        assert len(canceled.receiver.at(f"/{name}")) == 1


def test_each_callback_is_sent_once_and_no_process_is_left(canceled: CanceledMatches) -> None:
    for name in canceled.created:
        canceled.receiver.wait_for(f"/{name}")
    wait_until(
        lambda: not canceled.service.server_processes(), lambda: f"still running: {canceled.service.server_processes()}"
    )
    assert [len(canceled.receiver.at(f"/{name}")) for name in canceled.created] == [1] * len(canceled.created)
    errors = [entry for entry in canceled.service.log() if entry["level"] == "ERROR"]
    assert errors == [], json.dumps(errors, indent=1)
