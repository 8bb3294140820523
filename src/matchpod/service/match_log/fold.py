"""Apply stored entries to a match, in the same way for a live match, after a restart, and in another replica.

A deadline fires when its entry is applied. The runner appends this entry after the deadline has passed, so the log
shows which other entries came before the deadline. When a match is resumed, an entry is appended, too. Posts before
that entry may be missing, so deadlines wait until the server has had time to resend them. Deadlines count observed
time: a long gap in the log (an outage, or a clock that was set forward) counts as MAX_STEP_MS, and a clock that was set
back does not delay deadlines.
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
"""Time for which deadlines wait after a match was resumed. By then, the server has resent all unanswered posts."""

MAX_WAIT_MS: Final = 120_000
"""Maximum time by which a deadline is postponed, even if the match is resumed repeatedly. It allows for twelve resumes.
It is also longer than the postponement of a deadline that passed during an outage (MAX_STEP_MS plus CATCH_UP_MS)."""

MAX_STEP_MS: Final = 60_000
"""Maximum time between two consecutive entries that counts toward deadlines. Entries are usually closer together: the
liveness probe sends a command to a server that has logged nothing for 10 s, and the server logs the command."""

OBSERVE_MS: Final = 30_000
"""Time without an entry after which the process that drives the match appends an OBSERVED entry, so that this time
counts toward deadlines."""

LATE_MS: Final = 2_000
"""A deadline that is noticed over LATE_MS late, or after a database access that took longer, does not fire at once:
the machine or the database was stalled, and servers are about to resend their posts."""

MAX_DEADLINES: Final = 100
"""Maximum number of deadlines that a call of `advance` fires. This is a safeguard: only a few are ever due at a
time."""

_SPEED_CVARS: Final = frozenset({"sim_speed", "sim_lockstep"})

_TIMESTAMP: Final = re.compile(rb'"timestamp":"[^"]*",')

_COMPRESSED: Final = b"\x78"
"""The first byte of zlib output. An uncompressed snapshot (a msgpack array) begins with another byte."""

_STRINGS: Final = msgspec.json.Decoder(dict[str, str])

_log = logging.getLogger(__name__)


def settings_of(row: ServerRow, server_password: str | None = None) -> GameSettings:
    """Return the game settings of a server row.

    The password of the server is not part of the stored settings. A caller that needs it passes it decrypted.
    """
    settings = read_settings(row.settings)
    return msgspec.structs.replace(settings, server_password=server_password) if server_password else settings


def _sets_speed(settings: GameSettings) -> bool:
    """True if the match's own console variables change the speed of a simulated server."""
    return any(cvar.name.lower() in _SPEED_CVARS for cvar in settings.custom_cvars)


def _is_only_combat(entry: RawEntry, reading: ReadResult) -> bool:
    """True if all events of a log post are combat events, so that no player joined or left. Nearly all posts are."""
    return entry.kind == EntryKind.LOG and COMBAT_EVENTS.issuperset(map(type, reading.events))


def _content(seq: int, item: bytes, *, is_timed: bool) -> bytes:
    """Return the JSON of a timeline item without its number and, unless `is_timed`, without its time."""
    content = item.replace(b'"seq":%d,' % seq, b"", 1)
    return content if is_timed else _TIMESTAMP.sub(b"", content, 1)


class SnapshotVersionError(Exception):
    """A snapshot is damaged, or a version with different types wrote it. The log must be replayed instead."""


class _Envelope(msgspec.Struct, array_like=True):
    """A stored snapshot. It is an array, so that versions that expect an object (without an envelope) reject it."""

    fingerprint: bytes
    fold: msgspec.Raw


@functools.cache
def fold_fingerprint() -> bytes:
    """Return the fingerprint of all types that a snapshot consists of."""
    return type_fingerprint(Fold)


