"""Which matches are played with interruptions, and how do they end without any? The same seeds and settings.

The reference is played once, on an undisturbed service, at its own speed: speed changes no result.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import NamedTuple

import asyncpg  # type: ignore[import-untyped]  # the wheel has no py.typed

from matchpod.adapters.postgres import PostgresDatabase
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.ports import Row
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.read_history import PEOPLE, people_of, play_of, read_timelines
from tests.e2e.service.running_service import Json, RunningService, cvars, short_match, teams
from tests.effort import IS_SOAK

REFERENCE_SPEED = 200
"""Game time waits for the log to be acknowledged, so nothing is played while the service is down. In `make soak` the
games go on meanwhile."""

_PLAYING = threading.Lock()
"""It may be played in the background."""

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
    settings: Json | None = None

    def at(self, speed: int) -> Json:
        """Its `gameSettings`, played at this speed."""
        played = cvars(speed, self.scenario, sim_seed=self.seed, sim_lockstep=int(not IS_SOAK))
        return short_match(**{"maxRounds": 8, "teams": teams(2), "customCvars": played, **(self.settings or {})})


MATCHES = {
    "starting": Played(4),
    "fresh": Played(13),
    "joining": Played(2, "late_join", {"maxRounds": 4}),
    "live": Played(7),
    "leaver": Played(4, "rage_quit_rejoin"),
    "restored": Played(11, "round_restore"),
    "series": Played(11, settings=SERIES),
    "told": Played(5),
    "unwritten": Played(1),
}


def comparable(body: Json) -> Json:
    """What a callback says of the match itself: all but when, and under which names it was known here."""
    own = {"serverId", "sessionId", "externalMatchId", "timestamp"}
    return {name: value for name, value in body.items() if name not in own}


class Undisturbed(NamedTuple):
    """An undisturbed match."""

    callback: Json
    timelines: list[list[Json]]
    """Of each of its maps."""


def reference() -> dict[str, Undisturbed]:
    """Each match, played without interruption; the first caller waits for it."""
    with _PLAYING:
        return _play_reference()


@cache
def _play_reference() -> dict[str, Undisturbed]:
    with (
        tempfile.TemporaryDirectory() as folder,
        CallbackReceiver() as receiver,
        RunningService(Path(folder)) as service,
    ):
        made = {
            name: service.create(match.at(REFERENCE_SPEED), callbackUrl=receiver.url(f"/{name}"))["serverId"]
            for name, match in MATCHES.items()
        }
        bodies = {name: comparable(receiver.wait_for(f"/{name}")[0].json) for name in MATCHES}
        timelines = {name: [*read_timelines(service, server_id).values()] for name, server_id in made.items()}
    assert {body["eventType"] for body in bodies.values()} == {"match_over"}, bodies
    return {name: Undisturbed(bodies[name], timelines[name]) for name in MATCHES}


def assert_same_timelines(found: Iterable[list[Json]], name: str) -> None:
    """The timelines of the maps of this match equal those of the undisturbed match."""
    for items, expected in zip(found, reference()[name].timelines, strict=True):
        told, meant = ([json.dumps(item) for item in play_of(one)] for one in (items, expected))
        assert told == meant, "\n".join(unified_diff(meant, told, "undisturbed", "told", lineterm=""))
        moves = people_of(items)
        if name != "leaver":
            assert moves == people_of(expected)
            continue
        # The console may list a player at the moment they leave.
        assert moves.keys() == people_of(expected).keys()
        for told_of in moves.values():
            assert told_of == [PEOPLE[index % 2] for index in range(len(told_of))]
            assert len(told_of) % 2 == 1, "all are there in the end"


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


@contextmanager
def holding_writes(service: RunningService, database_url: str | None) -> Iterator[None]:
    """Block all writes of outcomes until the block ends: a writer waits in the middle of its transaction."""
    if database_url is None:
        with closing(sqlite3.connect(service.data_dir / "matchpod.sqlite3", isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            yield
            file.execute("ROLLBACK")
        return
    with asyncio.Runner() as runner:
        holder = runner.run(asyncpg.connect(database_url))
        try:
            runner.run(holder.execute("BEGIN; LOCK TABLE outcomes IN EXCLUSIVE MODE"))
            yield
        finally:
            runner.run(holder.close())


def assert_nothing_is_left(service: RunningService, database_url: str | None, server_ids: Iterable[str]) -> None:
    """Every match has one outcome and is released; no place is taken, no game server runs."""
    expected = sorted(server_ids)
    outcomes = rows(service, database_url, "SELECT server_id FROM outcomes ORDER BY server_id")
    assert [row[0] for row in outcomes] == expected
    assert rows(service, database_url, "SELECT id, phase FROM servers WHERE phase <> 'released'") == []
    assert rows(service, database_url, "SELECT slot FROM slots") == []
    assert rows(service, database_url, "SELECT server_id FROM snapshots") == []
    assert service.server_processes() == []
