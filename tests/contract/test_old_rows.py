"""Rows of earlier versions: all pages, lists and details show them, whatever field they do not have."""

from __future__ import annotations

import itertools
import json
import logging
import sqlite3
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from matchpod.core.views.leaderboard import LeaderboardSort
from matchpod.service.access.audit import Audit
from matchpod.service.identity.principals import Role
from matchpod.service.overlays import Overlays
from matchpod.settings.values import DATABASE_FILE
from matchpod.storage import servers
from tests.contract import earlier_database
from tests.contract.console.console_site import ConsoleSite, open_site
from tests.effort import IS_SOAK
from tests.unit.service.history.sample_log import log_post, players_join
from tests.vaults import tokens_of

OLD = "old"
LOG_HEADERS = {"Content-Type": "text/plain"}

ENDED, CANCELED, LIVE = earlier_database.ENDED, earlier_database.CANCELED, earlier_database.LIVE

PLAYED = {*ENDED, "crashed", "by-user"}
"""Those of the matches that are over in which a map began."""

LISTS = (
    "/console", "/console/matches", "/console/matches.csv", "/console/deliveries",
    "/console/regions", "/console/access", "/api/v1/servers?pageSize=100", "/api/v1/cs2/series?pageSize=100",
    "/api/v1/cs2/matches?pageSize=100", "/api/v1/callbacks?pageSize=100", "/api/v1/audit", "/api/v1/regions",
)  # fmt: skip

OF_CALLBACKS = {"callbacks", "callback_attempts"}
OF_MATCHES = {"servers", "outcomes", "organization_events"}
OF_MAPS = {"map_stats", "map_rounds", "map_events"}
READ_FROM = {
    "?round=": set[str](),  # has only lines that the page of the match has too
    "/log.txt": {"servers"},
    "/deliveries": OF_CALLBACKS,
    "/callbacks": OF_CALLBACKS,
    "/leaderboard": {"map_stats"},
    "/rounds": {"map_rounds"},
    "/events": {"map_events"},
    "/console/matches/": OF_MATCHES | OF_MAPS,
    "/cs2/matches/": {"servers"} | OF_MAPS,
    "/overlay/": {"servers"},
    "/cs2/": {"servers"},
    "?pageSize": {"servers", "organization_events"},
}
"""The tables that addresses are answered from, by a part of the address; the first that it has counts."""


# --- every JSON shape -----------------------------------------------------------------------------------------------
#
# Nothing is listed here: a shape is whatever a column of bytes holds as JSON, so new columns and fields are included.
# What game servers and plugins sent is left out: it is not ours, and is read by rules of its own.

NOT_OURS = {"raw_log"}
SERVERS = {
    "server_id": "server_id",
    "map_id": "(SELECT server_id FROM maps WHERE id = map_id)",
    "callback_id": "(SELECT server_id FROM callbacks WHERE id = callback_id)",
}
"""How the server of a row is found, by one of its columns."""

Fields = tuple[str, ...]
"""The names on the way to a field; `[]` stands for an entry of a list."""
Shape = tuple[str, str, str]
"""Table, column, and the type if there are several in one column."""
Change = Callable[[dict[str, Any], str], None]


def remove(owner: dict[str, Any], name: str) -> None:
    del owner[name]


def set_to_null(owner: dict[str, Any], name: str) -> None:
    """Leave a field without a value."""
    owner[name] = None


class Cell:
    """One value in a column of bytes that is JSON: an object, a list of them, or one per line; maybe compressed."""

    def __init__(self, table: str, column: str, row: int, body: bytes, server_id: str | None) -> None:
        self.table, self.column, self.row, self.server_id = table, column, row, server_id
        try:
            body, self._is_compressed = zlib.decompress(body), True
        except zlib.error:
            self._is_compressed = False
        try:
            self._value, self._is_lines = json.loads(body), False
        except ValueError:
            self._value, self._is_lines = [json.loads(line) for line in body.split(b"\n")], True
        found = self._value if isinstance(self._value, list) else [self._value]
        self.objects: list[dict[str, Any]] = [one for one in found if isinstance(one, dict)]

    def shape_of(self, found: dict[str, Any]) -> Shape:
        is_list = isinstance(self._value, list) and not self._is_lines
        return self.table, self.column, "" if is_list else str(found.get("type", ""))

    @property
    def body(self) -> bytes:
        if self._is_lines:
            body = b"\n".join(json.dumps(one, separators=(",", ":")).encode() for one in self._value)
        else:
            body = json.dumps(self._value, separators=(",", ":")).encode()
        return zlib.compress(body) if self._is_compressed else body


