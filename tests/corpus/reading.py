"""Real logs, read once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

from matchpod.core.events import GameEvent
from matchpod.core.model import GameSettings, MatchType
from matchpod.cs2.log_batches import lines_of
from matchpod.cs2.match_reader import MatchReader

INFERNO = "cs2-5v5-inferno.log"
CS2_LOGS = (INFERNO, "cs2-single-lines.log")
CSGO_LOGS = ("csgo-5v5-cache-bots.log", "csgo-hostage-agency.log")

COMPETITIVE = GameSettings(match_type=MatchType.COMPETITIVE, maps=("",))


def read_log(path: Path, settings: GameSettings = COMPETITIVE) -> tuple[MatchReader, list[GameEvent]]:
    """A whole log file through the real reader."""
    reader = MatchReader.create(settings, 0)
    reading = reader.read_file(lines_of([path.read_bytes()]))
    return reader, reading.events
