"""Duplicates and limits of detections."""

from __future__ import annotations

from cs2_protocol.game import Team
from matchpod.core.anticheat.detection import MAX_DETECTIONS, Detection, add_detection

ANN = "76561198000000001"


def detection(
    *, player: str = ANN, kind: str = "Aimbot", map_number: int = 1, round_number: int | None = 3
) -> Detection:
    return Detection(
        player_id=player,
        name="ann",
        team=Team.TEAM1,
        kind=kind,
        reason="seven headshots through smoke",
        weapon="ak47",
        map_number=map_number,
        round_number=round_number,
        detected_at_ms=1000,
    )


def test_same_player_and_kind_is_added_once_per_round() -> None:
    kept: list[Detection] = []
    assert add_detection(kept, detection())
    assert not add_detection(kept, detection())
    assert kept == [detection()]


def test_another_player_kind_round_or_map_is_a_new_detection() -> None:
    kept: list[Detection] = []
    found = [
        detection(),
        detection(player="76561198000000002"),
        detection(kind="SpinBot"),
        detection(round_number=4),
        detection(round_number=None),
        detection(map_number=2),
    ]
    assert all(add_detection(kept, each) for each in found)
    assert kept == found


def test_nothing_is_added_to_a_full_list() -> None:
    kept = [detection(round_number=number) for number in range(MAX_DETECTIONS)]
    assert not add_detection(kept, detection(round_number=MAX_DETECTIONS))
    assert len(kept) == MAX_DETECTIONS
