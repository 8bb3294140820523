"""Check what must hold for the history of every ended match, regardless of crashes and handovers."""

from __future__ import annotations

import json

import msgspec

from matchpod.core.match.played_map import MapStatus
from matchpod.ports import Database
from matchpod.service.history.finalize import fold_to_end
from matchpod.service.history.rows import history_of
from matchpod.service.identity import identifiers
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.storage import history, map_events, outbox
from matchpod.storage.servers import ServerRow

ALL_ITEMS = 1_000_000


async def timeline_of(db: Database, row: ServerRow) -> dict[int, list[bytes]]:
    """The stored items of each map, by map number; checks that they are numbered without gaps."""
    maps = await history.maps_of(db, row.id)
    stored: dict[int, list[bytes]] = {}
    for one in maps:
        items = await map_events.read_after(db, one.id, 0, limit=ALL_ITEMS)
        assert [seq for seq, _ in items] == list(range(1, len(items) + 1))
        assert [json.loads(line)["seq"] for _, line in items] == [seq for seq, _ in items]
        if items:
            stored[one.map_number] = [line for _, line in items]
    return stored


def without_deaths(items: list[bytes]) -> list[dict[str, object]]:
    """The items that the last release had too, without numbers, and without times: those of fast games were others."""
    decoded = [json.loads(line) for line in items]
    changed = {"seq": None, "timestamp": None, "sidesBy": None}
    return [{**item, **changed} for item in decoded if item["type"] != "death"]


async def assert_final_history(db: Database, row: ServerRow, speed: float, *, is_same_version: bool = True) -> None:
    """The history is final, consistent with the outcome, and equal to what a replay of the log gives."""
    outcome = await outbox.outcome_of(db, row.id)
    maps, series = await history.maps_of(db, row.id), await history.series_of(db, row.id)
    assert outcome is not None
    assert maps
    assert all(one.is_final for one in maps)
    assert not {one.status for one in maps} & {MapStatus.UPCOMING, MapStatus.LIVE}
    expected = MapStatus.CANCELLED if outcome.result is None else MapStatus.FINISHED
    assert series is None or series.status is expected
    assert len(maps) > 1 or maps[0].status is expected
    fold = await fold_to_end(db, row, speed, turns=FoldTurns())
    replayed: dict[int, list[bytes]] = {}
    for item in fold.drain_timeline():
        replayed.setdefault(item.map_number, []).append(msgspec.json.encode(item.item))
    stored = await timeline_of(db, row)
    if is_same_version:
        assert stored == replayed
    else:
        assert {number: without_deaths(items) for number, items in stored.items()} == {
            number: without_deaths(items) for number, items in replayed.items()
        }
    await _assert_map_ends(db, maps)
    final = history_of(row, fold.match, server_name=maps[0].server_name, is_final=True)
    assert (tuple(maps), series) == (final.maps, final.series)
    assert [one.id for one in maps] == [identifiers.map_id(row.game_id, number) for number in range(1, len(maps) + 1)]
    if outcome.result is not None:
        await _assert_same_numbers(db, outcome.result, maps)


async def _assert_map_ends(db: Database, maps: list[history.MapRow]) -> None:
    """The last item of every map that was played agrees with its row."""
    for one in maps:
        items = await map_events.read_after(db, one.id, 0, limit=ALL_ITEMS)
        if one.started_at_ms is None:
            assert not [line for _, line in items if b'"type":"map_live"' in line or b'"type":"kill"' in line]
            continue
        last = json.loads(items[-1][1])
        assert last["type"] == "map_end"
        assert last["status"] == one.status
        if last["winner"] is None and one.winner is not None:
            continue  # the end of the map was lost, and its winner was found later
        assert last["winner"] == one.winner
        if last["score"] is not None:  # a deathmatch has none
            assert (last["score"]["team1"], last["score"]["team2"]) == (one.team1_score, one.team2_score)


async def _assert_same_numbers(db: Database, result: bytes, maps: list[history.MapRow]) -> None:
    """The statistics of the maps equal those of the result."""
    decoded = json.loads(result)
    published = [decoded["players"]] if "players" in decoded else [entry["players"] for entry in decoded["maps"]]
    played = [one for one in maps if one.status is MapStatus.FINISHED]
    stats = [await history.stats_of(db, one.id) for one in played]
    assert [json.loads(one.players) for one in stats if one is not None] == published
    assert [one.player_count for one in played] == [len(players) for players in published]
