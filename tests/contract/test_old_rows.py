"""Rows of earlier versions: all pages, lists and details show them, whatever field they do not have."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest

from matchpod.core.views.leaderboard import LeaderboardSort
from matchpod.service.access.audit import Audit
from matchpod.service.identity.principals import Role
from matchpod.service.overlays import Overlays
from matchpod.settings.values import DATABASE_FILE
from matchpod.storage import servers
from tests.contract import earlier_database, stored_shapes
from tests.contract.console.console_site import ConsoleSite, open_site
from tests.contract.stored_shapes import Cell
from tests.e2e.serve_process import matchpod
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
        """Return all addresses of a match, except streams."""
        callbacks, maps = await self.callback_addresses(server_id), await self.map_addresses(server_id)
        return [*await self.match_addresses(external_id, server_id), *callbacks, *maps]

    async def match_addresses(self, external_id: str, server_id: str) -> list[str]:
        """Return the addresses of a match as a whole."""
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
        """Return the addresses of the callback of a match."""
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
        stored_shapes.write_cells(path, cells)
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
    return stored_shapes.read_cells(path)


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


def test_commands_read_matches_of_an_earlier_version(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    earlier_database.unpack(tmp_path / "data" / DATABASE_FILE)
    run = partial(matchpod, tmp_path, secret_key=earlier_database.SECRET_KEY)
    listed = run("match", "list", "--limit", "100", "--json")
    assert listed.returncode == 0, listed.stderr
    found = {one["externalMatchId"]: one["serverId"] for one in json.loads(listed.stdout)}
    assert set(found) == {*ENDED, *CANCELED, *LIVE}
    for external_id in ("series", "live"):
        assert run("match", "show", found[external_id]).returncode == 0
    recomputed = run("recompute", found["wingman"])
    assert recomputed.returncode == 0, recomputed.stderr


# --- without a field ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change", [stored_shapes.remove, pytest.param(stored_shapes.set_to_null, marks=pytest.mark.soak)]
)
async def test_every_field_may_be_missing(tmp_path: Path, change: stored_shapes.Change) -> None:
    """Each object loses one field, another one each time, until every field of every shape was missing once."""
    left = stored_shapes.all_removals(stored_cells(tmp_path))
    assert len(left) > 600
    failures: dict[str, int] = {}
    for number in range(100):
        if not left:
            break
        changed = stored_shapes.change_each_once(stored_cells(tmp_path), left, change)
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
