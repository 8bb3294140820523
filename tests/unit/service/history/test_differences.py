"""Two histories of a match are compared field by field."""

from __future__ import annotations

import json

import msgspec
import pytest

from matchpod.core.match.played_map import MapStatus
from matchpod.service.history.differences import Difference, DifferencePart, compare
from matchpod.storage.history import MapRow, MapStats, MatchHistory, SeriesRow
from tests.unit.service.reading.test_history_views import MAP

ANN = {"steamId": "1", "name": "Ann", "kills": 3, "extraStats": {"aces": 1}}
BEN = {"steamId": "2", "name": "Ben", "kills": 2, "extraStats": None}
DETECTION = {"steamId": "1", "name": "Ann", "type": "Aimbot", "roundNumber": 3, "reason": "fast"}


def map_row(**fields: object) -> MapRow:
    return msgspec.structs.replace(MAP, **{"map_number": 1, "finished_at_ms": 60_000, **fields})


def series_row(**fields: object) -> SeriesRow:
    row = SeriesRow(
        id="s1",
        series_id="ser_1",
        server_id="srv_1",
        org_id="org_1",
        server_name="Europe 1",
        format="bo1",
        game_mode="wingman",
        team1_name="Reds",
        team2_name="Blues",
        status=MapStatus.FINISHED,
    )
    return msgspec.structs.replace(row, **fields)


def statistics(
    players: object = (ANN, BEN), *, leaders: object = (ANN,), detections: object = (), version: int = 1
) -> MapStats:
    return MapStats(
        map_id="m1",
        stats_version=version,
        players=json.dumps(players).encode(),
        anti_cheat=json.dumps(detections).encode(),
        leaderboard=json.dumps(leaders).encode(),
    )


def history(
    row: MapRow | None = None, *, series: SeriesRow | None = None, stats: MapStats | None = None
) -> MatchHistory:
    return MatchHistory((row or map_row(),), series, (stats or statistics(),))


def test_fields_that_do_not_depend_on_the_log_are_not_compared() -> None:
    renamed = history(map_row(server_name="Europa 1"), stats=statistics(version=7))
    assert compare(history(), renamed) == []


def test_columns_have_their_api_names() -> None:
    old = map_row(winner="team1", finished_at_ms=None, duration_s=None)
    assert compare(history(old), history(map_row(winner=None, status=MapStatus.CANCELLED))) == [
        Difference(part=DifferencePart.MAP, map_number=1, field="winner", old="team1", new=None),
        Difference(
            part=DifferencePart.MAP, map_number=1, field="status", old=MapStatus.FINISHED, new=MapStatus.CANCELLED
        ),
        Difference(part=DifferencePart.MAP, map_number=1, field="finishedAt", old=None, new="1970-01-01T00:01:00.000Z"),
        Difference(part=DifferencePart.MAP, map_number=1, field="duration", old=None, new=90),
    ]


def test_sort_column_is_compared() -> None:
    (found,) = compare(history(map_row(sort_ms=1)), history(map_row(sort_ms=2)))
    assert (found.field, found.old, found.new) == ("sortedAt", 1, 2)


def test_players_are_matched_by_steam_id() -> None:
    better = {**ANN, "kills": 4, "extraStats": {"aces": 2, "knifeKills": 1}}
    ann = Difference(part=DifferencePart.PLAYERS, map_number=1, steam_id="1", name="Ann")
    assert compare(history(), history(stats=statistics([BEN, better]))) == [
        msgspec.structs.replace(ann, field="kills", old=3, new=4),
        msgspec.structs.replace(ann, field="extraStats.aces", old=1, new=2),
        msgspec.structs.replace(ann, field="extraStats.knifeKills", new=1),
    ]


def test_null_that_became_an_object_is_a_difference() -> None:
    fields = compare(history(), history(stats=statistics([ANN, {**BEN, "extraStats": {"aces": 0}}])))
    assert [(one.field, one.old, one.new) for one in fields] == [
        ("extraStats.aces", msgspec.UNSET, 0),
        ("extraStats", None, msgspec.UNSET),
    ]


def test_added_and_removed_players_are_one_difference_each() -> None:
    old, new = history(stats=statistics([ANN])), history(stats=statistics([BEN]))
    assert compare(old, new) == [
        Difference(part=DifferencePart.PLAYERS, map_number=1, steam_id="2", name="Ben", new=BEN),
        Difference(part=DifferencePart.PLAYERS, map_number=1, steam_id="1", name="Ann", old=ANN),
    ]


def test_changed_order_is_a_difference() -> None:
    (found,) = compare(history(), history(stats=statistics([BEN, ANN])))
    assert (found.part, found.field, found.old, found.new) == (DifferencePart.PLAYERS, "order", ["1", "2"], ["2", "1"])


def test_duplicate_entry_is_a_difference() -> None:
    (found,) = compare(history(stats=statistics([ANN, ANN])), history(stats=statistics([ANN])))
    assert (found.steam_id, found.field, found.old) == ("1", None, ANN)


def test_leaderboard_and_detections_are_compared() -> None:
    new = statistics(leaders=[{**ANN, "kills": 4}], detections=[DETECTION])
    leader, detection = compare(history(), history(stats=new))
    assert (leader.part, leader.field) == (DifferencePart.LEADERBOARD, "kills")
    assert (detection.part, detection.steam_id, detection.new) == (DifferencePart.ANTI_CHEAT, "1", DETECTION)
    old = statistics(detections=[DETECTION])
    (changed,) = compare(history(stats=old), history(stats=statistics(detections=[{**DETECTION, "reason": "slow"}])))
    assert (changed.part, changed.field, changed.new) == (DifferencePart.ANTI_CHEAT, "reason", "slow")


def test_statistics_are_new_for_a_map_without_stored_ones() -> None:
    found = compare(MatchHistory((map_row(),)), history())
    assert [(one.part, one.steam_id, one.old) for one in found] == [
        (DifferencePart.PLAYERS, "1", msgspec.UNSET),
        (DifferencePart.PLAYERS, "2", msgspec.UNSET),
        (DifferencePart.LEADERBOARD, "1", msgspec.UNSET),
    ]


@pytest.mark.parametrize("damaged", [b"", b"x", b"{}", b"[1]", b'[{"name": "\xff"}]'])
def test_damaged_list_is_one_difference_even_if_the_new_list_is_empty(damaged: bytes) -> None:
    broken = msgspec.structs.replace(statistics(), players=damaged, anti_cheat=damaged)
    players, detections = compare(history(stats=broken), history())
    text = damaged.decode(errors="replace")
    assert players == Difference(part=DifferencePart.PLAYERS, map_number=1, field="entries", old=text, new=[ANN, BEN])
    assert detections == Difference(part=DifferencePart.ANTI_CHEAT, map_number=1, field="entries", old=text, new=[])


def test_missing_map_or_series_is_one_difference() -> None:
    found = compare(MatchHistory(()), history(series=series_row()))
    assert [(one.part, one.map_number, one.field, one.old) for one in found] == [
        (DifferencePart.MAP, 1, None, msgspec.UNSET),
        (DifferencePart.SERIES, None, None, msgspec.UNSET),
    ]


def test_series_is_compared() -> None:
    old, new = history(series=series_row()), history(series=series_row(winner_team="Reds", team1_maps_won=1))
    assert compare(old, new) == [
        Difference(part=DifferencePart.SERIES, field="team1MapsWon", old=0, new=1),
        Difference(part=DifferencePart.SERIES, field="winnerTeam", old=None, new="Reds"),
    ]
