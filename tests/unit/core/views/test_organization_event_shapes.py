"""The events of an organization's stream are a closed set, and their JSON begins with the type."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.match.actions import ActionState, ActionType
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import Winner
from matchpod.core.rulings import RuledWinner, Ruling
from matchpod.core.views.organization_event_shapes import (
    ActionChangedEvent,
    AntiCheatEvent,
    AttentionRaisedEvent,
    DemoAvailableEvent,
    GapEvent,
    MapFinishedEvent,
    MapWentLiveEvent,
    MatchCreatedEvent,
    MatchEndedEvent,
    MatchPausedEvent,
    MatchResumedEvent,
    MatchRuledEvent,
    OrganizationEvent,
    PositionEvent,
    RaisedAttention,
    ScoreChangedEvent,
    ServerRunningEvent,
)
from matchpod.core.views.result_shapes import AntiCheatEntry, MapState, Score, SeriesScore
from matchpod.core.views.timeline_items import PausedItem, UnpausedItem

AT = "2026-09-21T14:14:00.000Z"
LIVE = MapState(name="de_nuke", number=1, status=MapStatus.LIVE, score=Score(0, 0), winner=None)
HEAD = '"serverId":"srv_1","externalMatchId":"cup 1","at":"2026-09-21T14:14:00.000Z"'
MATCH: Any = {"server_id": "srv_1", "external_match_id": "cup 1", "at": AT}
EXAMPLES: list[tuple[OrganizationEvent, str]] = [
    (
        MatchCreatedEvent(**MATCH, region="eu"),
        '{"type":"match_created",HEAD,"region":"eu"}',
    ),
    (
        ServerRunningEvent(**MATCH, ip="203.0.113.7", port=27015),
        '{"type":"server_running",HEAD,"ip":"203.0.113.7","port":27015}',
    ),
    (
        MapWentLiveEvent(
            **MATCH,
            map_id="m",
            map_number=1,
            map_name="de_nuke",
            score=Score(0, 0),
            series_score=SeriesScore(0, 0),
            maps=(LIVE,),
        ),
        '{"type":"map_live",HEAD,"mapId":"m","mapNumber":1,"mapName":"de_nuke","score":{"team1":0,"team2":0},'
        '"seriesScore":{"team1":0,"team2":0},"maps":[{"name":"de_nuke","number":1,"status":"live",'
        '"score":{"team1":0,"team2":0},"winner":null}]}',
    ),
    (
        ScoreChangedEvent(
            **MATCH, map_id="m", map_number=1, round_number=7, score=Score(4, 3), series_score=SeriesScore(0, 0)
        ),
        '{"type":"score_changed",HEAD,"mapId":"m","mapNumber":1,"roundNumber":7,"score":{"team1":4,"team2":3},'
        '"seriesScore":{"team1":0,"team2":0}}',
    ),
    (
        MapFinishedEvent(
            **MATCH, map_id="m", map_number=1, score=Score(13, 3), winner=Winner.TEAM1, series_score=None, maps=()
        ),
        '{"type":"map_ended",HEAD,"mapId":"m","mapNumber":1,"score":{"team1":13,"team2":3},"winner":"team1",'
        '"seriesScore":null,"maps":[]}',
    ),
    (
        ActionChangedEvent(
            **MATCH,
            action_id="action_1",
            action=ActionType.RESTORE,
            fields={"round": 9},
            state=ActionState.FAILED,
            detail="The server refused it.",
            reason=None,
            by="ann",
        ),
        '{"type":"action",HEAD,"actionId":"action_1","action":"restore","fields":{"round":9},"state":"failed",'
        '"detail":"The server refused it.","reason":null,"by":"ann"}',
    ),
    (
        MatchEndedEvent(**MATCH, outcome="match_canceled", reason=CancelReason.SERVER_LOST, status="failed"),
        '{"type":"match_ended",HEAD,"outcome":"match_canceled","reason":"server_lost","status":"failed"}',
    ),
    (
        MatchRuledEvent(
            **MATCH, ruling=Ruling(id="rul_1", winner=RuledWinner.NONE, reason=None, by="Eva", ruled_at=AT)
        ),
        '{"type":"ruling",HEAD,"ruling":{"id":"rul_1","winner":"none","reason":null,"by":"Eva","ruledAt":"AT"}}',
    ),
    (
        MatchPausedEvent(
            **MATCH, map_id="m", map_number=1, item=PausedItem(seq=5, timestamp=AT, round_number=3, by="mp_pause_match")
        ),
        '{"type":"match_paused",HEAD,"mapId":"m","mapNumber":1,"item":{"type":"paused","seq":5,"timestamp":"AT",'
        '"roundNumber":3,"by":"mp_pause_match","calledBy":null}}',
    ),
    (
        MatchResumedEvent(
            **MATCH,
            map_id="m",
            map_number=1,
            item=UnpausedItem(seq=6, timestamp=AT, round_number=3, by="mp_unpause_match"),
        ),
        '{"type":"match_resumed",HEAD,"mapId":"m","mapNumber":1,"item":{"type":"unpaused","seq":6,"timestamp":"AT",'
        '"roundNumber":3,"by":"mp_unpause_match"}}',
    ),
    (
        AntiCheatEvent(
            **MATCH,
            map_id="m",
            map_number=1,
            detection=AntiCheatEntry(
                steam_id="76561198000000001",
                name="x",
                team=None,
                type="aimbot",
                reason="snapped",
                weapon="ak47",
                map_number=1,
                round_number=3,
                detected_at=AT,
            ),
        ),
        '{"type":"anti_cheat",HEAD,"mapId":"m","mapNumber":1,"detection":{"steamId":"76561198000000001","name":"x",'
        '"team":null,"type":"aimbot","reason":"snapped","weapon":"ak47","mapNumber":1,"roundNumber":3,'
        '"detectedAt":"AT"}}',
    ),
    (
        AttentionRaisedEvent(
            **MATCH, attention=RaisedAttention(kind="pause", urgency="soon", text="paused for", since=AT, until=None)
        ),
        '{"type":"attention_raised",HEAD,"attention":{"kind":"pause","urgency":"soon","text":"paused for",'
        '"since":"AT","until":null}}',
    ),
    (
        DemoAvailableEvent(**MATCH, map_id="m", map_number=1, demo=msgspec.Raw(b'{"state":"available"}')),
        '{"type":"demo_available",HEAD,"mapId":"m","mapNumber":1,"demo":{"state":"available"}}',
    ),
    (PositionEvent(), '{"type":"position"}'),
    (GapEvent(first_id=3, last_id=9), '{"type":"gap","firstId":3,"lastId":9}'),
]


@pytest.mark.parametrize(("event", "text"), EXAMPLES, ids=[type(event).__name__ for event, _ in EXAMPLES])
def test_event_is_encoded_with_its_type_first(event: OrganizationEvent, text: str) -> None:
    text = text.replace("HEAD", HEAD).replace('"AT"', f'"{AT}"')
    assert msgspec.json.encode(event).decode() == text
    assert msgspec.json.decode(text, type=OrganizationEvent) == event


def test_every_event_has_an_example() -> None:
    assert {type(event) for event, _ in EXAMPLES} == set(get_args(OrganizationEvent))
