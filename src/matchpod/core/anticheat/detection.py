"""What is a detection, and how many does a match keep? A lead for people to look at, never a verdict."""

from __future__ import annotations

import msgspec

from matchpod.core.model import PlayerId, Team

MAX_DETECTIONS = 500
"""More than anyone reviews; keeps result and callback small when a detector goes wild."""


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """One lead: who, what, and where in the match. `team` is None where the player belongs to none."""

    player_id: PlayerId
    name: str
    team: Team | None
    kind: str
    reason: str
    weapon: str
    map_number: int
    round_number: int | None
    detected_at_ms: int


def keep_detection(kept: list[Detection], found: Detection) -> bool:
    """Append the detection unless the list is full or has one of that player, kind and round; True if it was kept."""
    if len(kept) >= MAX_DETECTIONS or any(_key(old) == _key(found) for old in kept):
        return False
    kept.append(found)
    return True


def _key(detection: Detection) -> tuple[PlayerId, str, int, int | None]:
    return detection.player_id, detection.kind, detection.map_number, detection.round_number
