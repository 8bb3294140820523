"""Names of the real logs, and functions to read them."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from cs2_protocol.log_batches import split_lines
from matchpod.core.events import GameEvent, Kill
from matchpod.core.model import GameSettings, MatchType
from matchpod.cs2.match_reader import MatchReader

INFERNO = "cs2-5v5-inferno.log"
LEAVER = "cs2-inferno-leaver-bots.log"
CS2_LOGS = (INFERNO, LEAVER, "cs2-single-lines.log")
CS2_MATCHES = (INFERNO, LEAVER)
CSGO_LOGS = ("csgo-5v5-cache-bots.log", "csgo-hostage-agency.log")

COMPETITIVE = GameSettings(match_type=MatchType.COMPETITIVE, maps=("",))


def read_log(path: Path, settings: GameSettings = COMPETITIVE) -> tuple[MatchReader, list[GameEvent]]:
    reader = MatchReader.create(settings, 0)
    result = reader.read_file(split_lines([path.read_bytes()]))
    return reader, result.events


def human_id(player_id: str, ids: dict[str, str]) -> str:
    return ids.setdefault(player_id, str(76561198100000000 + len(ids)))


def with_humans_for_bots(events: list[GameEvent]) -> list[GameEvent]:
    """Replace bots with humans, because the logs have few human kills."""
    ids: dict[str, str] = {}
    return [
        replace(event, killer=human_id(event.killer, ids), victim=human_id(event.victim, ids))
        if isinstance(event, Kill)
        else event
        for event in events
    ]
