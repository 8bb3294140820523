"""Store the maps and series of a match, from the match's creation on, and the final statistics of its maps.

Ids are derived from the match, so a repeated write creates no second row. Functions that write return statements, which
the caller runs in its own transaction. The numbers of rows by `status`, `sort_ms` and `map_name` are stored too
(`history_counts`). Before these columns change, the rows are subtracted from the counts, and afterwards they are added
again. The lists are in `history_lists`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

import msgspec
from msgspec.structs import astuple

from matchpod.core.match.played_map import MapStatus
from matchpod.ports import Database, Row, Statement, Value
from matchpod.storage import history_counts, rows
from matchpod.storage.packed import unpack
from matchpod.storage.servers import EndColumns


class MapRow(msgspec.Struct, frozen=True, kw_only=True):
    """A map of a match; the fields are the columns."""

    id: str
    server_id: str
    org_id: str
    series_id: str | None = None
    """The series id that callers see (`ser_…`); None if the match is not a series."""
    map_number: int
    map_name: str
    game_mode: str
    server_name: str
    team1_name: str | None = None
    team2_name: str | None = None
    team1_score: int = 0
    team2_score: int = 0
    winner: str | None = None
    status: MapStatus
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    duration_s: int | None = None
    player_count: int = 0
    is_final: bool = False
    """True once the match has ended and the map's result is final. Then its MapStats exist too, unless its statistics
    are unknown."""
    sort_ms: int = 0
    """Time when the map started; 0 if it never started. Lists are sorted by this column, so such maps come last."""
    is_complete: bool = False
    missing_rounds: bytes | None = None
    """JSON array of the rounds with missing log lines. None if the map ended before this column existed."""
    played_map_name: str | None = None
    """Name of the map that the server loaded. None if the map was not played, or ended before this column existed."""
    is_needed: bool = True
    """False if the map was not played because the series was already decided."""
    team1_start_side: str | None = None
    """Side on which team1 started. None if unknown, or if the map ended before this column existed."""
    sides_by: str | None = None
    """How the starting sides were decided."""


class SeriesRow(msgspec.Struct, frozen=True, kw_only=True):
    """The series of a match; the fields are the columns."""

    id: str
    series_id: str
    server_id: str
    org_id: str
    server_name: str
    format: str
    game_mode: str
    team1_name: str
    team2_name: str
    team1_maps_won: int = 0
    team2_maps_won: int = 0
    status: MapStatus
    winner_team: str | None = None
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    duration_s: int | None = None
    sort_ms: int = 0
    """Time when the series started; 0 if it never started. Lists are sorted by this column, so such series come
    last."""


class MapStats(msgspec.Struct, frozen=True, kw_only=True):
    """Final statistics of a map, as JSON arrays; `leaderboard` has all players, in no particular order."""

    map_id: str
    stats_version: int
    players: bytes
    anti_cheat: bytes
    leaderboard: bytes


class MapRounds(msgspec.Struct, frozen=True, kw_only=True):
    """The rounds of a map whose result is final, as a compressed JSON array."""

    map_id: str
    body: bytes

    @classmethod
    def pack(cls, map_id: str, rounds: bytes) -> MapRounds:
        """Compress a JSON array."""
        return cls(map_id=map_id, body=zlib.compress(rounds))

    def unpack(self) -> bytes:
        return zlib.decompress(self.body)


class MatchHistory(msgspec.Struct, frozen=True):
    """All history rows of a match; it has `stats` and `rounds` only for maps whose result is final."""

    maps: tuple[MapRow, ...]
    series: SeriesRow | None = None
    stats: tuple[MapStats, ...] = ()
    rounds: tuple[MapRounds, ...] = ()


MAX_INSERTS: Final = 64
"""Maximum number of cached INSERT texts. They differ by the number of rows; most matches have one, three or five
maps."""

SERIES_AND_END: Final = ", ".join(
    [f"series.{name}" for name in SeriesRow.__struct_fields__]
    + [f"servers.{name}" for name in EndColumns.__struct_fields__]
)
"""The columns of a series and of the end of its match, for a query that joins `series` and `servers`."""
_SERIES_WIDTH: Final = len(SeriesRow.__struct_fields__)
SERIES_END_WIDTH: Final = _SERIES_WIDTH + len(EndColumns.__struct_fields__)

_NEVER_CHANGED: Final = frozenset({"id", "series_id", "server_id", "org_id", "map_number", "map_id"})
_COUNTED: Final = frozenset({"status", "sort_ms", "map_name"})
_KEPT_BY_REFRESH: Final = _NEVER_CHANGED | _COUNTED | {"started_at_ms"}
"""Columns that `refresh` does not write. `started_at_ms` is one of them, because the counted column `sort_ms` is
derived from it."""


# --- changes ------------------------------------------------------------------------------------------------------


def insert(history: MatchHistory) -> list[Statement]:
    """Insert the rows of a new match without updating the counts; DuplicateError if the rows exist."""
    return [
        _insert_new("maps", history.maps),
        *([] if history.series is None else [rows.insert("series", history.series)]),
    ]


def count_new(history: MatchHistory, *, region: str, created_at_ms: int) -> Statement:
    """Add the rows of a new match, and its server, to the counts."""
    names = [row.map_name for row in history.maps]
    has_series, org_id = history.series is not None, history.maps[0].org_id
    return history_counts.add_new(
        org_id, region=region, created_at_ms=created_at_ms, map_names=names, has_series=has_series
    )


def replace(history: MatchHistory) -> list[Statement]:
    """Insert or overwrite the rows of a match and update the counts; a repeated call changes nothing."""
    if not history.maps:
        return []
    first = history.maps[0]
    return [
        history_counts.lock(first.org_id),
        history_counts.subtract(first.server_id),
        *_upsert(history),
        history_counts.add(first.server_id),
    ]


def refresh(history: MatchHistory) -> list[Statement]:
    """Update maps and series, except the columns in `_KEPT_BY_REFRESH`; insert or overwrite statistics and rounds."""
    statements = [_update("maps", row) for row in history.maps]
    if history.series is not None:
        statements.append(_update("series", history.series))
    return [*statements, *_upsert(msgspec.structs.replace(history, maps=(), series=None))]


def cancel_open(server_id: str) -> list[Statement]:
    """Mark the upcoming and live maps and series of a match as cancelled; leave ended maps and series unchanged."""
    params: dict[str, Value] = {"server_id": server_id}
    cancelled = "SET status = 'cancelled' WHERE server_id = :server_id AND status IN ('upcoming', 'live')"
    return [
        history_counts.lock_by_server(server_id),
        history_counts.subtract(server_id),
        Statement(f"UPDATE maps {cancelled}", params),
        Statement(f"UPDATE series {cancelled}", params),
        history_counts.add(server_id),
    ]


def mark_final(server_id: str) -> Statement:
    """Mark the results of all maps of a match as final, even if statistics are missing."""
    return Statement("UPDATE maps SET is_final = 1 WHERE server_id = :server_id", {"server_id": server_id})


def _upsert(history: MatchHistory) -> list[Statement]:
    tables: list[tuple[str, str, Sequence[msgspec.Struct]]] = [
        ("maps", "id", history.maps),
        ("series", "id", () if history.series is None else (history.series,)),
        ("map_stats", "map_id", history.stats),
        ("map_rounds", "map_id", history.rounds),
    ]
    return [_upsert_rows(table, values, key) for table, key, values in tables if values]


def _upsert_rows(table: str, values: Sequence[msgspec.Struct], key: str) -> Statement:
    """Insert or overwrite all rows in one statement, because every statement costs a round trip."""
    fields = type(values[0]).__struct_fields__
    sql, names = _insert_sql(table, fields, len(values), fields)
    changes = ", ".join(f"{name} = excluded.{name}" for name in fields if name not in _NEVER_CHANGED)
    params = chain.from_iterable([rows.to_params(value).values() for value in values])
    upsert = f"{sql} ON CONFLICT ({key}) DO UPDATE SET {changes}"
    return Statement(upsert, dict(zip(names, params, strict=True)))


def _insert_new(table: str, values: Sequence[msgspec.Struct]) -> Statement:
    """Insert rows whose values are mostly the same. A value that all rows share is passed only once."""
    fields = type(values[0]).__struct_fields__
    columns = dict(zip(fields, zip(*map(astuple, values), strict=True), strict=True))
    different = tuple(name for name, column in columns.items() if any(value != column[0] for value in column))
    sql, _ = _insert_sql(table, fields, len(values), different)
    params = {name: column[0] for name, column in columns.items() if name not in different}
    for name in different:
        params |= {f"{name}_{number}": value for number, value in enumerate(columns[name])}
    return Statement(sql, rows.plain(params))


@lru_cache(MAX_INSERTS)
def _insert_sql(
    table: str, fields: tuple[str, ...], count: int, different: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """Return an INSERT's SQL, and its parameter names in order. Columns in `different` have one parameter per row."""
    tuples = [[f"{name}_{number}" if name in different else name for name in fields] for number in range(count)]
    listed = ", ".join(f"({', '.join(f':{name}' for name in names)})" for names in tuples)
    return f"INSERT INTO {table} ({', '.join(fields)}) VALUES {listed}", tuple(chain.from_iterable(tuples))


