"""API views of history rows."""

from __future__ import annotations

import msgspec

from matchpod.core.match.played_map import MapStatus
from matchpod.core.rulings import RuledWinner, Ruling
from matchpod.core.views.marks import NO_MARKS
from matchpod.service.reading import history_views as views
from matchpod.storage.history import MapRow, MapStats

STARTED_MS = 1_790_000_000_123
MAP = MapRow(
    id="m1",
    server_id="srv_1",
    org_id="org_1",
    series_id="ser_1",
    map_number=2,
    map_name="de_nuke",
    played_map_name="de_nuke_v2",
    game_mode="wingman",
    server_name="Europe 1",
    team1_name="Reds",
    team2_name="Blues",
    team1_score=9,
    team2_score=4,
    winner="team1",
    status=MapStatus.FINISHED,
    started_at_ms=STARTED_MS,
    finished_at_ms=STARTED_MS + 90_999,
    duration_s=90,
    player_count=4,
    is_final=True,
    sort_ms=STARTED_MS,
    is_complete=False,
    missing_rounds=b"[3,4]",
    team1_start_side="TERRORIST",
    sides_by="knife",
)
RULING = Ruling(id="rul_1", winner=RuledWinner.TEAM2, reason="wrong map", by=None, ruled_at="2026-09-22T00:00:00.000Z")
SHOWN_RULING = {
    "id": "rul_1", "winner": "team2", "reason": "wrong map", "by": None, "ruledAt": "2026-09-22T00:00:00.000Z",
}  # fmt: skip
STATS = MapStats(map_id="m1", stats_version=3, players=b'[{"kills":1}]', anti_cheat=b"[]", leaderboard=b"[]")
SUMMARY = {
    "id": "m1",
    "serverId": "srv_1",
    "serverName": "Europe 1",
    "map": "de_nuke",
    "playedMapName": "de_nuke_v2",
    "gameMode": "wingman",
    "team1Name": "Reds",
    "team2Name": "Blues",
    "team1Score": 9,
    "team2Score": 4,
    "status": "finished",
    "startedAt": "2026-09-21T14:13:20.123Z",
    "finishedAt": "2026-09-21T14:14:51.122Z",
    "duration": 90,
    "playerCount": 4,
    "ruling": SHOWN_RULING,
}


def as_json(view: msgspec.Struct) -> dict[str, object]:
    return msgspec.json.decode(msgspec.json.encode(view), type=dict[str, object])


def test_map_contains_its_stored_statistics_unchanged() -> None:
    view = views.map_detail(MAP, STATS, RULING, NO_MARKS)
    assert bytes(view.players) == STATS.players
    assert as_json(view) == {
        **SUMMARY,
        "seriesId": "ser_1",
        "mapNumber": 2,
        "winner": "team1",
        "complete": False,
        "missingRounds": [3, 4],
        "team1StartSide": "TERRORIST",
        "sidesBy": "knife",
        "players": [{"kills": 1}],
        "antiCheat": [],
        "statsVersion": 3,
    }


def test_map_that_ended_before_missing_rounds_were_recorded_may_be_complete_or_not() -> None:
    shown = as_json(views.map_detail(msgspec.structs.replace(MAP, missing_rounds=None), STATS, None, NO_MARKS))
    assert (shown["complete"], shown["missingRounds"]) == (None, [])
