"""Apply stored entries to a match: the same way for a live match, after a restart, and in another replica.

A deadline fires at an entry of its own, which the runner appends once it has passed: the log shows what came before it.
Resuming a match is an entry too: posts before it may have been missed, so deadlines wait until the server has had time
to repeat them. Deadlines count observed time: a long gap in the log (an outage, or a clock that was set forward) counts
as MAX_STEP_MS, and a clock that was set back holds no deadline up.
"""

from __future__ import annotations

import functools
import logging
import re
import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from cs2_protocol.log_batches import read_post
from matchpod.core.effects import CancelReason, Effect
from matchpod.core.events import COMBAT_EVENTS
from matchpod.core.match.actions import ActionAnswer, ActionRequest
from matchpod.core.match.match import Match
from matchpod.core.match.phases import MatchPhase
from matchpod.core.match.timers import Timers, to_ms
from matchpod.core.model import GameSettings
from matchpod.core.servers.server_loss import SILENCE_MS
from matchpod.core.stored.shared_texts import share_texts
from matchpod.core.stored.stored_settings import read_settings
from matchpod.core.stored.type_fingerprint import type_fingerprint
from matchpod.core.views.attention import Signals
from matchpod.core.views.match_progress import LiveState, MatchProgress, progress_of
from matchpod.core.views.progress import Stays, WaitingFor, next_deadline
from matchpod.core.views.result import build_result, live_match
from matchpod.core.views.timeline_items import KillItem, TimelineItem
from matchpod.core.views.timeline_writer import MapItem
from matchpod.cs2.anticheat_reports import read_detections
from matchpod.cs2.match_commands import uses_plugin_match
from matchpod.cs2.match_reader import MatchReader, ReadResult
from matchpod.cs2.shots_report import ShotsReportError, read_shots_report
from matchpod.service.match_log.entries import SENT_BY_SERVER, EntryKind, read_action_body
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow

CATCH_UP_MS: Final = 10_000
"""How long deadlines wait after a resume: a server repeats unacknowledged posts, and has caught up by then."""

MAX_WAIT_MS: Final = 120_000
"""A deadline waits at most this long, even if the service restarts again and again: twelve resumes, and more than a
deadline that passed during an outage needs (MAX_STEP_MS and CATCH_UP_MS)."""

MAX_STEP_MS: Final = 60_000
"""The most that two consecutive entries can be apart in the time of the match. The server of a match posts more often:
the liveness probe asks one that has been quiet for 10 s, and it logs the question."""

OBSERVE_MS: Final = 30_000
"""After this time without an entry, the process that drives the match appends one, so that all of it counts."""

LATE_MS: Final = 2_000
"""A deadline noticed this late, or after a database read that took this long, does not fire at once: the machine or
the database was stalled, and servers are about to repeat their posts."""

MAX_DEADLINES: Final = 100
"""Maximum deadlines fired per call of `advance`; far fewer are ever due, and most end the match."""

_SPEED_CVARS: Final = frozenset({"sim_speed", "sim_lockstep"})

_TIMESTAMP: Final = re.compile(rb'"timestamp":"[^"]*",')

_COMPRESSED: Final = b"\x78"
"""The first byte of what zlib compressed; an array begins with another."""

_STRINGS: Final = msgspec.json.Decoder(dict[str, str])

_log = logging.getLogger(__name__)


def settings_of(row: ServerRow, server_password: str | None = None) -> GameSettings:
    """The game settings of a server row; the server's password is stored separately, sealed, and passed in."""
    settings = read_settings(row.settings)
    return msgspec.structs.replace(settings, server_password=server_password) if server_password else settings


def _sets_speed(settings: GameSettings) -> bool:
    """True if the match changes how fast a simulated server plays."""
    return any(cvar.name.lower() in _SPEED_CVARS for cvar in settings.custom_cvars)


def _is_only_combat(entry: RawEntry, reading: ReadResult) -> bool:
    """True if no player came or left: nearly all log posts."""
    return entry.kind == EntryKind.LOG and COMBAT_EVENTS.issuperset(map(type, reading.events))


def _content(seq: int, item: bytes, *, is_timed: bool) -> bytes:
    """A timeline item, as JSON, without its number and, unless `is_timed`, without its time."""
    content = item.replace(b'"seq":%d,' % seq, b"", 1)
    return content if is_timed else _TIMESTAMP.sub(b"", content, 1)


class SnapshotVersionError(Exception):
    """A snapshot was written by another version of the types, or is damaged; the log leads to the same state."""


class _Envelope(msgspec.Struct, array_like=True):
    """A stored snapshot. An array, because older versions have no envelope: they expect an object and reject arrays."""

    fingerprint: bytes
    fold: msgspec.Raw


