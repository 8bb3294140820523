"""Measure the wall of an organization with many open matches, in this process and without game servers.

All matches are in the middle of the same recorded match, which this process follows, so no log is read from the
database. Rows, folds, pages and fragments are those of the service. Times are CPU time of this process, which other
work on the machine changes least.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from time import process_time

import msgspec

from cs2_protocol.log_batches import LogPost
from matchpod.console.wall import Wall
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Statement
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.live import LocalMatch
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.reading.wall import Overview
from matchpod.service.runner.deps import Deps
from matchpod.storage import servers
from matchpod.storage.raw_log import RawEntry
from matchpod.web.http.asgi import Message
from tests.bench.workload import Workload, load_workload
from tests.contract.console.console_site import OWNER, ConsoleSite, open_site

ROUNDS = 20
TARGET_MS = 250.0
NO_LIMITS = {"max_live_matches": "off", "max_creations_per_minute": "off"}


class Figure(msgspec.Struct):
    """One measured operation."""

    what: str
    times_ms: list[float]
    size: int
    """Bytes of the result."""

    @property
    def median_ms(self) -> float:
        return statistics.median(self.times_ms)


async def measure(folder: Path, matches: int) -> list[Figure]:
    """Return the figures of a wall with this many matches."""
    async with open_site(folder, **NO_LIMITS) as site:
        local = await create_matches(site, load_workload(), matches)
        return [
            await _repeat("page, first viewer: all cards are read and drawn", lambda: _first_page(site, local)),
            await _repeat("page, others are looking already", lambda: _page(site)),
            *[await _changes(site, local, count) for count in (0, matches // 10, matches)],
        ]


async def create_matches(site: ConsoleSite, workload: Workload, number: int) -> list[LocalMatch]:
    """Create matches that are running, each in the middle of the same log."""
    teams = {
        name: {"name": team.name, "players": [str(player) for player in team.players]}
        for name, team in (("team1", workload.settings.team1), ("team2", workload.settings.team2))
        if team is not None
    }
    settings = {"matchType": "competitive", "map": "de_inferno", "teams": teams}
    deps, now_ms = _deps(site), site.resources.clock.now_ms()
    snapshot: bytes | None = None
    created = []
    for _ in range(number):
        server_id = await site.create_match(gameSettings=settings)
        await site.resources.db.write([_running(server_id, now_ms)])
        if snapshot is None:
            row = await servers.get(site.resources.db, server_id)
            assert row is not None
            snapshot = _in_the_middle(Fold.begin(row, 1.0), workload.posts, now_ms).dump()
        local = LocalMatch(server_id, Fold.load(snapshot), 1)
        deps.live.add(local)
        created.append(local)
    return created


def _deps(site: ConsoleSite) -> Deps:
    return site.service.supervisor._deps


def _running(server_id: str, now_ms: int) -> Statement:
    return servers.change(
        server_id,
        0,
        phase=ServerPhase.RUNNING,
        match_phase=PublicPhase.LIVE,
        status=ServerStatus.RUNNING,
        ip="203.0.113.7",
        port=27015,
        allocated_at_ms=now_ms,
        running_at_ms=now_ms,
    )


def _in_the_middle(fold: Fold, posts: Sequence[LogPost], now_ms: int) -> Fold:
    for number, post in enumerate(posts[: len(posts) // 2], 1):
        headers = {"x-logbytes-beginoffset": str(post.begin), "x-logbytes-endoffset": str(post.end)}
        fold.apply(
            RawEntry(
                server_id="",
                seq=number,
                kind=EntryKind.LOG,
                received_ms=now_ms + number,
                headers=json.dumps(headers).encode(),
                body=post.body,
            )
        )
    return fold


def _entry(seq: int) -> RawEntry:
    return RawEntry(server_id="", seq=seq, kind=EntryKind.LOG, received_ms=0, headers=b"{}", body=b"")


# --- measurements ---------------------------------------------------------------------------------------------------


async def _repeat(what: str, act: Callable[[], Awaitable[tuple[float, int]]]) -> Figure:
    await act()
    found = [await act() for _ in range(ROUNDS)]
    return Figure(what, [spent for spent, _ in found], found[-1][1])


async def _first_page(site: ConsoleSite, local: Sequence[LocalMatch]) -> tuple[float, int]:
    site.service.broadcasts.forget()
    for one in local:
        one.applied(_entry(one.seq))  # its card has to be made again
    return await _page(site)


async def _page(site: ConsoleSite) -> tuple[float, int]:
    size = 0

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        nonlocal size
        if message["type"] == "http.response.start":
            assert message["status"] == 200
        size += len(message.get("body", b""))

    headers = [(b"host", b"127.0.0.1:8080"), (b"accept-encoding", b"gzip"), (b"cookie", _cookie(site))]
    scope = {"type": "http", "method": "GET", "path": "/console", "query_string": b"", "headers": headers}
    begin = process_time()
    await site.service.web(scope, receive, send)
    return (process_time() - begin) * 1000, size


def _cookie(site: ConsoleSite) -> bytes:
    return site.cookie(OWNER)["Cookie"].encode()


async def _changes(site: ConsoleSite, local: Sequence[LocalMatch], count: int) -> Figure:
    deps = _deps(site)
    remote = RemoteMatches(db=deps.db, regions=deps.regions, turns=deps.turns)
    overview = Overview(db=deps.db, clock=deps.clock, regions=deps.regions, live=deps.live, remote=remote)
    wall = Wall(overview, site.org_ids["ours"])
    await wall.changes()
    at = 0

    async def change() -> tuple[float, int]:
        nonlocal at
        at += 1
        for one in local[:count]:
            one.applied(_entry(one.seq))
            one._progress = msgspec.structs.replace(one.progress(), round=at)
        begin = process_time()
        changed = await wall.changes()
        return (process_time() - begin) * 1000, len(changed)

    return await _repeat(f"a second of the stream, {count} cards changed", change)
