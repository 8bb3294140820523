"""Between two maps of a series, callers see the next map over HTTP: get server, list and stream agree."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.e2e.service.running_service import Json, RunningService, cvars, short_match

pytestmark = pytest.mark.soak
"""`make test` tries the same views without HTTP: tests/contract/test_between_maps.py."""

MAPS = ["de_nuke", "de_inferno", "de_vertigo"]
SPEED = 40
"""Fast enough for a test, and slow enough to be seen between two maps."""

POLL_S = 0.03

NOT_LIVE = ("between_maps", "waiting_for_players", "starting")


class SeenSeries:
    """A series that was polled until its end: what callers saw of it, in order and without repetitions."""

    def __init__(self, service: RunningService) -> None:
        settings = short_match(
            map=MAPS[0], maps=MAPS[1:], seriesFormat="bo3", customCvars=cvars(SPEED, sim_seed=3, sim_lockstep=1)
        )
        self.servers: list[Json] = []
        self.items: list[Json] = []
        self.events: list[Json] = []
        connection = HTTPConnection("127.0.0.1", service.port, timeout=400)
        connection.request("GET", "/api/v1/stream", headers={"Authorization": f"Bearer {service.key}"})
        stream = connection.getresponse()
        reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
        server_id = service.create(settings)["serverId"]
        reader.start()
        while True:
            server = service.get(server_id)
            (item,) = service.call("GET", "/api/v1/servers").json["items"]
            if server["match"] is not None:
                _add(self.servers, {"phase": server["phase"], **server["match"], "players": None})
                _add(self.items, {name: item[name] for name in ("mapNumber", "seriesScore", "maps")})
            if server["status"] == "stopped":
                break
            time.sleep(POLL_S)
        self.final = item
        reader.join(60)
        connection.close()

    def _read(self, stream: Any) -> None:
        for line in stream:
            if line.startswith(b"data: "):
                self.events.append(json.loads(line[6:]))
                if self.events[-1]["type"] == "match_ended":
                    return


def _add(seen: list[Json], value: Json) -> None:
    if not seen or seen[-1] != value:
        seen.append(value)


@pytest.fixture(scope="module")
def seen(database_url: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeenSeries]:
    folder = tmp_path_factory.mktemp("maps")
    with RunningService(folder, database_url=database_url) as service:
        yield SeenSeries(service)


def test_next_map_is_shown_as_soon_as_a_map_has_ended(seen: SeenSeries) -> None:
    between = [one for one in seen.servers if one["mapNumber"] > 1 and one["phase"] in NOT_LIVE]
    assert {"between_maps", "starting"} <= {one["phase"] for one in between}
    for one in between:
        number = one["mapNumber"]
        assert (one["map"], one["score"]) == (MAPS[number - 1], {"team1": 0, "team2": 0})
        assert [played["status"] for played in one["maps"][: number - 1]] == ["finished"] * (number - 1)
        assert one["maps"][number - 1]["status"] == "upcoming"
        assert sum(one["seriesScore"].values()) == number - 1


def test_score_of_a_map_never_appears_under_another_map(seen: SeenSeries) -> None:
    numbers = [one["mapNumber"] for one in seen.servers]
    assert numbers == sorted(numbers)
    for one in seen.servers:
        state = one["maps"][one["mapNumber"] - 1]
        assert (state["name"], state["number"], state["score"]) == (one["map"], one["mapNumber"], one["score"])


def test_list_follows_the_maps(seen: SeenSeries) -> None:
    numbers = [one["mapNumber"] for one in seen.items]
    assert numbers == sorted(numbers)
    assert set(numbers) == {one["mapNumber"] for one in seen.servers}
    final = seen.final
    assert sum(final["seriesScore"].values()) == len(final["maps"]) == max(numbers)
    assert {one["status"] for one in final["maps"]} == {"finished"}


def test_stream_says_the_score_of_the_series(seen: SeenSeries) -> None:
    ended = [event for event in seen.events if event["type"] == "map_ended"]
    assert [sum(event["seriesScore"].values()) for event in ended] == list(range(1, len(ended) + 1))
    assert ended[-1]["seriesScore"] == seen.final["seriesScore"]
    live = [event for event in seen.events if event["type"] == "map_live"]
    assert [event["mapName"] for event in live] == MAPS[: len(live)]
    assert [one["status"] for one in ended[-1]["maps"]] == ["finished"] * len(ended)
