"""Actions are carried out once or fail, whatever happens to the service meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.contract.databases import create_postgres_schema
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.reference_matches import read_rows
from tests.e2e.service.running_service import RunningService, cvars, players, two_replicas
from tests.e2e.service.test_match_actions import ActedMatch
from tests.effort import sized

SPEED = 30
KILLS = sized(1, 2)
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


def test_action_reaches_the_replica_that_drives_the_match(
    request: pytest.FixtureRequest, tmp_path: Path, receiver: CallbackReceiver
) -> None:
    url = create_postgres_schema(request)
    with two_replicas(tmp_path, url) as (one, two):
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