class Removal(NamedTuple):
    """A field that was changed in one object."""

    shape: Shape
    fields: Fields

    def __str__(self) -> str:
        table, column, kind = self.shape
        return f"{table}.{column}{f' {kind}' if kind else ''}: {'.'.join(self.fields)}"


def read_cells(path: Path) -> list[Cell]:
    """Return everything in a database that is JSON."""
    cells: list[Cell] = []
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in sorted(set(tables) - NOT_OURS):
            kinds = {name: kind for _, name, kind, *_ in database.execute(f"PRAGMA table_info({table})")}
            server = "id" if table == "servers" else next((SERVERS[name] for name in SERVERS if name in kinds), "NULL")
            for column in (name for name, kind in kinds.items() if kind == "BLOB"):
                rows = database.execute(f"SELECT rowid, {column}, {server} FROM {table} ORDER BY rowid").fetchall()
                for row, body, server_id in rows:
                    with suppress(ValueError, TypeError):  # sealed secrets, snapshots, nothing
                        cells.append(Cell(table, column, row, body, server_id))
    return cells


def write_cells(path: Path, cells: list[Cell]) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for cell in cells:
            statement = f"UPDATE {cell.table} SET {cell.column} = ? WHERE rowid = ?"
            database.execute(statement, (cell.body, cell.row))


def all_removals(cells: list[Cell]) -> set[Removal]:
    found = ((cell.shape_of(one), one) for cell in cells for one in cell.objects)
    return {Removal(shape, fields) for shape, one in found for fields in _fields(one)}


def change_each_once(cells: list[Cell], left: set[Removal], change: Change) -> dict[Cell, list[Removal]]:
    """Change one field of each object, if there are some in `left`, and take it out of there; return what was changed.

    An object within one that lost a field keeps its fields: it may not be read at all.
    """
    done: dict[Cell, list[Removal]] = {}
    by_shape: dict[Shape, set[Fields]] = {}
    for shape, fields in left:
        by_shape.setdefault(shape, set()).add(fields)
    for cell in cells:
        for one in cell.objects:
            shape = cell.shape_of(one)
            of_shape = by_shape.get(shape)
            for owner, fields in _objects_to_change(one, of_shape) if of_shape else ():
                change(owner, fields[-1])
                left.discard(Removal(shape, fields))
                done.setdefault(cell, []).append(Removal(shape, fields))
    return done


def _objects_to_change(
    found: object, left: set[Fields], before: Fields = ()
) -> Iterator[tuple[dict[str, Any], Fields]]:
    """Yield an object and one of its fields that is left, or those within it."""
    if isinstance(found, list):
        for entry in found:
            yield from _objects_to_change(entry, left, (*before, "[]"))
    elif isinstance(found, dict):
        fields = next(((*before, name) for name in found if (*before, name) in left), None)
        if fields is not None:
            left.discard(fields)
            yield found, fields
            return
        for name, value in found.items():
            yield from _objects_to_change(value, left, (*before, name))


def _fields(found: Mapping[str, object], before: Fields = ()) -> Iterator[Fields]:
    seen: set[Fields] = set()
    for name, value in found.items():
        fields = (*before, name)
        yield fields
        if isinstance(value, dict):
            yield from _fields(value, fields)
        for entry in value if isinstance(value, list) else ():
            if isinstance(entry, dict):
                inner = [one for one in _fields(entry, (*fields, "[]")) if one not in seen]
                seen.update(inner)
                yield from inner


# --- the application --------------------------------------------------------------------------------------------------


