"""Pauses and detections in the timeline of a map are events of its organization, each once."""

from __future__ import annotations

from matchpod.core.match.match import Match
from matchpod.core.model import GameSettings, MatchType
from matchpod.core.views.organization_event_shapes import AntiCheatEvent, MatchPausedEvent, MatchResumedEvent
from matchpod.core.views.result_shapes import AntiCheatEntry
from matchpod.core.views.timeline_items import AntiCheatItem, PausedItem, UnpausedItem
from matchpod.core.views.timeline_writer import MapItem
from matchpod.service.identity.identifiers import map_id
from matchpod.service.streams.organization_event_lines import demo_available, map_events_of
from matchpod.service.webhooks.bodies import read_event, type_of
from tests.contract.test_storage_servers import server

AT = "2026-09-21T14:14:00.000Z"


def test_pauses_and_detections_become_events_once() -> None:
    row = server(game_id="3f1c0a52-6c1e-4b7a-9d3e-0123456789ab")
    match = Match.create(GameSettings(match_type=MatchType.COMPETITIVE, maps=("de_nuke",)), 0)
    entry = AntiCheatEntry(
        steam_id="76561198000000001", name="x", team=None, type="aimbot", reason="snap", weapon="ak47",
        map_number=1, round_number=3, detected_at=AT,
    )  # fmt: skip
    items = [
        MapItem(1, PausedItem(seq=1, timestamp=AT, round_number=3, by="mp_pause_match")),
        MapItem(1, UnpausedItem(seq=2, timestamp=AT, round_number=3, by="mp_unpause_match")),
        MapItem(1, AntiCheatItem(seq=3, timestamp=AT, round_number=3, detection=entry)),
    ]
    found = [read_event(line) for line in map_events_of(row, match, items, {})]
    assert [type(event) for event in found] == [MatchPausedEvent, MatchResumedEvent, AntiCheatEvent]
    types = [type_of(event) for event in found if event is not None]
    assert types == ["match.paused", "match.resumed", "anticheat.detected"]
    stored = {map_id(row.game_id, 1): 2}
    assert len(map_events_of(row, match, items, stored)) == 1


def test_a_demo_is_an_event_with_what_the_api_returns() -> None:
    line = demo_available(server(), b'{"state":"available"}', map_id="m", map_number=1, at_ms=1)
    event = read_event(line)
    assert event is not None
    assert type_of(event) == "demo.available"
    assert b'"demo":{"state":"available"}' in line


def test_an_event_of_a_later_version_is_skipped() -> None:
    assert read_event(b'{"type":"coffee_made"}') is None
