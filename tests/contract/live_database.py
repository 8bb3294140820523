"""A database with matches that are being played, as a released version left it: how one is written, and where it is.

A new version must open it. `python -m tests.contract.live_database FOLDER`, run in a checkout of the version that is
released, writes `live-database.sqlite.xz` and, beside it, what that version published about each match.
"""

from __future__ import annotations

import asyncio
import lzma
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.core.match import Match
from matchpod.core.model import DmSubMode, GameSettings, MatchType, SeriesFormat
from matchpod.core.result import build_result, players_of_map, published_lines
from matchpod.core.server_status import ServerPhase
from matchpod.service.history.settling import fold_to_end
from matchpod.storage import snapshots
from matchpod.storage.migrate import migrate
from tests.contract.driven_matches import PLAYERS, SETTINGS, World, world

FOLDER = Path(__file__).resolve().parents[1] / "golden"
DATABASE, PUBLISHED = "live-database.sqlite.xz", "live-database.json"

LIVE, SERIES, DEATHMATCH, PLAYED = "srv_live", "srv_series", "srv_deathmatch", "srv_played"

MATCHES: dict[str, GameSettings] = {
    LIVE: msgspec.structs.replace(SETTINGS, max_rounds=16),
    SERIES: msgspec.structs.replace(
        SETTINGS, max_rounds=4, series_format=SeriesFormat.BO3, maps=("de_nuke", "de_inferno", "de_vertigo")
    ),
    DEATHMATCH: GameSettings(
        match_type=MatchType.DEATHMATCH,
        maps=("de_dust2",),
        dm_sub_mode=DmSubMode.FFA,
        dm_round_minutes=10,
        players=PLAYERS,
    ),
}

IS_FAR: dict[str, Callable[[Match], bool]] = {
    LIVE: lambda match: (match.current_map.team1_score + match.current_map.team2_score) >= 8,
    SERIES: lambda match: (
        match.current_map.number == 2 and (match.current_map.team1_score + match.current_map.team2_score) > 0
    ),
    PLAYED: lambda match: (match.current_map.team1_score + match.current_map.team2_score) >= 2,
    DEATHMATCH: lambda match: sum(line.kills for line in match.current_map.ledger.lines()) >= 30,
}


def standing(match: Match) -> dict[str, object]:
    """Every number of a match as it stands."""
    maps = [
        {
            "map": played.name,
            "score": [played.team1_score, played.team2_score],
            "players": players_of_map(match, played, published_lines(match, played)),
        }
        for played in match.maps
    ]
    return {"seriesScore": match.series_score, "maps": maps}


def unpack(folder: Path) -> Path:
    """The stored database as a file in this folder."""
    path = folder / "live.sqlite"
    path.write_bytes(lzma.decompress((FOLDER / DATABASE).read_bytes()))
    return path


def published() -> dict[str, object]:
    """What the version that wrote the database published: a live view per match, a result for the one that was over."""
    return msgspec.json.decode((FOLDER / PUBLISHED).read_bytes(), type=dict[str, object])


async def _write(path: Path) -> dict[str, object]:
    db = await SqliteDatabase.open(path)
    await migrate(db)
    async with world(db, ("a", "b", "c", "d")) as around:
        process = around.start("first")
        for name, settings in MATCHES.items():
            await around.create(name, game=settings, seed=11)
        played = await asyncio.gather(*(_play(around, name) for name in MATCHES))
        views: dict[str, object] = dict(zip(MATCHES, played, strict=True))
        process.db.dies_before = "INSERT INTO outcomes"
        await around.create(PLAYED, seed=12)
        await _snapshot_at(around, PLAYED, IS_FAR[PLAYED])
        await around.until(_is_dead(around), "the process is about to store the outcome")
        fold = await fold_to_end(db, await around.row(PLAYED), around.speed)
        views[PLAYED] = build_result(fold.reader.match)
        views["now_ms"] = around.clock.now_ms()
        assert {row.phase for row in await asyncio.gather(*map(around.row, (*MATCHES, PLAYED)))} == {
            ServerPhase.RUNNING
        }
    await db.close()
    return views


def _is_dead(around: World) -> Callable[[], Awaitable[bool]]:
    async def is_dead() -> bool:
        return around.processes[0].db.is_dead

    return is_dead


async def _play(around: World, name: str) -> object:
    """Let a match go on until it is far enough, then stop its server's time."""
    await _snapshot_at(around, name, IS_FAR[name])
    await asyncio.sleep(0.1)
    around.region.running[name].is_paused = True
    await asyncio.sleep(0.5)
    live = around.processes[0].live.get(name)
    assert live is not None
    assert not live.is_behind
    return standing(live.fold.reader.match)


async def _snapshot_at(around: World, name: str, is_far: Callable[[Match], bool]) -> None:
    """Store a snapshot when the match is far enough; the service would do so after a while."""

    async def is_there() -> bool:
        live = around.processes[0].live.get(name)
        if live is None or not is_far(live.fold.reader.match):
            return False
        state, row = live.fold.to_bytes(), await around.row(name)
        await around.db.write(snapshots.save(name, row.fence, snapshots.Snapshot(live.seq, state)))
        return True

    await around.until(is_there, f"{name} is far enough")


def main(folder: Path) -> None:
    """Write the two files."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "live.sqlite"
        views = asyncio.run(_write(path))
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("VACUUM")
        connection.close()
        (folder / DATABASE).write_bytes(lzma.compress(path.read_bytes(), preset=9))
    (folder / PUBLISHED).write_bytes(msgspec.json.format(msgspec.json.encode(views), indent=1) + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