class OldSite:
    """The application on a database of an earlier version, as the organization sees it that owns the matches."""

    def __init__(self, site: ConsoleSite, key: str, overlays: Overlays) -> None:
        self.site = site
        self.key = key
        self._overlays = overlays
        self._sorts = itertools.cycle(LeaderboardSort)

    async def get(self, path: str, method: str = "GET") -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.key}"} if path.startswith("/api/") else {}
        return await self.site.request(method, path, who=OLD if path.startswith("/console") else None, headers=headers)

    async def failures(self, paths: Iterable[str]) -> dict[str, int]:
        """Return the addresses that cannot be read, with the status of their answers."""
        found = {path: (await self.get(path)).status_code for path in paths}
        return {path: status for path, status in found.items() if status != 200}

    async def matches(self) -> dict[str, str]:
        """Return the servers of all matches, by the id that their caller gave."""
        rows = await self.site.resources.db.read("SELECT external_match_id, id FROM servers")
        return {str(external_id): str(server_id) for external_id, server_id in rows}

    async def addresses(self, external_id: str, server_id: str) -> list[str]:
        callbacks, maps = await self.callback_addresses(server_id), await self.map_addresses(server_id)
        return [*await self.match_addresses(external_id, server_id), *callbacks, *maps]

    async def match_addresses(self, external_id: str, server_id: str) -> list[str]:
        series = [f"/api/v1/cs2/series/{one}" for one in await self._ids("SELECT series_id FROM series", server_id)]
        console = f"/console/matches/{server_id}"
        principal = await self.site.service.access.authenticate(f"Bearer {self.key}")
        overlay = await self._overlays.create(principal, server_id)
        result = [f"{console}/result.json"] if external_id in ENDED else []
        return [
            console, f"{console}?round=1", f"{console}/log.txt", *result, f"/overlay/{overlay}", *series,
            f"/api/v1/servers/{server_id}", f"/api/v1/matches/{external_id}", f"/api/v1/cs2/servers/{server_id}/series",
        ]  # fmt: skip

    async def callback_addresses(self, server_id: str) -> list[str]:
        found = await self._ids("SELECT id FROM callbacks", server_id)
        pages = ("/console/deliveries/{}", "/console/deliveries/{}/body", "/api/v1/callbacks/{}")
        return [page.format(one) for one in found for page in pages]

    async def map_addresses(self, server_id: str) -> list[str]:
        """Return the addresses of the maps of a match: in `make test`, one of the leaderboards of each map in turn."""
        addresses: list[str] = []
        for one in await self._ids("SELECT id FROM maps", server_id):
            sorts = LeaderboardSort if IS_SOAK else [next(self._sorts)]
            parts = ("", "/rounds", "/events?limit=1000", *(f"/leaderboard?sortBy={sort}" for sort in sorts))
            addresses += (f"/api/v1/cs2/matches/{one}{part}" for part in parts)
        return addresses

    async def _ids(self, select: str, server_id: str) -> list[str]:
        rows = await self.site.resources.db.read(f"{select} WHERE server_id = :id", {"id": server_id})
        return [str(one) for (one,) in rows]


@asynccontextmanager
async def open_old(folder: Path, cells: list[Cell] | None = None) -> AsyncIterator[OldSite]:
    """Run today's application on the stored database, in which some cells were changed."""
    folder.mkdir(mode=0o700)
    path = folder / DATABASE_FILE
    earlier_database.unpack(path)
    if cells is not None:
        write_cells(path, cells)
    async with open_site(folder, secret_key=earlier_database.SECRET_KEY) as site:
        key = await site.new_key(earlier_database.ORGANIZATION, Role.OWNER)
        site.cookies[OLD] = (await site.sessions.open_by_key(key.text, user_agent="test")).cookie
        db, clock = site.resources.db, site.resources.clock
        overlays = Overlays(db=db, clock=clock, audit=Audit(db=db, clock=clock))
        yield OldSite(site, key.text, overlays)


async def failures_of(folder: Path, cells: list[Cell]) -> dict[str, int]:
    """Return the addresses that cannot be read if these cells of the stored database were changed.

    Those that other tables are read for are left out in `make test`: they are most of all.
    """
    async with open_old(folder, cells) as old:
        found = await old.failures(one for one in LISTS if reads(one, {cell.table for cell in cells}))
        for external_id, server_id in (await old.matches()).items():
            tables = {cell.table for cell in cells if cell.server_id == server_id}
            if IS_SOAK or tables:
                addresses = await old.addresses(external_id, server_id)
                found |= await old.failures(one for one in addresses if reads(one, tables))
        return found


def reads(address: str, changed: set[str]) -> bool:
    """Return whether an address may be answered from one of these tables; in `make soak`, all are read."""
    tables = next((tables for part, tables in READ_FROM.items() if part in address), OF_MATCHES)
    return IS_SOAK or bool(tables & changed)


def stored_cells(folder: Path) -> list[Cell]:
    path = folder / "stored.sqlite"
    earlier_database.unpack(path)
    return read_cells(path)


