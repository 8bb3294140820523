"""Define a detection: a hint for human review, never a verdict. The number of detections per match is limited."""

from __future__ import annotations

import msgspec

from cs2_protocol.game import PlayerId, Team

MAX_DETECTIONS = 500
"""Maximum number of detections stored per match: more than can be reviewed. It keeps results small if a detector
misbehaves."""


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """One suspicious finding: player, kind, map and round. `team` is None in free-for-all and if unknown."""

    player_id: PlayerId
    name: str
    team: Team | None
    kind: str
    reason: str
    weapon: str
    map_number: int
    round_number: int | None
    detected_at_ms: int


def add_detection(kept: list[Detection], found: Detection) -> bool:
    """Append a detection, unless `kept` is full or already has its player, kind, map and round. True if appended."""
    if len(kept) >= MAX_DETECTIONS or any(_key(old) == _key(found) for old in kept):
        return False
    kept.append(found)
    return True


def _key(detection: Detection) -> tuple[PlayerId, str, int, int | None]:
    return detection.player_id, detection.kind, detection.map_number, detection.round_number