def _update(table: str, row: MapRow | SeriesRow) -> Statement:
    params = {name: value for name, value in rows.to_params(row).items() if name not in _KEPT_BY_REFRESH}
    changes = ", ".join(f"{name} = :{name}" for name in params)
    return Statement(f"UPDATE {table} SET {changes} WHERE id = :id", {**params, "id": row.id})


# --- reading ------------------------------------------------------------------------------------------------------


async def get_map(db: Database, map_id: str) -> MapRow | None:
    """Return the map with this id, of any organization."""
    return await rows.read_first(db, MapRow, "FROM maps WHERE id = :id", {"id": map_id})


async def get_series(db: Database, series_id: str) -> tuple[SeriesRow, EndColumns] | None:
    """Return the series with this `id` or `series_id`, of any organization, and how its match ended."""
    found = await db.read_one(
        f"SELECT {SERIES_AND_END} FROM series LEFT JOIN servers ON servers.id = series.server_id"
        " WHERE series.id = :id OR series.series_id = :id",
        {"id": series_id},
    )
    return None if found is None else split_series(found)


def split_series(row: Row) -> tuple[SeriesRow, EndColumns]:
    """Convert a row whose first columns are SERIES_AND_END."""
    return rows.from_row(SeriesRow, row[:_SERIES_WIDTH]), rows.from_row(EndColumns, row[_SERIES_WIDTH:SERIES_END_WIDTH])


