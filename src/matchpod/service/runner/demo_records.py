"""Store which demos a match records, and decide for how long its server is kept so that it can upload them.

While a match is driven, `DemoRecords` stores a row for each map that goes live. When the map has ended, the row gets
the time by which the upload must have begun. After the match, the release step is repeated until the uploads have
ended. It depends only on the rows, so any process can continue it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from matchpod.core.demos import STALE_MS, UPLOAD_LIMIT_MS, MissingReason, waits_until_ms
from matchpod.core.effects import BY_HAND
from matchpod.core.failures import FAILURE_REASONS
from matchpod.core.match.match import Match
from matchpod.core.match.played_map import PlayedMap
from matchpod.core.match.timers import upload_due_ms
from matchpod.core.model import GameSettings
from matchpod.core.outcome import Outcome
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import Statement
from matchpod.service.identity import identifiers
from matchpod.service.match_log.fold import settings_of
from matchpod.service.regions.regions import Region
from matchpod.service.runner.deps import Deps
from matchpod.storage import demos
from matchpod.storage.servers import ServerRow

LINGER_MS: Final = 5_000
"""Time for which a server is kept after an upload, because it may begin to upload another demo."""

POLL_MS: Final = 5_000
"""Interval at which a kept server is checked, at the speed of a real game."""

MIN_POLL_MS: Final = 500


class DemoRecords:
    """Tracks, for the process that drives a match, which demos of the match have rows in the database."""

    def __init__(self, row: ServerRow, match: Match, *, speed: float) -> None:
        self._row = row
        self._match = match
        self._speed = _speed_of(match.settings, speed)
        self._is_recorded = match.settings.record_demo
        self._stored: set[tuple[int, bool]] = set()
        """The map states that were stored: the number of a map, and whether the map had ended."""

    def has_new(self) -> bool:
        """True if a map has begun or ended since the last call of `note`."""
        if not self._is_recorded:
            return False
        played = self._match.current_map
        return played.started_at_ms is not None and _key(played) not in self._stored

    def statements(self, now_ms: int, outcome: Outcome | None = None) -> list[Statement]:
        """Return idempotent statements that store new map states. Call `note` after they were executed.

        If the outcome is a forfeit, no upload is awaited for the current map, because the plugin uploads a demo only if
        its map ends normally.
        """
        due_ms = upload_due_ms(self._match.settings, now_ms, speed=self._speed)
        cut = self._match.current_map if outcome is not None and outcome.forfeited_to is not None else None
        found = []
        for played in self._begun():
            if _key(played) in self._stored:
                continue
            map_id = identifiers.map_id(self._row.game_id, played.number)
            found.append(demos.expect(self._row, map_id=map_id, map_number=played.number, now_ms=now_ms))
            if played.is_finished and played is not cut:
                found.append(demos.await_upload(map_id, due_ms))
        return found

    def note(self) -> None:
        """Record that the statements returned by `statements` were executed."""
        self._stored.update(map(_key, self._begun()))

    def _begun(self) -> list[PlayedMap]:
        return [played for played in self._match.maps if self._is_recorded and played.started_at_ms is not None]


def _speed_of(settings: GameSettings, region_speed: float) -> float:
    """Return the speed of the match's game. The game on a simulated server may be slower than its region."""
    given = [cvar.value for cvar in settings.custom_cvars if cvar.name.lower() == "sim_speed"]
    with suppress(ValueError):  # the simulator rejects values that are not numbers above 0
        speed = float(given[-1]) if given else region_speed
        return min(region_speed, speed) if speed > 0 else region_speed
    return region_speed


def _key(played: PlayedMap) -> tuple[int, bool]:
    return played.number, played.is_finished


def is_kept(row: ServerRow) -> bool:
    """True if the server of an ended match may be kept for the upload of demos.

    It is not kept if the match failed, or was canceled by the caller or an operator.
    """
    is_over = row.reason not in BY_HAND and row.reason not in FAILURE_REASONS
    return is_over and row.running_at_ms is not None and settings_of(row).record_demo


async def kept_until_ms(row: ServerRow, deps: Deps, region: Region) -> int | None:
    """Return the time until which the server of an ended match is kept at most; None if it must be released now."""
    if not is_kept(row) or await region.fleet.observe(row.id, row.slot or "") is FleetReport.GONE:
        return None
    now_ms, known = deps.clock.now_ms(), await demos.of_server(deps.db, row.id)
    last_ms = max((demo.ended_at_ms for demo in known if demo.ended_at_ms and demo.file_name), default=0) + LINGER_MS
    until_ms = max(waits_until_ms(known, now_ms) or 0, last_ms)
    longest_ms = max(upload_due_ms(settings_of(row), now_ms, speed=1), now_ms + UPLOAD_LIMIT_MS + STALE_MS)
    return until_ms if now_ms < until_ms <= longest_ms else None  # later than `longest_ms` only if a clock was set back


def poll_ms(region: Region) -> int:
    return max(MIN_POLL_MS, round(POLL_MS / region.speed))


def give_up(row: ServerRow, now_ms: int) -> list[Statement]:
    """Return the statements that mark a server's demos as missing if they were not uploaded before its release."""
    if not settings_of(row).record_demo:
        return []
    if row.reason is None:
        return [demos.give_up(row.id, MissingReason.NOT_UPLOADED, now_ms)]
    is_lost = row.reason in FAILURE_REASONS
    return [demos.give_up(row.id, MissingReason.SERVER_LOST if is_lost else MissingReason.CANCELED, now_ms)]