# --- as it was written ----------------------------------------------------------------------------------------------


async def test_everything_of_an_earlier_version_can_be_read(tmp_path: Path) -> None:
    async with open_old(tmp_path / "data") as old:
        matches = await old.matches()
        assert set(matches) == {*ENDED, *CANCELED, *LIVE}
        failures = await old.failures(LISTS)
        for external_id, server_id in matches.items():
            failures |= await old.failures(await old.addresses(external_id, server_id))
        assert failures == {}
        for external_id, server_id in matches.items():
            view = (await old.get(f"/api/v1/matches/{external_id}")).json()
            assert (view["result"] is not None, view["reason"] is not None) == (
                external_id in ENDED,
                external_id in CANCELED,
            )
            page = (await old.get(f"/console/matches/{server_id}")).text
            assert ("Who killed whom" in page) == (external_id in PLAYED)


async def test_streams_of_an_earlier_version_are_open(tmp_path: Path) -> None:
    async with open_old(tmp_path / "data") as old:
        for external_id, server_id in (await old.matches()).items():
            maps = {path.split("/")[5] for path in await old.map_addresses(server_id)}
            streams = [f"/console/stream?pages=match/{server_id}:", f"/api/v1/servers/{server_id}/stream"]
            streams += [f"/api/v1/cs2/matches/{map_id}/events/stream" for map_id in maps]
            for path in streams:
                assert (await old.get(path, "HEAD")).status_code in (200, 204)  # 204: there will be no items
            if external_id not in LIVE:  # the stream ends with the last item
                sent = await old.get(f"/api/v1/servers/{server_id}/stream")
                assert ("event: map_end" in sent.text) == (external_id in PLAYED)


async def test_live_matches_of_an_earlier_version_go_on(tmp_path: Path) -> None:
    async with open_old(tmp_path / "data") as old:
        db = old.site.resources.db
        for external_id in LIVE:
            server_id = (await old.matches())[external_id]
            row = await servers.get(db, server_id)
            assert row is not None
            before = (await old.get(f"/api/v1/servers/{server_id}")).json()
            assert before["status"] == "running"
            posted = await old.site.request(
                "POST", f"/ingest/logs/{tokens_of(row).log}", content=log_post(*players_join()), headers=LOG_HEADERS
            )
            assert posted.status_code == 200
            after = (await old.get(f"/api/v1/servers/{server_id}")).json()
            assert after["lastHeardAt"] > before["lastHeardAt"]
            assert after["match"]["map"] == before["match"]["map"]
            canceled = await old.get(f"/api/v1/servers/{server_id}/cancel", "POST")
            assert canceled.status_code == 200
            page = await old.get(f"/console/matches/{server_id}")
            assert (page.status_code, "canceled by user" in page.text) == (200, True)


# --- without a field ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [remove, pytest.param(set_to_null, marks=pytest.mark.soak)])
async def test_every_field_may_be_missing(tmp_path: Path, change: Change) -> None:
    """Each object loses one field, another one each time, until every field of every shape was missing once."""
    left = all_removals(stored_cells(tmp_path))
    assert len(left) > 600
    failures: dict[str, int] = {}
    for number in range(100):
        if not left:
            break
        changed = change_each_once(stored_cells(tmp_path), left, change)
        failures |= await failures_of(tmp_path / f"data{number}", list(changed))
    assert (failures, left) == ({}, set())


# --- of a newer version ---------------------------------------------------------------------------------------------


async def test_values_and_items_of_a_newer_version_are_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cells = stored_cells(tmp_path)
    for cell in cells:
        for one in cell.objects:
            if cell.column == "settings":
                one["match_type"], one["sides"] = "arms_race", ["coin_toss"]
            elif cell.table == "map_rounds":
                one["reason"], one["winnerSide"] = "Target_Stolen", "THIRD"
            elif cell.table == "map_events" and one["type"] == "chat":
                one["type"] = "voice"
            elif cell.table == "map_events" and one["type"] == "round_end":
                one["reason"] = "Target_Stolen"
    with caplog.at_level(logging.WARNING, "matchpod.console.feed"):
        assert await failures_of(tmp_path / "data", cells) == {}
    skipped = [record for record in caplog.records if record.name == "matchpod.console.feed"]
    assert {record.message for record in skipped} == {"timeline items of another version skipped"}
