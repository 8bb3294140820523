"""Which matches are played with interruptions, and how do they end without any? The same seeds and settings.

The reference is played once, on a service that nobody disturbs, at a speed of its own: speed changes no result.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from matchpod.adapters.postgres import PostgresDatabase
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.ports import Row
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.running_service import Json, RunningService, cvars, short_match, teams

REFERENCE_SPEED = 200

SERIES: Json = {
    "matchType": "wingman",
    "map": "de_nuke",
    "maps": ["de_nuke", "de_inferno", "de_vertigo"],
    "seriesFormat": "bo3",
    "maxRounds": 4,
}


class Played(NamedTuple):
    """A match by its name: the seed is what makes it this match."""

    seed: int
    scenario: str = "full_match"
    settings: Json = {}

    def at(self, speed: int) -> Json:
        """Its `gameSettings`, played at this speed."""
        played = cvars(speed, self.scenario, sim_seed=self.seed)
        return short_match(**{"maxRounds": 8, "teams": teams(2), "customCvars": played, **self.settings})


MATCHES = {
    "starting": Played(2),
    "fresh": Played(12),
    "joining": Played(13, "late_join"),
    "live": Played(3),
    "leaver": Played(15, "rage_quit_rejoin"),
    "restored": Played(16, "round_restore"),
    "series": Played(20, settings=SERIES),
    "told": Played(13),
}


def comparable(body: Json) -> Json:
    """What a callback says of the match itself: all but when, and under which names it was known here."""
    own = {"serverId", "sessionId", "externalMatchId", "timestamp"}
    return {name: value for name, value in body.items() if name not in own}


@cache
def reference() -> dict[str, Json]:
    """The callback of each match, played without an interruption."""
    with tempfile.TemporaryDirectory() as folder, CallbackReceiver() as receiver:
        with RunningService(Path(folder)) as service:
            made = [
                service.create(match.at(REFERENCE_SPEED), callbackUrl=receiver.url(f"/{name}"))["serverId"]
                for name, match in MATCHES.items()
            ]
            bodies = {name: comparable(receiver.wait_for(f"/{name}")[0].json) for name in MATCHES}
            service.wait_until_released(*made)
            assert service.close() == []
    assert {body["eventType"] for body in bodies.values()} == {"match_over"}, bodies
    return bodies


def rows(service: RunningService, database_url: str | None, sql: str) -> list[Row]:
    """What the database of a service says, whether that runs or not."""

    async def read() -> list[Row]:
        if database_url is None:
            db = await SqliteDatabase.open(service.data_dir / "matchpod.sqlite3")
            try:
                return await db.read(sql)
            finally:
                await db.close()
        shared = await PostgresDatabase.open(database_url)
        try:
            return await shared.read(sql)
        finally:
            await shared.close()

    return asyncio.run(read())


def assert_nothing_is_left(service: RunningService, database_url: str | None, server_ids: Iterable[str]) -> None:
    """Every match has one outcome and is released; no place is taken, no game server runs."""
    expected = sorted(server_ids)
    outcomes = rows(service, database_url, "SELECT server_id FROM outcomes ORDER BY server_id")
    assert [row[0] for row in outcomes] == expected
    assert rows(service, database_url, "SELECT id, phase FROM servers WHERE phase <> 'released'") == []
    assert rows(service, database_url, "SELECT slot FROM slots") == []
    assert rows(service, database_url, "SELECT server_id FROM snapshots") == []
    assert service.server_processes() == []
