"""What does a stored entry do to a match? The same for a live match, a restart and a look from another process.

Time is part of the fold: before an entry is read, the match's clock is moved to when it came, so that an alarm which
was due in between fires at its place and not at ours. Whoever picks a match up again stores that as an entry too:
nobody listened before it, so no alarm fires until the server had the time to tell what happened meanwhile.
"""

from __future__ import annotations

import functools
from typing import Final

import msgspec

from matchpod.core.effects import Effect
from matchpod.core.model import GameSettings
from matchpod.core.timers import Timers, to_ms
from matchpod.core.type_fingerprint import type_fingerprint
from matchpod.cs2.anticheat_reports import read_detections
from matchpod.cs2.log_batches import read_post
from matchpod.cs2.match_reader import MatchReader, Reading
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow

LOG: Final = "log"
REPORT: Final = "report"
DETECTION: Final = "detection"
RESUMED: Final = "resumed"
CONFIGURING: Final = "configuring"
"""The server is being set up: what is played from here on does not count."""
CONFIGURED: Final = "configured"
"""Our settings hold: what is played from here on counts."""
ENDED: Final = "ended"
"""The match has its outcome: what comes after counts no more, whoever reads it and when."""
PRESENCE: Final = "presence"
"""Who is on the server, by its console: names by player id."""

HEARING_MS: Final = 10_000
"""A server sends again what was not taken from it; after this long it is taken to have caught up."""

LATE_MS: Final = 2_000
"""An alarm that is noticed so late, or after a look into the database that took so long, does not fire at once: the
machine or the database stood still, and servers send again what was not taken from them."""

MAX_ALARMS: Final = 100
"""Alarms that may be due at once. Each is one of seven, and most end the match."""

_TEXTS: Final = msgspec.json.Decoder(dict[str, str])


def settings_of(row: ServerRow, server_password: str | None = None) -> GameSettings:
    """What is played on a server; the password is stored apart, sealed."""
    settings = msgspec.json.decode(row.settings, type=GameSettings)
    return msgspec.structs.replace(settings, server_password=server_password) if server_password else settings


class SnapshotVersionError(Exception):
    """A snapshot was written by another version of the types, or is damaged; the log has all that it says."""


class _Envelope(msgspec.Struct, array_like=True):
    """What a snapshot holds. An array: versions that knew no envelope expect an object and reject it."""

    fingerprint: bytes
    fold: msgspec.Raw


@functools.cache
def fold_fingerprint() -> bytes:
    """Fingerprint of all types that a snapshot is made of."""
    return type_fingerprint(Fold)


class Fold(msgspec.Struct):
    """A match being read, and since when somebody listens; the whole of it survives a snapshot."""

    reader: MatchReader
    deaf_until_ms: int = 0
    is_real_time: bool = True
    """False in a sandbox, whose game time runs away from ours: a growing distance is no change of the time zone."""

    @classmethod
    def begin(cls, row: ServerRow, speed: float) -> Fold:
        """A match whose server has said nothing yet."""
        reader = MatchReader.create(settings_of(row), row.created_at_ms, Timers().at_speed(speed))
        # A server that took half of their time to start leaves players too little: they get it from there.
        allocated_ms = row.allocated_at_ms or row.created_at_ms
        is_late = 2 * (allocated_ms - row.created_at_ms) > to_ms(reader.match.timers.join_s)
        reader.match.allocated(allocated_ms, was_pending=row.was_pending or is_late)
        return cls(reader, is_real_time=speed == 1.0)

    def to_bytes(self) -> bytes:
        """The state of a snapshot, with the fingerprint of the types that wrote it."""
        return msgspec.msgpack.encode(_Envelope(fold_fingerprint(), msgspec.Raw(msgspec.msgpack.encode(self))))

    @classmethod
    def from_bytes(cls, state: bytes) -> Fold:
        """Read the state of a snapshot; SnapshotVersionError when other types than today's wrote it."""
        try:
            envelope = msgspec.msgpack.decode(state, type=_Envelope)
        except msgspec.MsgspecError as exc:
            raise SnapshotVersionError(f"it carries no fingerprint: {exc}") from exc
        if envelope.fingerprint != fold_fingerprint():
            raise SnapshotVersionError(f"its types are {envelope.fingerprint.hex()}, not {fold_fingerprint().hex()}")
        try:
            return msgspec.msgpack.decode(envelope.fold, type=cls)
        except msgspec.MsgspecError as exc:
            raise SnapshotVersionError(f"it cannot be decoded: {exc}") from exc

    def take(self, entry: RawEntry) -> Reading:
        """Take in one stored entry, and what fell due before it."""
        if entry.kind == RESUMED:
            self.deaf_until_ms = entry.received_ms + HEARING_MS
            self.reader.match.presence.doubt(entry.received_ms)
            return Reading([], [])
        if entry.kind == ENDED:
            return Reading([], [])
        effects = self.advance(entry.received_ms)
        if entry.kind in (CONFIGURING, CONFIGURED):
            self.reader.configure(is_done=entry.kind == CONFIGURED)
            return Reading([], effects)
        reading = self._read(entry)
        return Reading(reading.events, effects + reading.effects) if effects else reading

    def is_late(self, entry: RawEntry) -> bool:
        """True for an entry that came long after an alarm which nobody noticed: it would fire the alarm."""
        due_ms = self.next_deadline_ms()
        return due_ms is not None and entry.kind not in (RESUMED, ENDED) and entry.received_ms - due_ms > LATE_MS

    def sleep_through(self, entry: RawEntry) -> None:
        """Nobody listened before this entry."""
        self.take(msgspec.structs.replace(entry, kind=RESUMED))

    def advance(self, now_ms: int) -> list[Effect]:
        """Let time pass, alarm by alarm."""
        effects: list[Effect] = []
        if now_ms < self.deaf_until_ms:
            return effects
        for _ in range(MAX_ALARMS):
            due_ms = self.reader.next_deadline_ms()
            if due_ms is None or due_ms > now_ms:
                break
            effects += self.reader.tick(now_ms).effects
        return effects

    def settle(self) -> list[Effect]:
        """The server says no more: believe what it had said once."""
        due_ms = self.reader.interpreter.flow.next_deadline_ms()
        effects = [] if due_ms is None else self.reader.settle(due_ms).effects
        over_ms = self.reader.match.reported.over_since_ms
        return effects if over_ms is None else effects + self.reader.end_series(over_ms).effects

    def cancel(self, reason: str, now_ms: int) -> None:
        """The match ended without its server's doing."""
        self.reader.match.cancel(reason, now_ms)
        self.reader.timeline.look(self.reader.match)

    def next_deadline_ms(self) -> int | None:
        """When `advance` must be called at the latest."""
        due_ms = self.reader.next_deadline_ms()
        return None if due_ms is None else max(due_ms, self.deaf_until_ms)

    def _read(self, entry: RawEntry) -> Reading:
        if entry.kind == LOG:
            post = read_post(_TEXTS.decode(entry.headers), entry.body, received_ms=entry.received_ms)
            return self.reader.read_post(post if self.is_real_time else msgspec.structs.replace(post, sent_ms=None))
        if entry.kind == REPORT:
            return self.reader.read_report(entry.body, entry.received_ms)
        if entry.kind == PRESENCE:
            return self.reader.read_presence(_TEXTS.decode(entry.body), entry.received_ms)
        whole = Reading([], [])
        for found in read_detections(entry.body):
            reading = self.reader.read_detection(found, entry.received_ms)
            whole.events += reading.events
            whole.effects += reading.effects
        return whole
