"""A minute of a server that waits for players and of one in play, at the speed of real games: no alarm is false."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.databases import create_postgres_schema
from tests.real_time.games import Game
from tests.real_time.session import TIME_OVER, Session

GAMES = (Game(name="idle", seed=1, scenario="no_show"), Game(name="in play", seed=2, rounds=8))
MINUTES = 2.5
"""A minute of play: the first one passes until the players have joined."""
REAL_GAP_S = 10.0


@pytest.mark.soak
@pytest.mark.parametrize("replicas", [1, 2])
def test_idle_and_playing_servers_raise_no_false_alarm(
    tmp_path: Path, request: pytest.FixtureRequest, replicas: int
) -> None:
    url = None if replicas == 1 else create_postgres_schema(request)
    session = Session(tmp_path, [[game] for game in GAMES], minutes=MINUTES, database_url=url, replicas=replicas)
    report = session.run()
    text = "\n".join(report.lines())
    assert report.false_alarms == [], text
    assert not report.faults, text
    assert report.ends == {"idle": TIME_OVER, "in play": TIME_OVER}, text
    assert min(report.longest_quiet_s.values()) > REAL_GAP_S, text
