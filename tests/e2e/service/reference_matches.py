"""Define the matches that are played with interruptions, and play them without any as the reference.

The reference has the same seeds and settings. It is played once, at its own speed, which does not change results.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from difflib import unified_diff
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import asyncpg  # type: ignore[import-untyped]  # the wheel has no py.typed

from matchpod.adapters.postgres import PostgresDatabase
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.ports import Row
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.read_history import PRESENCE_TYPES, play_items, presence_changes, read_timelines
from tests.e2e.service.running_service import Json, RunningService, cvars, short_match, teams
from tests.effort import IS_SOAK

REFERENCE_SPEED = 200
"""Speed of the reference matches. With `sim_lockstep`, game time waits until the log is acknowledged, so nothing
happens while the service is down. In `make soak`, without it, the games continue."""

SERIES: Json = {
    "matchType": "wingman",
    "map": "de_nuke",
    "maps": ["de_nuke", "de_inferno", "de_vertigo"],
    "seriesFormat": "bo3",
    "maxRounds": 4,
}


class MatchSpec(NamedTuple):
    """A match that can be repeated: its seed determines what happens."""

    seed: int
    scenario: str = "full_match"
    settings: Json | None = None

    def settings_at(self, speed: int) -> Json:
        custom_cvars = cvars(speed, self.scenario, sim_seed=self.seed, sim_lockstep=int(not IS_SOAK))
        return short_match(**{"maxRounds": 6, "teams": teams(2), "customCvars": custom_cvars, **(self.settings or {})})


MATCHES = {
    "starting": MatchSpec(4),
    "fresh": MatchSpec(13),
    "joining": MatchSpec(2, "late_join", {"maxRounds": 4}),
    "live": MatchSpec(7),
    "leaver": MatchSpec(4, "rage_quit_rejoin"),
    "restored": MatchSpec(11, "round_restore"),
    "series": MatchSpec(11, settings=SERIES),
    "delivering": MatchSpec(5),
    "uncommitted": MatchSpec(1),
}
if not IS_SOAK:
    # Fewer starts of games: the others are at the same stages when they are interrupted.
    for _name in ("starting", "live", "leaver"):
        del MATCHES[_name]


def comparable(body: Json) -> Json:
    """Return a callback without the fields that differ between two runs of the same match: ids and time."""
    excluded = {"serverId", "sessionId", "externalMatchId", "timestamp"}
    return {name: value for name, value in body.items() if name not in excluded}


class ReferenceMatch(NamedTuple):
    """A match that was played without interruption."""

    callback: Json
    timelines: list[list[Json]]
    """The timeline of each map."""


class Reference:
    """Each match as played without interruption. The first of all test processes plays them and stores them in a file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "reference.json"
        self._lock = folder / "reference.lock"

    @cached_property
    def matches(self) -> dict[str, ReferenceMatch]:
        with self._lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._file.exists():
                self._file.write_text(json.dumps(_play_reference()))
            return {name: ReferenceMatch(*fields) for name, fields in json.loads(self._file.read_text()).items()}

    def assert_same_timelines(self, found: Iterable[list[Json]], name: str) -> None:
        """The timelines of the maps of this match equal those of the reference."""
        for items, expected in zip(found, self.matches[name].timelines, strict=True):
            _assert_same_timeline(items, expected, name)


def _play_reference() -> dict[str, ReferenceMatch]:
    with (
        tempfile.TemporaryDirectory() as folder,
        CallbackReceiver() as receiver,
        RunningService(Path(folder)) as service,
    ):
        created = {
            name: service.create(match.settings_at(REFERENCE_SPEED), callbackUrl=receiver.url(f"/{name}"))["serverId"]
            for name, match in MATCHES.items()
        }
        bodies = {name: comparable(receiver.wait_for(f"/{name}")[0].json) for name in MATCHES}
        timelines = {name: [*read_timelines(service, server_id).values()] for name, server_id in created.items()}
    assert {body["eventType"] for body in bodies.values()} == {"match_over"}, bodies
    return {name: ReferenceMatch(bodies[name], timelines[name]) for name in MATCHES}


def _assert_same_timeline(items: list[Json], expected: list[Json], name: str) -> None:
    actual, reference_items = ([json.dumps(item) for item in play_items(one)] for one in (items, expected))
    assert actual == reference_items, "\n".join(
        unified_diff(reference_items, actual, "reference", "actual", lineterm="")
    )
    changes = presence_changes(items)
    if name != "leaver":
        assert changes == presence_changes(expected)
        return
    # The console may list a player at the moment they leave.
    assert changes.keys() == presence_changes(expected).keys()
    for types in changes.values():
        assert types == [PRESENCE_TYPES[index % 2] for index in range(len(types))]
        assert len(types) % 2 == 1, "all players are connected at the end"


def read_rows(service: RunningService, database_url: str | None, sql: str) -> list[Row]:
    """Query the database of a service, whether or not the service is running."""

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
def blocked_writes(service: RunningService, database_url: str | None) -> Iterator[None]:
    """Let writers wait inside the `with` block: all writers on SQLite, those that store an outcome on PostgreSQL."""
    if database_url is None:
        with closing(sqlite3.connect(service.data_dir / "matchpod.sqlite3", isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            yield
            file.execute("ROLLBACK")
        return
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(database_url))
        try:
            runner.run(connection.execute("BEGIN; LOCK TABLE outcomes IN EXCLUSIVE MODE"))
            yield
        finally:
            runner.run(connection.close())


def assert_nothing_is_left(service: RunningService, database_url: str | None, server_ids: Iterable[str]) -> None:
    """Every match has one outcome and is released, no slot is in use, and no game server is running."""
    expected = sorted(server_ids)
    outcomes = read_rows(service, database_url, "SELECT server_id FROM outcomes ORDER BY server_id")
    assert [row[0] for row in outcomes] == expected
    assert read_rows(service, database_url, "SELECT id, phase FROM servers WHERE phase <> 'released'") == []
    assert read_rows(service, database_url, "SELECT slot FROM slots") == []
    assert read_rows(service, database_url, "SELECT server_id FROM snapshots") == []
    assert service.server_processes() == []
