"""People act on matches through the API and the command line, over the sockets of simulated servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.read_history import read_history
from tests.e2e.service.running_service import (
    Json,
    Response,
    RunningService,
    cvars,
    players,
    short_match,
    teams,
    wait_until,
)

SPEED = 30
"""Slow enough to act between two rounds."""
ANN, *_, DAN = players(4)
SUBSTITUTE, CASTER = players(2, first=50)


class ActedMatch:
    def __init__(self, service: RunningService, receiver: CallbackReceiver, name: str, **settings: object) -> None:
        self.service = service
        self.receiver = receiver
        self.name = name
        created = service.create(short_match(**{"maxRounds": 24, **settings}), callbackUrl=receiver.url(f"/{name}"))
        self.server_id: str = created["serverId"]
        self.path = f"/api/v1/servers/{self.server_id}/actions"

    def wait_for_phase(self, phase: str) -> Json:
        return self.service.wait_for(self.server_id, lambda server: server["phase"] == phase)

    def wait_for_round(self, number: int) -> None:
        self.service.wait_for(self.server_id, lambda server: (server["round"] or 0) >= number)

    def wait_for_player(self, steam_id: str) -> None:
        def is_there(server: Json) -> bool:
            return any(one["steamId"] == steam_id and one["state"] == "connected" for one in server["roster"])

        self.service.wait_for(self.server_id, is_there)

    def request(self, action: str, *, key: str | None = None, **fields: Any) -> Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.service.call("POST", self.path, {"type": action, **fields}, headers=headers)

    def act(self, action: str, *, state: str = "done", **fields: Any) -> Json:
        """Ask for an action, wait until it is done or has failed, and return it."""

        def ask() -> Json | None:
            response = self.request(action, **fields)
            # The plugin refuses some actions for as long as the teams change sides.
            assert response.status == 202 or "retryAfter" in response.json, response.raw
            accepted: Json = response.json
            return accepted if response.status == 202 else None

        asked = wait_until(ask, f"{action} is possible")
        assert asked["state"] == "requested"
        found = self.wait_for_end(asked["actionId"])
        assert found["state"] == state, found
        return found

    def wait_for_end(self, action_id: str) -> Json:
        last: list[Json] = []

        def poll() -> Json | None:
            last[:] = [self.service.call("GET", f"{self.path}/{action_id}").json]
            return last[0] if last[0]["state"] in ("done", "failed") else None

        return wait_until(poll, lambda: f"end of the action: {last}")

    def actions(self) -> Json:
        found: Json = self.service.call("GET", self.path).json
        return found

    def possible(self) -> set[str]:
        return {one["type"] for one in self.actions()["possible"] if one["possible"]}

    def callback(self) -> Any:
        return self.receiver.wait_for(f"/{self.name}")[0].json


@pytest.fixture(scope="module")
def receiver() -> Iterator[CallbackReceiver]:
    with CallbackReceiver() as found:
        yield found


@pytest.fixture(scope="module")
def service(database_url: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with RunningService(tmp_path_factory.mktemp("actions"), database_url=database_url) as found:
        yield found


def test_each_action_once(service: RunningService, receiver: CallbackReceiver) -> None:
    people = cvars(SPEED, sim_substitutes=SUBSTITUTE, sim_casters=CASTER, sim_unpause=0)
    match = ActedMatch(service, receiver, "each", customCvars=people)
    match.wait_for_phase("live")
    match.wait_for_round(2)
    assert {"pause", "restore", "say", "kick", "forfeit"} <= match.possible()
    match.act("say", text="Welcome", by="ann")
    match.act("addPlayer", **{"steamId": CASTER, "as": "spectator"})
    match.act("pause", reason="a cable")
    assert match.wait_for_phase("paused")["pendingAction"] is None
    match.act("kick", steamId=DAN)
    match.act("unpause")
    match.act("replacePlayer", out=ANN, **{"in": SUBSTITUTE})
    match.wait_for_player(SUBSTITUTE)
    match.act("removePlayer", steamId=CASTER)
    restored = match.act("restore", round=2)
    assert restored["round"] == 2
    match.wait_for_phase("paused")
    match.act("unpause")
    match.wait_for_round(3)
    match.wait_for_player(SUBSTITUTE)
    match.act("forfeit", winner="team2", reason="Team 1 has left", by="referee")
    assert service.get(match.server_id)["endedAt"] is not None, "it is done when the match has ended, not before"

    body = match.callback()
    assert (body["eventType"], body["result"]["winner"], body["result"]["forfeit"]) == ("match_over", "team2", True)
    overall = {one["steamId"] for one in body["result"]["overall"]}
    assert {ANN, SUBSTITUTE} <= overall
    assert CASTER not in overall
    items = match.actions()["items"]
    assert [one["type"] for one in reversed(items)] == [
        "say", "addPlayer", "pause", "kick", "unpause", "replacePlayer", "removePlayer", "restore", "unpause", "forfeit"
    ]  # fmt: skip
    [timeline] = read_history(service, match.server_id).timelines
    shown = [(item["action"], item["state"]) for item in timeline if item["type"] == "action"]
    assert shown == [(one["type"], state) for one in reversed(items) for state in ("requested", "done")]
    assert timeline[-1]["type"] == "map_end"
    audit = service.call("GET", "/api/v1/audit").json["items"]
    details = [
        one["detail"] for one in audit if (one["action"], one["target"]) == ("action_requested", match.server_id)
    ]
    assert details[0] == "forfeit, winner team2, reason Team 1 has left, by referee"
    assert match.request("say", text="late").json["error"] == "ACTION_NOT_POSSIBLE"


def test_play_starts_without_the_missing_player_and_the_command_line_acts_through_the_running_service(
    service: RunningService, receiver: CallbackReceiver
) -> None:
    # This server logs the command, but not the text.
    people = cvars(SPEED, sim_absent=DAN, sim_console_chat=0)
    match = ActedMatch(service, receiver, "start", customCvars=people, joinSeconds=600)
    match.wait_for_player(ANN)
    before = service.get(match.server_id)["deadline"]["until"]
    match.act("extendJoin", seconds=120)
    after = service.wait_for(match.server_id, lambda server: server["deadline"]["until"] > before)
    assert after["deadline"]["waitingFor"] == "players_to_join"
    match.act("start")
    match.wait_for_phase("live")
    said = service.run("match", "act", match.server_id, "say", "text=Hello all", "--by", "ops")
    assert (said.returncode, said.stdout) == (0, "say done.\n"), said.stderr
    wrong = service.run("match", "act", match.server_id, "restore", "round=99")
    assert wrong.returncode == 1
    assert "Round 99 cannot be restored" in wrong.stdout
    misspelled = service.run("match", "act", match.server_id, "kick", "steamid=1")
    assert misspelled.returncode == 2
    assert "did you mean steamId" in misspelled.stderr
    listed = service.run("match", "actions", match.server_id, "--json")
    assert [one["state"] for one in json.loads(listed.stdout)][:2] == ["failed", "done"]
    service.cancel(match.server_id)
    ended = service.run("match", "act", match.server_id, "pause")
    assert (ended.returncode, ended.stderr) == (1, "matchpod: The match has ended.\n")


@pytest.mark.soak
def test_match_with_teams_that_nobody_lists(service: RunningService, receiver: CallbackReceiver) -> None:
    open_teams = {"team1": {"name": "Reds"}, "team2": {"name": "Blues"}}
    people = cvars(SPEED, sim_roster_delay=120)
    match = ActedMatch(service, receiver, "open", customCvars=people, teams=open_teams)
    match.wait_for_phase("live")
    match.act("pause")
    match.act("unpause")
    match.act("forfeit", winner="team1")
    assert match.callback()["result"]["winner"] == "team1"
    assert teams(2)  # the listed ones of the other tests
