"""Matches of the sandbox as it is out of the box: all different, with times in order, and without accusations."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.service.read_history import History, get_json, read_history
from tests.e2e.service.running_service import Json, RunningService, free_port_range, region, teams
from tests.effort import sized

MATCHES = sized(2, 50)
AT_ONCE = sized(2, 10)
ROUNDS = sized(4, 16)
SPEED = 60
"""Players have only seconds to join at a higher speed, which a busy machine may need to start a server."""
SETTINGS = {"matchType": "competitive", "map": "de_mirage", "maxRounds": ROUNDS, "teams": teams(5)}


class Sandbox:
    """The matches that were played, and what the service knows about them."""

    def __init__(self, service: RunningService) -> None:
        self.service = service
        self.began = now()
        self.created: list[Json] = []
        while len(self.created) < MATCHES:
            count = min(AT_ONCE, MATCHES - len(self.created))
            batch = [service.create(_settings(number)) for number in range(count)]
            self.created += batch
            service.wait_until_released(*(one["serverId"] for one in batch))
        self.ended = now()
        self.histories = [read_history(service, one["serverId"]) for one in self.created]


def _settings(number: int) -> Json:
    """Without a seed. One match of each batch has its own speed."""
    return {**SETTINGS, "customCvars": f"sim_speed {SPEED * 3}"} if number == 1 else SETTINGS


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory, database_url: str | None) -> Iterator[Sandbox]:
    folder: Path = tmp_path_factory.mktemp("sandbox")
    regions = region("sandbox", free_port_range(AT_ONCE), speed=SPEED)
    with RunningService(folder, regions=regions, database_url=database_url) as service:
        yield Sandbox(service)


def only_map(history: History) -> tuple[Json, list[Json]]:
    (detail,), (items,) = history.maps, history.timelines
    return detail, items


def test_all_matches_are_played_to_the_end(sandbox: Sandbox) -> None:
    assert [history.statuses for history in sandbox.histories] == [["finished"]] * MATCHES


def test_no_two_matches_are_alike(sandbox: Sandbox) -> None:
    details = [only_map(history)[0] for history in sandbox.histories]
    numbers = [tuple((one["kills"], one["deaths"], one["damageDealt"]) for one in map["players"]) for map in details]
    assert len(set(numbers)) == MATCHES


def test_times_are_in_order_between_creation_and_now(sandbox: Sandbox) -> None:
    for created, history in zip(sandbox.created, sandbox.histories, strict=True):
        detail, items = only_map(history)
        server = sandbox.service.get(created["serverId"])
        rounds = get_json(sandbox.service, f"/api/v1/cs2/matches/{detail['id']}/rounds")["rounds"]
        in_rounds = [time for one in rounds for time in (one["startedAt"], one["endedAt"])]
        stamps = [item["timestamp"] for item in items]
        assert stamps == sorted(stamps)
        times = [server["createdAt"], detail["startedAt"], *in_rounds, detail["finishedAt"], server["endedAt"]]
        assert times == sorted(times)
        assert sandbox.began <= times[0] <= stamps[0]
        assert max(times[-1], stamps[-1]) <= sandbox.ended


def test_nobody_is_accused(sandbox: Sandbox) -> None:
    assert [only_map(history)[0]["antiCheat"] for history in sandbox.histories] == [[]] * MATCHES