class Fold(msgspec.Struct):
    """The state of a match after some of its entries. A snapshot contains the complete state."""

    reader: MatchReader
    attempt: str = ""
    """The attempt of the server on which the match is played. Entries of other attempts do not count."""
    deadlines_wait_until_ms: int = 0
    last_ms: int | None = None
    """When the last entry was received."""
    heard_ms: int | None = None
    """When the last entry from the server or its plugins was received."""
    stays: Stays = msgspec.field(default_factory=Stays)
    signals: Signals = msgspec.field(default_factory=Signals)

    @classmethod
    def begin(cls, row: ServerRow, speed: float) -> Fold:
        """Return the state of the match before its first entry."""
        settings = settings_of(row)
        reader = MatchReader.create(settings, row.created_at_ms, Timers.of(settings).at_speed(speed))
        # Players get the full join time after the allocation if the allocation took more than half of the join time, or
        # if the clock was set back during the allocation.
        allocated_ms = row.allocated_at_ms or row.created_at_ms
        is_late = not 0 <= 2 * (allocated_ms - row.created_at_ms) <= to_ms(reader.match.timers.join_s)
        reader.match.set_allocated(allocated_ms, was_pending=row.was_pending or is_late)
        if row.log_from_seq:
            reader.match.disturb(allocated_ms)  # the match had another server before
        reader.clock.is_real_time = speed == 1.0 and not _sets_speed(reader.match.settings)
        return cls(reader, row.attempt)

    def dump(self) -> bytes:
        """Encode the state as a snapshot with the fingerprint of its types, compressed to a quarter."""
        encoded = msgspec.msgpack.encode(_Envelope(fold_fingerprint(), msgspec.Raw(msgspec.msgpack.encode(self))))
        return zlib.compress(encoded, level=1)

    @classmethod
    def load(cls, state: bytes) -> Fold:
        """Decode a snapshot; SnapshotVersionError if it is damaged, or if a version with different types wrote it."""
        try:
            # Earlier versions did not compress snapshots.
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
        except Exception:  # noqa: BLE001 - stays and signals are only for views, so the entry still counts
            _log.exception("match signals could not be updated", extra={"server_id": entry.server_id, "seq": entry.seq})
            self.stays, self.signals = Stays(), Signals()
        return reading

    def is_own(self, entry: RawEntry) -> bool:
        """True unless the entry was sent by the server of another attempt."""
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
        """Apply an entry about an action. Ignore an entry of a later version that cannot be decoded."""
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
        """Fire the deadlines that have passed and are not postponed, but at most MAX_DEADLINES."""
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
        """Accept the end of a map or series that only one source has reported, because no further entry will follow."""
        reader = self.reader
        effects = reader.read_held(None).effects
        due_ms = reader.interpreter.flow.next_deadline_ms()
        effects += [] if due_ms is None else reader.accept_unconfirmed_end(due_ms + reader.skipped_ms).effects
        over_ms = reader.match.reported.over_since_ms
        return effects if over_ms is None else effects + reader.end_series(over_ms + reader.skipped_ms).effects

    def cancel(self, reason: CancelReason, now_ms: int) -> None:
        """Cancel the match for a reason that does not follow from its log."""
        self.reader.cancel(reason, now_ms)

    def drain_timeline(self) -> list[MapItem]:
        """Remove and return the timeline items that were added since the last call."""
        return self.reader.timeline.drain()

    def return_timeline(self, items: Sequence[MapItem]) -> None:
        """Put back items that `drain_timeline` has returned, because they could not be stored."""
        self.reader.timeline.waiting[:0] = items

    def align_timeline(self, map_number: int, stored: Sequence[tuple[int, bytes]]) -> None:
        """Renumber the new items of a map to continue its timeline; `stored` has each stored item's number and JSON.

        Another version may have numbered the items differently, so an item is found in the stored timeline by its
        content. Unless the game runs in real time, the times of items are ignored, because earlier versions stored
        different times.
        """
        is_timed = self.reader.clock.is_real_time
        numbers = {_content(seq, line, is_timed=is_timed): seq for seq, line in stored}
        for item in reversed(self.pending_items(map_number)):
            if is_timed or isinstance(item, KillItem):  # without times, only kills can be told apart (by distance)
                seq = numbers.get(_content(item.seq, msgspec.json.encode(item), is_timed=is_timed))
                if seq is not None:
                    self.reader.timeline.renumber(map_number, seq - item.seq)
                    return

    def pending_items(self, map_number: int) -> list[TimelineItem]:
        """Return the items of a map that were added since the last call of `drain_timeline`."""
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
        """True if the next log lines may end the map, or if no map is live."""
        return self.reader.may_map_end

    @property
    def may_round_end_map(self) -> bool:
        """True if the current round may end the map."""
        return self.reader.may_round_end_map

    @property
    def awaits_reports(self) -> bool:
        """True if a plugin may still report the MVP or the shots of the last round."""
        match, ledger = self.reader.match, self.reader.match.current_map.ledger
        has_mvp = any(record.number in ledger.mvps.plugin for record in ledger.rounds[-1:])
        awaits_mvp = uses_plugin_match(match.settings) and not has_mvp and not ledger.may_lack_end
        return awaits_mvp or self.reader.shots.awaits_last_round(match.current_map)

    @property
    def misplaced_shots(self) -> int:
        """The number of shot counts that were ignored because it is unknown which map they belong to."""
        return self.reader.shots.misplaced

    @property
    def has_timeline_items(self) -> bool:
        """True if timeline items were added since the last call of `drain_timeline`."""
        return bool(self.reader.timeline.waiting)

    @property
    def line_counts(self) -> tuple[int, int]:
        """The number of log lines that were read so far, and how many of them are unknown."""
        return self.reader.lines_read, self.reader.lines_unknown

    def due_ms(self) -> int | None:
        """Return the time of the next deadline; None if there is no deadline."""
        due_ms = self.reader.next_deadline_ms()
        return None if due_ms is None else self._postpone(due_ms)

    def observe_ms(self) -> int | None:
        """Return the time to append an OBSERVED entry if no other arrives; None without a deadline or any entry."""
        return None if self.last_ms is None or self.due_ms() is None else self.last_ms + OBSERVE_MS

    def wake_ms(self) -> int | None:
        """Return the earlier of `due_ms` and `observe_ms`; None if there is no deadline."""
        due_ms = self.due_ms()
        return due_ms if due_ms is None or self.last_ms is None else min(due_ms, self.last_ms + OBSERVE_MS)

    def may_wait(self, now_ms: int) -> bool:
        """True if resuming the match now would postpone the next deadline."""
        due_ms = self.reader.next_deadline_ms()
        return due_ms is not None and now_ms < due_ms + MAX_WAIT_MS

    def state(self) -> LiveState:
        """Return the state of the match as callers see it."""
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
        """Return the earliest deadline that callers see, by the service's clock; None if there is no such deadline."""
        found = next_deadline(self.match)
        return None if found is None else (self._postpone(found[0] + self.reader.skipped_ms), found[1])

    def _postpone(self, due_ms: int) -> int:
        """Return the earliest time for a deadline to fire: `due_ms`, or later if the match was resumed recently."""
        return max(due_ms, min(self.deadlines_wait_until_ms, due_ms + MAX_WAIT_MS))

    def result(self) -> bytes:
        """Return the result of a finished match, as JSON."""
        return msgspec.json.encode(build_result(self.reader.match))

    def _follow_clock(self, received_ms: int) -> None:
        """Exclude time that must not count toward deadlines: long gaps (beyond MAX_STEP_MS) and clock changes."""
        if self.last_ms is None:
            self._follow_start(received_ms)
            return
        step_ms = received_ms - self.last_ms
        # Small negative steps are normal, because entries are not always stored in the order in which they were
        # received.
        if step_ms > MAX_STEP_MS:
            self.reader.skipped_ms += step_ms - MAX_STEP_MS
        elif step_ms < -MAX_STEP_MS:
            self.reader.skipped_ms += step_ms
        else:
            received_ms = max(received_ms, self.last_ms)
        self.last_ms = received_ms

    def _follow_start(self, received_ms: int) -> None:
        """Give players the full time to join if the server's start took long, or if the clock was set meanwhile."""
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
