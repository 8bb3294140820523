"""Actions are carried out once or fail, whatever happens to the service or to the match meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.contract.databases import create_postgres_schema
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.game_server import execute
from tests.e2e.service.reference_matches import read_rows
from tests.e2e.service.running_service import RunningService, cvars, default_regions, players
from tests.e2e.service.test_match_actions import ActedMatch
from tests.effort import sized

SPEED = 30
KILLS = ENDS = sized(1, 2)
REACHED_S = 5.0
"""Far more than it takes: machines that run tests are busy."""
ANN = players(1)[0]
SUBSTITUTES = players(KILLS, first=50)


@pytest.fixture(scope="module")
def receiver() -> Iterator[CallbackReceiver]:
    with CallbackReceiver() as found:
        yield found


def test_action_is_carried_out_once_or_fails_if_the_service_is_killed(
    database_url: str | None, tmp_path: Path, receiver: CallbackReceiver
) -> None:
    with RunningService(tmp_path, database_url=database_url) as service:
        people = cvars(SPEED, sim_substitutes=",".join(SUBSTITUTES), sim_unpause=0)
        match = ActedMatch(service, receiver, "killed", customCvars=people)
        match.wait_for_phase("live")
        out = ANN
        for number, substitute in enumerate(SUBSTITUTES):
            asked = [
                match.request("say", text=f"text {number}"),
                match.request("replacePlayer", out=out, **{"in": substitute}),
            ]
            assert [one.status for one in asked] == [202, 202], asked
            service.kill()
            service.start()
            said, replaced = (match.wait_for_end(one.json["actionId"]) for one in asked)
            log = service.call("GET", f"/api/v1/servers/{match.server_id}/log").raw.decode()
            times = log.count(f'"Console<0>" say "text {number} ')
            assert times <= 1
            assert times == 1 or said["state"] == "failed"
            assert replaced["state"] == "done", replaced
            out = substitute
        match.act("forfeit", winner="team2")
        assert len(receiver.wait_for("/killed")) == 1


def test_forfeit_and_the_end_of_play_give_one_outcome(
    database_url: str | None, tmp_path: Path, receiver: CallbackReceiver
) -> None:
    with RunningService(tmp_path, database_url=database_url) as service:
        for number in range(ENDS):
            name = f"end-{number}"
            match = ActedMatch(service, receiver, name, maxRounds=4, customCvars=cvars(60, sim_seed=number + 1))
            match.wait_for_round(3)
            asked = []
            while service.get(match.server_id)["status"] == "running":
                response = match.request("forfeit", winner="team2")
                if response.status == 202:
                    asked.append(response.json["actionId"])
                    match.wait_for_end(asked[-1])
                    break
            (callback,) = receiver.wait_for(f"/{name}")
            done = [one for one in asked if match.wait_for_end(one)["state"] == "done"]
            result = callback.json["result"]
            assert result.get("forfeit", False) is bool(done)
            assert not done or result["winner"] == "team2"
            assert match.service.call("GET", f"/api/v1/servers/{match.server_id}/result").json == result


def test_action_reaches_the_replica_that_drives_the_match(
    request: pytest.FixtureRequest, tmp_path: Path, receiver: CallbackReceiver
) -> None:
    url, regions, data = create_postgres_schema(request), default_regions(), tmp_path / "data"
    replicas = [
        RunningService(tmp_path / name, database_url=url, regions=regions, data_dir=data) for name in ("one", "two")
    ]
    with replicas[0] as one, replicas[1] as two:
        two.key = one.key
        matches = [ActedMatch(one, receiver, f"replica-{number}", customCvars=cvars(SPEED)) for number in range(2)]
        for match in matches:
            match.wait_for_phase("live")
            for service in (one, two):
                match.service = service
                match.act("say", text="Hello")
        rows = read_rows(one, url, "SELECT line FROM organization_events")
        events = [
            event
            for (line,) in rows
            if (event := json.loads(str(line, "utf-8") if isinstance(line, bytes) else str(line)))["type"] == "action"
        ]
        times = {(event["actionId"], event["state"]): datetime.fromisoformat(event["at"]) for event in events}
        waited = [times[action, "sent"] - at for (action, state), at in times.items() if state == "requested"]
        assert len(waited) == 4
        assert max(waited).total_seconds() < REACHED_S, waited


@pytest.mark.soak
def test_actions_in_pairs_are_carried_out_or_fail(
    database_url: str | None, tmp_path: Path, receiver: CallbackReceiver
) -> None:
    substitute, caster = players(2, first=80)
    kinds: dict[str, dict[str, Any]] = {
        "pause": {},
        "unpause": {},
        "say": {"text": "Hello"},
        "kick": {"steamId": ANN},
        "addPlayer": {"steamId": caster, "as": "spectator"},
        "removePlayer": {"steamId": caster},
        "replacePlayer": {"out": ANN, "in": substitute},
        "restore": {"round": 1},
    }
    with RunningService(tmp_path, database_url=database_url) as service:
        people = cvars(SPEED, sim_substitutes=substitute, sim_casters=caster, sim_unpause=5)
        for first in kinds:
            match = ActedMatch(service, receiver, f"pairs-{first}", customCvars=people)
            match.wait_for_phase("live")
            match.wait_for_round(2)
            for second in kinds:
                answers = [match.request(kind, **kinds[kind]) for kind in (first, second)]
                assert all(one.status in (202, 409) for one in answers), [one.raw for one in answers]
                ended = [match.wait_for_end(one.json["actionId"]) for one in answers if one.status == 202]
                assert all(one["detail"] is None or one["state"] == "failed" for one in ended)
                if service.get(match.server_id)["phase"] == "paused":
                    match.request("unpause")
                if match.request("replacePlayer", out=substitute, **{"in": ANN}).status == 202:
                    match.wait_for_player(ANN)
            match.act("forfeit", winner="team1")
            (callback,) = receiver.wait_for(f"/pairs-{first}")
            assert callback.json["result"]["forfeit"] is True


@pytest.mark.soak
def test_actions_at_the_speed_of_a_real_game(
    database_url: str | None, tmp_path: Path, receiver: CallbackReceiver
) -> None:
    """A pause waits for the end of the round, and the plugin refuses a restore while the teams change sides."""
    with RunningService(tmp_path, database_url=database_url) as service:
        match = ActedMatch(service, receiver, "real", maxRounds=4, customCvars=cvars(50, sim_unpause=0))
        match.wait_for_phase("live")
        execute(service.get(match.server_id), "sim_speed 1")
        match.wait_for_round(2)
        asked = match.request("pause")
        assert asked.status == 202
        found = match.wait_for_end(asked.json["actionId"])
        assert found["state"] == "done", found
        times = [datetime.fromisoformat(found[name]) for name in ("requestedAt", "changedAt")]
        assert times[1] > times[0]
        assert match.wait_for_phase("paused")["pendingAction"] is None
        match.act("say", text="Play goes on in a moment")
        match.act("unpause")
        match.act("restore", round=2)
        match.wait_for_phase("paused")
        match.act("unpause")
        match.wait_for_round(3)
        match.act("forfeit", winner="team1")
        assert match.callback()["result"]["forfeit"] is True