async def maps_of(db: Database, server_id: str) -> list[MapRow]:
    """Return the maps of a server's match, in the order they are played."""
    rest = "FROM maps WHERE server_id = :server_id ORDER BY map_number"
    return await rows.read_all(db, MapRow, rest, {"server_id": server_id})


async def maps_of_servers(db: Database, server_ids: Sequence[str]) -> list[MapRow]:
    """Return the maps of these servers' matches; the maps of a match are in the order they are played."""
    listed, params = rows.parameter_list("server_id", server_ids)
    return await rows.read_all(db, MapRow, f"FROM maps WHERE server_id IN {listed} ORDER BY map_number", params)


async def series_of(db: Database, server_id: str) -> SeriesRow | None:
    return await rows.read_first(db, SeriesRow, "FROM series WHERE server_id = :server_id", {"server_id": server_id})


async def stats_of(db: Database, map_id: str) -> MapStats | None:
    """Return the final statistics of a map; None if they are not stored (yet)."""
    stored = await rows.read_first(db, MapStats, "FROM map_stats WHERE map_id = :map_id", {"map_id": map_id})
    if stored is None:
        return None
    return msgspec.structs.replace(
        stored,
        players=unpack(stored.players),
        anti_cheat=unpack(stored.anti_cheat),
        leaderboard=unpack(stored.leaderboard),
    )


async def rounds_of(db: Database, map_id: str) -> MapRounds | None:
    """Return the rounds of a map whose result is final; None if none are stored, as for maps of earlier versions."""
    return await rows.read_first(db, MapRounds, "FROM map_rounds WHERE map_id = :map_id", {"map_id": map_id})
