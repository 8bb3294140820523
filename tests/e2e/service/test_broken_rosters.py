"""Over HTTP: who leaves before play, or for the next map, has the time to join again; then the match is canceled.

Those who come and go do not stop that time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest

from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.running_service import (
    Json,
    RunningService,
    cvars,
    free_port_range,
    players,
    region,
    short_match,
)

REGION_SPEED = 30
JOIN_S = 300 / REGION_SPEED
"""The time to join in this region."""
LOAD_S = 60 / REGION_SPEED
"""For how long a client that is still loading then is waited for."""
CLOCK_S = 1.0
"""By how much two times may differ that are rounded, or are not those of the same observation."""

PLAYERS = players(4)

SCENARIOS = {
    "before play": short_match(customCvars=cvars(60, "early_leaver")),
    "between maps": short_match(
        map="de_nuke", maps=["de_inferno", "de_vertigo"], seriesFormat="bo3", customCvars=cvars(100, "leaver")
    ),
}


@pytest.fixture(scope="module")
def service(database_url: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    regions = region("sandbox", free_port_range(2), speed=REGION_SPEED)
    with RunningService(tmp_path_factory.mktemp("rosters"), regions=regions, database_url=database_url) as running:
        yield running


@pytest.mark.parametrize("name", ["before play", pytest.param("between maps", marks=pytest.mark.soak)])
def test_player_who_left_before_play_has_the_time_to_join_again(service: RunningService, name: str) -> None:
    with CallbackReceiver() as receiver:
        server_id = service.create(SCENARIOS[name], callbackUrl=receiver.url("/"))["serverId"]
        waiting = service.wait_for(server_id, _waits_for_one_who_left)
        (callback,) = receiver.wait_for("/")
    ended = service.get(server_id)
    (listed,) = (item for item in service.call("GET", "/api/v1/servers").json["items"] if item["serverId"] == server_id)
    (gone,) = (player["steamId"] for player in waiting["roster"] if player["state"] == "left")
    lists = {"missingPlayers": [], "connectedPlayers": PLAYERS, "absentPlayers": [gone]}
    for outcome in (callback.json, ended, listed):
        assert outcome["reason"] == "incomplete_roster"
        assert {field: outcome[field] for field in lists} == lists
    assert waiting["deadline"]["waitingFor"] == "players_to_join"
    assert waiting["match"]["mapNumber"] == (1 if name == "before play" else 2)
    until = _time(waiting["deadline"]["until"])
    assert _time(ended["endedAt"]) >= until
    if name == "before play":
        # The roster was complete, and broken, when the last player joined.
        broken_at = max(_time(player["since"]) for player in waiting["roster"])
        assert (until - broken_at).total_seconds() == pytest.approx(JOIN_S, abs=CLOCK_S)


def test_client_that_crashes_while_it_loads_does_not_stop_the_time_to_join(service: RunningService) -> None:
    shown: list[Json] = []

    def is_over(server: Json) -> bool:
        if server["phase"] == "waiting_for_players":
            shown.append(server)
        return bool(server["phase"] == "ended")

    server_id = service.create(short_match(customCvars=cvars(REGION_SPEED, "loading_crash")))["serverId"]
    ended = service.wait_for(server_id, is_over)
    assert (ended["reason"], ended["missingPlayers"], ended["connectedPlayers"]) == ("incomplete_roster", [], PLAYERS)
    assert {server["deadline"]["waitingFor"] for server in shown} == {"players_to_join"}
    left = [player for server in shown for player in server["roster"] if player["state"] == "left"]
    assert {player["steamId"] for player in left} == set(ended["absentPlayers"])
    first_left_at = min(_time(player["since"]) for player in left)
    lasted_s = (_time(ended["endedAt"]) - first_left_at).total_seconds()
    assert lasted_s <= JOIN_S + LOAD_S + CLOCK_S


def _waits_for_one_who_left(server: Json) -> bool:
    states = sorted(player["state"] for player in server["roster"])
    is_before_play = server["phase"] in ("waiting_for_players", "between_maps")
    return is_before_play and server["deadline"] is not None and states == [*["connected"] * (len(PLAYERS) - 1), "left"]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
