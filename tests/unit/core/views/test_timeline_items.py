"""API shapes of timeline items: type names, common fields and camel case."""

from __future__ import annotations

from typing import get_args

import msgspec

from cs2_protocol.game import Side, Team
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import Winner
from matchpod.core.views import timeline_items as items
from matchpod.core.views.result_shapes import Score
from matchpod.core.views.timeline_items import Person, TimelineItem

TYPES = (
    "map_live", "round_start", "round_end", "kill", "death", "assist", "bomb_planted", "bomb_defused", "bomb_exploded",
    "player_connected", "player_disconnected", "chat", "paused", "unpaused", "side_swap", "round_restored",
    "anti_cheat", "action", "map_end",
)  # fmt: skip

ANN = Person(steam_id="76561198000000001", name="Ann", team=Team.TEAM1)
HAN = Person(steam_id=None, name="Han", team=None)


def as_json(item: TimelineItem) -> object:
    return msgspec.json.decode(msgspec.json.encode(item))


def test_item_types_are_those_of_the_api() -> None:
    assert tuple(kind.__struct_config__.tag for kind in get_args(TimelineItem)) == TYPES


def test_every_item_has_the_common_fields_and_a_type_tag() -> None:
    for kind in get_args(TimelineItem):
        assert {"seq", "timestamp", "roundNumber"} <= set(kind.__struct_encode_fields__)
        assert kind.__struct_config__.tag_field == "type"
        assert "type" not in kind.__struct_encode_fields__


def test_kill_item_is_encoded_with_all_fields() -> None:
    kill = items.KillItem(
        seq=7, timestamp="2026-01-20T09:06:40.123Z", round_number=3, killer=ANN, victim=HAN, weapon="ak47",
        team_kill=False, headshot=True, wallbang=False, through_smoke=True, attacker_blind=False, noscope=False,
        in_air=False, distance=512.5,
    )  # fmt: skip
    assert as_json(kill) == {
        "type": "kill", "seq": 7, "timestamp": "2026-01-20T09:06:40.123Z", "roundNumber": 3,
        "killer": {"steamId": "76561198000000001", "name": "Ann", "team": "team1"},
        "victim": {"steamId": None, "name": "Han", "team": None},
        "weapon": "ak47", "teamKill": False, "headshot": True, "wallbang": False, "throughSmoke": True,
        "attackerBlind": False, "noscope": False, "inAir": False, "distance": 512.5,
    }  # fmt: skip


def test_map_end_item_is_encoded_with_status_winner_and_score() -> None:
    end = items.MapEndItem(
        seq=9, timestamp="t", round_number=24, status=MapStatus.FINISHED, winner=Winner.TIE, score=Score(12, 12)
    )
    assert as_json(end) == {
        "type": "map_end", "seq": 9, "timestamp": "t", "roundNumber": 24, "status": "finished", "winner": "tie",
        "score": {"team1": 12, "team2": 12},
    }  # fmt: skip


def test_item_is_decoded_by_its_type() -> None:
    for side in (Side.T, None):
        swap = items.SideSwapItem(seq=1, timestamp="t", round_number=None, team1_side=side)
        assert msgspec.json.decode(msgspec.json.encode(swap), type=TimelineItem) == swap
