"""Write and read a database with running matches of a released version, which newer versions must be able to open.

`python -m tests.contract.live_database FOLDER`, run in a checkout of the released version, writes
`live-database.sqlite.xz` and `live-database.json.xz`, what that version published about each match.
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
from matchpod.core.match.match import Match
from matchpod.core.model import DmSubMode, GameSettings, MatchType, SeriesFormat
from matchpod.core.server_status import ServerPhase
from matchpod.core.views.result import build_result
from matchpod.service.history.finalize import fold_to_end
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.storage import snapshots
from matchpod.storage.migrate import migrate
from tests.contract.same_numbers import current_numbers
from tests.contract.world import PLAYERS, SETTINGS, World, open_world
from tests.vaults import VAULT

FOLDER = Path(__file__).resolve().parents[1] / "golden"
DATABASE, PUBLISHED = "live-database.sqlite.xz", "live-database.json.xz"

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

HAS_PROGRESSED: dict[str, Callable[[Match], bool]] = {
    LIVE: lambda match: (match.current_map.team1_score + match.current_map.team2_score) >= 8,
    SERIES: lambda match: (
        match.current_map.number == 2 and (match.current_map.team1_score + match.current_map.team2_score) > 0
    ),
    PLAYED: lambda match: (match.current_map.team1_score + match.current_map.team2_score) >= 2,
    DEATHMATCH: lambda match: sum(line.kills for line in match.current_map.ledger.lines()) >= 30,
}


def unpack(folder: Path) -> Path:
    path = folder / "live.sqlite"
    path.write_bytes(lzma.decompress((FOLDER / DATABASE).read_bytes()))
    return path


def published() -> dict[str, object]:
    """What the old version published: the current numbers of each match, and the result of the one that was over."""
    return msgspec.json.decode(lzma.decompress((FOLDER / PUBLISHED).read_bytes()), type=dict[str, object])


async def _write(path: Path) -> dict[str, object]:
    db = await SqliteDatabase.open(path)
    await migrate(db, VAULT.seal)
    async with open_world(db, ("a", "b", "c", "d")) as world:
        process = world.start("first")
        for name, settings in MATCHES.items():
            await world.create(name, game=settings, seed=11)
        played = await asyncio.gather(*(_play(world, name) for name in MATCHES))
        views: dict[str, object] = dict(zip(MATCHES, played, strict=True))
        process.db.crashes_before = "INSERT INTO outcomes"
        await world.create(PLAYED, seed=12)
        await _snapshot_at(world, PLAYED, HAS_PROGRESSED[PLAYED])
        await world.until(_is_dead(world), "the process is about to store the outcome")
        fold = await fold_to_end(db, await world.row(PLAYED), world.speed, turns=FoldTurns())
        views[PLAYED] = build_result(fold.match)
        views["now_ms"] = world.clock.now_ms()
        assert {row.phase for row in await asyncio.gather(*map(world.row, (*MATCHES, PLAYED)))} == {ServerPhase.RUNNING}
    await db.close()
    return views


def _is_dead(world: World) -> Callable[[], Awaitable[bool]]:
    async def is_dead() -> bool:
        return world.processes[0].db.is_dead

    return is_dead


async def _play(world: World, name: str) -> object:
    """Let a match run until it has progressed far enough, then pause its server."""
    await _snapshot_at(world, name, HAS_PROGRESSED[name])
    await asyncio.sleep(0.1)
    world.region.running[name].is_paused = True
    await asyncio.sleep(0.5)
    live = await world.until_driven(name)

    async def is_applied() -> bool:
        return not live.is_behind

    await world.until(is_applied, "all entries are applied")
    return current_numbers(live.fold.match)


async def _snapshot_at(world: World, name: str, has_progressed: Callable[[Match], bool]) -> None:
    """Store a snapshot when the match has progressed far enough, earlier than the service would."""

    async def is_stored() -> bool:
        live = world.processes[0].live.get(name)
        if live is None or not has_progressed(live.fold.match):
            return False
        state, row = live.fold.dump(), await world.row(name)
        await world.db.write(snapshots.save(name, row.fence, snapshots.Snapshot(live.seq, state)))
        return True

    await world.until(is_stored, f"{name} has progressed")


def main(folder: Path) -> None:
    """Write the database and the published numbers into a folder."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "live.sqlite"
        views = asyncio.run(_write(path))
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("VACUUM")
        connection.close()
        (folder / DATABASE).write_bytes(lzma.compress(path.read_bytes(), preset=9))
    (folder / PUBLISHED).write_bytes(lzma.compress(msgspec.json.encode(views), preset=9))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
