"""Over HTTP: who leaves before play, or for the next map, has the time to join again; then the match is canceled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.game_server import execute
from tests.e2e.service.running_service import (
    Json,
    RunningService,
    cvars,
    free_port_range,
    players,
    region,
    short_match,
)

REGION_SPEED = 20
JOIN_S = 300 / REGION_SPEED
"""The time to join in this region."""
CLOCK_S = 1.0
"""By how much two times may differ that are rounded, or are not those of the same observation."""

PLAYERS = players(4)

BEFORE_PLAY = short_match(customCvars=cvars(20, "late_join"))
"""The last player comes nine seconds after the others; in between, another one is kicked."""
SERIES = short_match(
    map="de_nuke", maps=["de_inferno", "de_vertigo"], seriesFormat="bo3", maxRounds=2, customCvars=cvars(30)
)


class BrokenRoster:
    """A match in which a player is kicked, as callers saw it until its end."""

    def __init__(
        self,
        service: RunningService,
        receiver: CallbackReceiver,
        settings: Json,
        is_time_to_kick: Callable[[Json], bool],
    ) -> None:
        path = f"/{settings.get('seriesFormat', 'bo1')}"
        self.server_id = service.create(settings, externalMatchId=path, callbackUrl=receiver.url(path))["serverId"]
        server = service.wait_for(self.server_id, is_time_to_kick)
        self.gone = _connected(server)[0]
        execute(server, f"kickid {self.gone}")
        self.waiting = service.wait_for(self.server_id, self._waits_for_the_kicked_player)
        self.callback: dict[str, Any] = receiver.wait_for(path)[0].json
        self.final = service.get(self.server_id)

    def _waits_for_the_kicked_player(self, server: Json) -> bool:
        is_before_play = server["phase"] in ("waiting_for_players", "between_maps")
        others = [player for player in PLAYERS if player != self.gone]
        return is_before_play and server["deadline"] is not None and _connected(server) == others

    def check(self) -> None:
        """Check the deadline while callers wait, and what they are told afterwards."""
        waiting = self.waiting
        assert waiting["deadline"]["waitingFor"] == "players_to_join"
        assert _time(self.final["endedAt"]) >= _time(waiting["deadline"]["until"])
        lists = {"missingPlayers": [], "connectedPlayers": PLAYERS, "absentPlayers": [self.gone]}
        for said in (self.callback, self.final):
            assert said["reason"] == "incomplete_roster"
            assert {name: said[name] for name in lists} == lists


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _connected(server: Json) -> list[str]:
    return [one["steamId"] for one in server["roster"] if one["state"] == "connected"]


@pytest.fixture(scope="module")
def service(database_url: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    regions = region("sandbox", free_port_range(2), speed=REGION_SPEED)
    with RunningService(tmp_path_factory.mktemp("rosters"), regions=regions, database_url=database_url) as running:
        yield running


def test_roster_that_breaks_before_play_has_the_time_to_join_again(service: RunningService) -> None:
    with CallbackReceiver() as receiver:
        match = BrokenRoster(service, receiver, BEFORE_PLAY, lambda server: len(_connected(server)) == len(PLAYERS) - 1)
        match.check()
        # The roster was complete when the last player had joined, and broken at once.
        broken_at = max(_time(one["since"]) for one in match.waiting["roster"])
        allowed = _time(match.waiting["deadline"]["until"]) - broken_at
        assert allowed.total_seconds() == pytest.approx(JOIN_S, abs=CLOCK_S)


def test_player_who_does_not_come_back_for_the_next_map_ends_the_series(service: RunningService) -> None:
    with CallbackReceiver() as receiver:
        match = BrokenRoster(service, receiver, SERIES, lambda server: server["phase"] == "live")
        match.check()
        assert match.waiting["match"]["mapNumber"] == 2