@functools.cache
def fold_fingerprint() -> bytes:
    """Fingerprint of all types in a snapshot."""
    return type_fingerprint(Fold)


class Fold(msgspec.Struct):
    """The state of a match after some of its entries. A snapshot stores all of it."""

    reader: MatchReader
    attempt: str = ""
    """Of the server that plays this match: what another one sent, before or after it was replaced, does not count."""
    deadlines_wait_until_ms: int = 0
    last_ms: int | None = None
    """When the last entry was received."""
    heard_ms: int | None = None
    """When the last entry was received that the server or its plugins sent."""
    stays: Stays = msgspec.field(default_factory=Stays)
    signals: Signals = msgspec.field(default_factory=Signals)

    @classmethod
    def begin(cls, row: ServerRow, speed: float) -> Fold:
        """The match before its first entry."""
        settings = settings_of(row)
        reader = MatchReader.create(settings, row.created_at_ms, Timers.of(settings).at_speed(speed))
        # If the allocation took more than half of the join time, players get the full join time from then on; also if
        # the clock was set back meanwhile.
        allocated_ms = row.allocated_at_ms or row.created_at_ms
        is_late = not 0 <= 2 * (allocated_ms - row.created_at_ms) <= to_ms(reader.match.timers.join_s)
        reader.match.set_allocated(allocated_ms, was_pending=row.was_pending or is_late)
        if row.log_from_seq:
            reader.match.disturb(allocated_ms)  # an earlier server was replaced
        reader.clock.is_real_time = speed == 1.0 and not _sets_speed(reader.match.settings)
        return cls(reader, row.attempt)

    def dump(self) -> bytes:
        """Encode as a snapshot, with the fingerprint of the types; compressed to a quarter."""
        encoded = msgspec.msgpack.encode(_Envelope(fold_fingerprint(), msgspec.Raw(msgspec.msgpack.encode(self))))
        return zlib.compress(encoded, level=1)

    @classmethod
    def load(cls, state: bytes) -> Fold:
        """Decode a snapshot; SnapshotVersionError if it was written with other types than today's, or is damaged."""
        try:
            # Earlier versions did not compress: an envelope is an array, which no compressed bytes begin with.
            decoded = zlib.decompress(state) if state[:1] == _COMPRESSED else state
            envelope = msgspec.msgpack.decode(decoded, type=_Envelope)
        except (msgspec.MsgspecError, zlib.error) as exc:
            raise SnapshotVersionError(f"no fingerprint: {exc}") from exc
        if envelope.fingerprint != fold_fingerprint():
            expected = fold_fingerprint().hex()
            raise SnapshotVersionError(f"fingerprint is {envelope.fingerprint.hex()}, expected {expected}")
        try:
            return share_texts(msgspec.msgpack.decode(envelope.fold, type=cls))
        except msgspec.MsgspecError as exc:
            raise SnapshotVersionError(f"cannot be decoded: {exc}") from exc

    # --- change ---------------------------------------------------------------------------------------------------

    def apply(self, entry: RawEntry) -> ReadResult:
        """Apply the next entry of the log."""
        if entry.kind == EntryKind.ENDED or not self.is_own(entry):
            return ReadResult([], [])
        was_silent = self.heard_ms is not None and entry.received_ms - self.heard_ms >= SILENCE_MS
        self._follow_clock(entry.received_ms)
        if was_silent:
            self.match.disturb(self.reader.match_ms(entry.received_ms))
        if entry.kind in SENT_BY_SERVER:
            self.heard_ms = entry.received_ms
        reading = self._apply(entry)
        try:
            if not (self.stays.are_all_here and _is_only_combat(entry, reading)):
                self.stays.update(self.match, entry.received_ms, match_ms=self.reader.match_ms(entry.received_ms))
            self.signals.update(reading.events, entry.received_ms)
        except Exception:  # noqa: BLE001 - only views use them; the match needs the entry
            _log.exception("signs of a match lost", extra={"server_id": entry.server_id, "seq": entry.seq})
            self.stays, self.signals = Stays(), Signals()
        return reading

    def is_own(self, entry: RawEntry) -> bool:
        """True unless the server of another attempt sent the entry."""
        return entry.attempt in ("", self.attempt)

    def _apply(self, entry: RawEntry) -> ReadResult:
        match entry.kind:
            case EntryKind.DEADLINE:
                return self.advance(entry.received_ms)
            case EntryKind.RESUMED:
                self.deadlines_wait_until_ms = entry.received_ms + CATCH_UP_MS
                self.reader.mark_resumed(entry.received_ms)
            case EntryKind.CONFIGURING | EntryKind.CONFIGURED:
                self.reader.mark_setup(is_done=entry.kind == EntryKind.CONFIGURED)
            case EntryKind.ACTION | EntryKind.ACTION_SENT | EntryKind.ACTION_ANSWERED:
                return self._apply_action(entry)
            case EntryKind.OVER_QUOTA:
                self.cancel(CancelReason.LOG_QUOTA_EXCEEDED, entry.received_ms)
            case EntryKind.PREPARED | EntryKind.OBSERVED:
                pass
            case EntryKind.SET_ASIDE:
                return self.reader.lose_entry(entry.body, entry.received_ms)
            case _:
                return self._read(entry)
        return ReadResult([], [])

    def _apply_action(self, entry: RawEntry) -> ReadResult:
        """Apply an entry about an action; one that a later version wrote, and that cannot be read, changes nothing."""
        match entry.kind:
            case EntryKind.ACTION if (action := read_action_body(entry.body, ActionRequest)) is not None:
                self.signals.answer()
                return self.reader.request_action(action, entry.received_ms)
            case EntryKind.ACTION_SENT if (action_id := read_action_body(entry.body, str)) is not None:
                self.reader.match.note_action_sent(action_id)
            case EntryKind.ACTION_ANSWERED if (answer := read_action_body(entry.body, ActionAnswer)) is not None:
                return self.reader.answer_action(answer, entry.received_ms)
            case _:
                pass
        return ReadResult([], [])

    def advance(self, now_ms: int) -> ReadResult:
        """Fire the deadlines that have passed, at most MAX_DEADLINES; none that waits after a resume."""
        fired = ReadResult([], [])
        for _ in range(MAX_DEADLINES):
            due_ms = self.due_ms()
            if due_ms is None or due_ms > now_ms:
                break
            reading = self.reader.tick(now_ms)
            fired.events += reading.events
            fired.effects += reading.effects
        return fired

    def finish(self) -> list[Effect]:
        """Accept what only one source has reported so far: the server will send nothing else."""
        reader = self.reader
        effects = reader.read_held(None).effects
        due_ms = reader.interpreter.flow.next_deadline_ms()
        effects += [] if due_ms is None else reader.accept_unconfirmed_end(due_ms + reader.skipped_ms).effects
        over_ms = reader.match.reported.over_since_ms
        return effects if over_ms is None else effects + reader.end_series(over_ms + reader.skipped_ms).effects

    def cancel(self, reason: CancelReason, now_ms: int) -> None:
        """End the match for a reason that is not in its log."""
        self.reader.cancel(reason, now_ms)

    def drain_timeline(self) -> list[MapItem]:
        """Remove and return the timeline items that were added since the last call."""
        return self.reader.timeline.drain()

    def return_timeline(self, items: Sequence[MapItem]) -> None:
        """Put back drained items that could not be stored."""
        self.reader.timeline.waiting[:0] = items

    def align_timeline(self, map_number: int, stored: Sequence[tuple[int, bytes]]) -> None:
        """Continue the stored timeline of a map, given as numbers and JSON.

        A version with other types of items numbered it differently: then its items are found here by their content.
        Earlier versions stored other times for a fast game.
        """
        is_timed = self.reader.clock.is_real_time
        numbers = {_content(seq, line, is_timed=is_timed): seq for seq, line in stored}
        for item in reversed(self.pending_items(map_number)):
            if is_timed or isinstance(item, KillItem):  # the distance of a kill distinguishes it from others
                seq = numbers.get(_content(item.seq, msgspec.json.encode(item), is_timed=is_timed))
                if seq is not None:
                    self.reader.timeline.renumber(map_number, seq - item.seq)
                    return

    def pending_items(self, map_number: int) -> list[TimelineItem]:
        """The items of a map that `drain_timeline` would return."""
        return [waiting.item for waiting in self.reader.timeline.waiting if waiting.map_number == map_number]

    # --- read -----------------------------------------------------------------------------------------------------

    @property
    def match(self) -> Match:
        return self.reader.match

    @property
    def is_over(self) -> bool:
        """True once the match has ended."""
        return self.reader.match.phase is MatchPhase.OVER

    @property
    def may_map_end(self) -> bool:
        """True if the next lines may be those of the end of a map, or no map is live."""
        return self.reader.may_map_end

    @property
    def may_round_end_map(self) -> bool:
        """True if the map may end in the round that is played."""
        return self.reader.may_round_end_map

    @property
    def awaits_reports(self) -> bool:
        """True if a plugin may still report about the last round: its MVP, or its shots."""
        match, ledger = self.reader.match, self.reader.match.current_map.ledger
        has_mvp = any(record.number in ledger.mvps.plugin for record in ledger.rounds[-1:])
        awaits_mvp = uses_plugin_match(match.settings) and not has_mvp and not ledger.may_lack_end
        return awaits_mvp or self.reader.shots.awaits_last_round(match.current_map)

    @property
    def misplaced_shots(self) -> int:
        """Counts of shots that were ignored because it is uncertain which map they are about."""
        return self.reader.shots.misplaced

    @property
    def has_timeline_items(self) -> bool:
        """True if `drain_timeline` would return something."""
        return bool(self.reader.timeline.waiting)

    @property
    def line_counts(self) -> tuple[int, int]:
        """Log lines read so far, and how many of them are unknown."""
        return self.reader.lines_read, self.reader.lines_unknown

    def due_ms(self) -> int | None:
        """When the next deadline fires; None if there is none."""
        due_ms = self.reader.next_deadline_ms()
        return None if due_ms is None else self._postpone(due_ms)

    def observe_ms(self) -> int | None:
        """When the next entry is needed for the clock; None if no deadline waits for it."""
        return None if self.last_ms is None or self.due_ms() is None else self.last_ms + OBSERVE_MS

    def wake_ms(self) -> int | None:
        """The earlier of `due_ms` and `observe_ms`."""
        due_ms = self.due_ms()
        return due_ms if due_ms is None or self.last_ms is None else min(due_ms, self.last_ms + OBSERVE_MS)

    def may_wait(self, now_ms: int) -> bool:
        """True if another resume would still postpone the next deadline."""
        due_ms = self.reader.next_deadline_ms()
        return due_ms is not None and now_ms < due_ms + MAX_WAIT_MS

    def state(self) -> LiveState:
        """What callers see of the match."""
        return LiveState.of(self.progress(), msgspec.json.encode(live_match(self.match)))

    def progress(self) -> MatchProgress:
        return progress_of(
            self.match,
            self.stays,
            self.signals,
            heard_ms=self.heard_ms,
            deadline=self._next_deadline(),
            skipped_ms=self.reader.skipped_ms,
        )

    def _next_deadline(self) -> tuple[int, WaitingFor] | None:
        """The earliest deadline that callers see, in the time of our clock; None if there is none."""
        found = next_deadline(self.match)
        return None if found is None else (self._postpone(found[0] + self.reader.skipped_ms), found[1])

    def _postpone(self, due_ms: int) -> int:
        """When a deadline fires at the earliest: it may have to wait after a resume."""
        return max(due_ms, min(self.deadlines_wait_until_ms, due_ms + MAX_WAIT_MS))

    def result(self) -> bytes:
        """The result of a finished match, as JSON."""
        return msgspec.json.encode(build_result(self.reader.match))

    def _follow_clock(self, received_ms: int) -> None:
        """Exclude what the deadlines must not count: time without entries beyond a limit, and changes of the clock."""
        if self.last_ms is None:
            self._follow_start(received_ms)
            return
        step_ms = received_ms - self.last_ms
        # Within the limit, entries may be stored in another order than they were received.
        if step_ms > MAX_STEP_MS:
            self.reader.skipped_ms += step_ms - MAX_STEP_MS
        elif step_ms < -MAX_STEP_MS:
            self.reader.skipped_ms += step_ms
        else:
            received_ms = max(received_ms, self.last_ms)
        self.last_ms = received_ms

    def _follow_start(self, received_ms: int) -> None:
        """Give players the full time to join if starting the server took long, or if the clock was set meanwhile."""
        match = self.reader.match
        start_ms = received_ms - (received_ms if match.allocated_at_ms is None else match.allocated_at_ms)
        if not 0 <= 2 * start_ms <= to_ms(match.timers.join_s):
            self.reader.skipped_ms += start_ms
        self.last_ms = received_ms

    def _read(self, entry: RawEntry) -> ReadResult:
        match entry.kind:
            case EntryKind.LOG:
                post = read_post(_STRINGS.decode(entry.headers), entry.body, received_ms=entry.received_ms)
                return self.reader.read_post(post)
            case EntryKind.REPORT:
                return self.reader.read_report(entry.body, entry.received_ms)
            case EntryKind.SHOTS:
                with suppress(ShotsReportError):
                    return self.reader.read_shots(read_shots_report(entry.body), entry.received_ms)
                return ReadResult([], [])
            case EntryKind.PRESENCE:
                return self.reader.read_presence(_STRINGS.decode(entry.body), entry.received_ms)
            case _:
                whole = ReadResult([], [])
                for found in read_detections(entry.body):
                    reading = self.reader.read_detection(found, entry.received_ms)
                    whole.events += reading.events
                    whole.effects += reading.effects
                return whole
