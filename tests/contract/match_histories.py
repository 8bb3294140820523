"""Build history rows for storage tests."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence

import msgspec

from matchpod.core.match.played_map import MapStatus
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, Statement
from matchpod.storage import history, history_counts, servers
from matchpod.storage.history import MapRow, MatchHistory, SeriesRow
from matchpod.storage.history_counts import DAY_MS
from tests.server_rows import server_row

ORG = "org_1"
SPACE = uuid.UUID(int=7)


class MapState(msgspec.Struct, frozen=True):
    """The columns of a map that the stored counts depend on."""

    status: MapStatus = MapStatus.UPCOMING
    started_at_ms: int | None = None
    name: str = "de_mirage"


def map_id(server_id: str, number: int = 1) -> str:
    return str(uuid.uuid5(SPACE, f"{server_id} map {number}"))


def match_history(
    server_id: str,
    maps: Sequence[MapState] = (MapState(),),
    *,
    org_id: str = ORG,
    is_series: bool = True,
    score: int = 0,
) -> MatchHistory:
    """A match with these maps; its series has the status and start time of the first one."""
    series_id = f"ser_{server_id}" if is_series else None
    rows = tuple(
        MapRow(
            id=map_id(server_id, number), server_id=server_id, org_id=org_id, series_id=series_id, map_number=number,
            map_name=state.name, game_mode="competitive", server_name="a server", status=state.status,
            started_at_ms=state.started_at_ms, sort_ms=state.started_at_ms or 0, team1_score=score,
        )
        for number, state in enumerate(maps, 1)
    )  # fmt: skip
    if series_id is None:
        return MatchHistory(rows)
    series = SeriesRow(
        id=str(uuid.uuid5(SPACE, series_id)), series_id=series_id, server_id=server_id, org_id=org_id,
        server_name="a server", format=f"bo{len(maps)}", game_mode="competitive", team1_name="A", team2_name="B",
        status=maps[0].status, started_at_ms=maps[0].started_at_ms, sort_ms=maps[0].started_at_ms or 0,
        team1_maps_won=score,
    )  # fmt: skip
    return MatchHistory(rows, series)


async def create_server(
    db: Database, server_id: str, *, org_id: str = ORG, phase: ServerPhase = ServerPhase.RUNNING
) -> None:
    await servers.create(db, server_row(server_id, org_id=org_id, phase=phase), idempotency=None)


def insert_counted(new: MatchHistory) -> list[Statement]:
    return [*history.insert(new), history_counts.add(new.maps[0].server_id)]


CountedKey = tuple[str, str, str, str, int]


async def stored_counts(db: Database) -> dict[CountedKey, int]:
    rows = await db.read("SELECT org_id, kind, status, map_name, day, count FROM history_counts WHERE count <> 0")
    found = msgspec.convert(rows, list[tuple[str, str, str, str, int, int]])
    return {(org_id, kind, status, name, day): count for org_id, kind, status, name, day, count in found}


async def true_counts(db: Database) -> dict[CountedKey, int]:
    """The same counts, computed from the rows."""
    rows = await db.read(
        "SELECT org_id, 'map', status, map_name, sort_ms FROM maps"
        " UNION ALL SELECT org_id, 'series', status, '', sort_ms FROM series"
    )
    counts: Counter[CountedKey] = Counter()
    for org_id, kind, status, name, sort_ms in msgspec.convert(rows, list[tuple[str, str, str, str, int]]):
        counts.update(
            (org_id, kind, s, n, d) for s in {"", status} for n in {"", name} for d in (-1, sort_ms // DAY_MS)
        )
    servers_sql = "SELECT org_id, status, match_phase, region, created_at_ms FROM servers"
    for org_id, status, phase, region, created_ms in msgspec.convert(
        await db.read(servers_sql), list[tuple[str, str, str, str, int]]
    ):
        statuses = ("", "ended", status) if phase == "ended" else ("",)
        counts.update(
            (org_id, "server", s, r, d) for s in statuses for r in ("", region) for d in (-1, created_ms // DAY_MS)
        )
    return dict(counts)
