"""Show a match as a whole: its settings, its progress, the start of its server, and its callbacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import asdict, replace

from matchpod.core.effects import CancelReason
from matchpod.core.iso_dates import read_date
from matchpod.core.match.series import maps_won
from matchpod.core.model import GameSettings, Winner
from matchpod.core.requests.callback_query import CallbacksQuery, CallbackState
from matchpod.core.requests.history_query import read_server_id
from matchpod.core.rulings import Ruling
from matchpod.core.server_status import ServerPhase
from matchpod.core.stored.stored_settings import read_settings
from matchpod.core.views.attention import Attention, Situation, attention_of
from matchpod.core.views.match_progress import MatchProgress
from matchpod.core.views.progress import PublicPhase, WaitingFor
from matchpod.core.views.wall_groups import WallGroup, group_of_ended
from matchpod.ports import Clock, Database
from matchpod.service.access.actor_names import actor_names
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.principals import Principal, require_own
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.live import LocalMatches, logged_if_failed
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.reading.callbacks import CallbackItem, callback_item
from matchpod.service.reading.deathmatch_winners import DeathmatchWinner, read_winner
from matchpod.service.reading.endings import ending_of, ruling_of
from matchpod.service.reading.match_head import MatchHead, summarize, visible_row
from matchpod.service.reading.match_lists import MatchMap, winner_of
from matchpod.service.regions.regions import Regions
from matchpod.service.row_views import time_text, view_of
from matchpod.storage import acknowledgements, callback_lists, history, map_events, outbox, raw_log, rulings, servers
from matchpod.storage.outbox import OutcomeRow
from matchpod.storage.servers import ServerRow

NEWEST: Final = 20
"""Number of newest entries, of any kind, that are searched for the last log lines of a server."""
MAX_LAST_LINES: Final = 40
MAX_LAST_BYTES: Final = 8 * 1024


class AcknowledgedBy(msgspec.Struct, frozen=True, kw_only=True):
    """Who acknowledged a match, by name, and when."""

    at_ms: int
    who: str
    """The name of the actor: of the key (or its first characters), of the session's person, or `a link`. Empty for
    matches of earlier versions."""


class MadeRuling(msgspec.Struct, frozen=True, kw_only=True):
    """A ruling, the names of the actors who made and withdrew it, and when it was withdrawn."""

    ruling: Ruling
    who: str
    withdrawn_at: str | None
    withdrawn_by: str


class MatchDetail(MatchHead, frozen=True, kw_only=True):
    """All that is shown about a match, from its creation to its callback."""

    is_fast: bool
    """True if games in the region run faster than real time, as in a sandbox."""
    settings: GameSettings
    pending_until_ms: int | None
    tries: int
    progress: MatchProgress | None
    """The progress of the match; None if its server is not running, or if a bug prevents building the progress."""
    maps: tuple[MatchMap, ...]
    callbacks: tuple[CallbackItem, ...]
    attention: tuple[Attention, ...]
    has_result: bool
    deathmatch_winner: DeathmatchWinner | None
    """Who won a deathmatch that has finished; None in other modes."""
    acknowledged: AcknowledgedBy | None
    """Who acknowledged that the match has no result; None if it was not canceled or is not acknowledged."""

    @property
    def has_ended(self) -> bool:
        """True once the outcome of the match is stored. Its phase may be `ended` shortly before that."""
        return self.ended_at_ms is not None

    @property
    def maps_won(self) -> tuple[int, int]:
        """Number of maps that each team has won, including maps that the team was given at creation."""
        if self.progress is not None:
            return self.progress.maps_won
        return self.settings.maps_won.plus(*maps_won([Winner(played.winner) for played in self.maps if played.winner]))

    @property
    def winner(self) -> Winner | None:
        """The team that won, or a tie. None before the match has finished, if canceled, and in a free-for-all."""
        return winner_of(self, self.maps, self.maps_won, self.deathmatch_winner)

    @property
    def is_unacknowledged(self) -> bool:
        """True if the match failed and is not acknowledged."""
        return self.has_ended and self.acknowledged is None and group_of_ended(self.reason) is WallGroup.FAILED


class FailureDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Details about a failed server, for people who may read its log. Other callers get only a sentence."""

    error: str | None
    """The recorded error, with the last output of a server that did not start. None if there was no server failure."""
    last_lines: tuple[str, ...]
    """The last lines of the server's log."""


class MatchDetails:
    """Reads the details of matches. Each organization can read only its own matches."""

    def __init__(
        self, *, db: Database, clock: Clock, regions: Regions, live: LocalMatches, remote: RemoteMatches
    ) -> None:
        self._db = db
        self._clock = clock
        self._regions = regions
        self._live = live
        self._remote = remote

    @unavailable_on_outage
    async def get(self, principal: Principal, server_id: str) -> MatchDetail:
        row = await self._own_row(principal, server_id)
        progress = await self._progress(row)
        maps = await history.maps_of(self._db, row.id)
        region = self._regions.get(row.region)
        outcome: OutcomeRow | None = None
        callbacks: tuple[CallbackItem, ...] = ()
        if row.has_ended:
            outcome = await outbox.outcome_of(self._db, row.id)
            callbacks = await self._callbacks(row)
        is_canceled = row.has_ended and row.reason is not None
        situation = situation_of(row, progress, self._clock.now_ms(), silent_ms=self._regions.silent.since_ms(row.id))
        has_given_up = any(callback.state is CallbackState.GIVEN_UP for callback in callbacks)
        summary = summarize(
            visible_row(row, principal.audience), await ending_of(self._db, row.id, row), progress=progress
        )
        settings = read_settings(row.settings)
        return MatchDetail(
            **asdict(summary),
            is_fast=region is not None and region.speed != 1.0,
            settings=settings,
            pending_until_ms=row.pending_until_ms if row.phase is ServerPhase.PENDING else None,
            tries=row.tries,
            progress=progress,
            maps=tuple(view_of(MatchMap, played) for played in maps),
            callbacks=callbacks,
            attention=attention_of(replace(situation, is_callback_given_up=has_given_up)),
            has_result=outcome is not None and outcome.result is not None,
            deathmatch_winner=None if outcome is None else read_winner(outcome.result, settings),
            acknowledged=await acknowledged_by(self._db, row.id) if is_canceled else None,
        )

    @unavailable_on_outage
    async def new_items(self, map_id: str, after_seq: int, *, limit: int) -> list[tuple[int, bytes]]:
        """Return the number and JSON of the next items of a map's timeline. The caller has checked who owns the map."""
        return await map_events.read_after(self._db, map_id, after_seq, limit=limit)

    @unavailable_on_outage
    async def failure(self, principal: Principal, server_id: str) -> FailureDetail:
        """Return why the server of a match failed: the recorded error, and the last lines of the server's log."""
        row = await self._own_row(principal, server_id)
        newest = await raw_log.newest_of_kind(self._db, row.id, EntryKind.LOG, count=NEWEST)
        bodies = [entry.body for entry in reversed(newest) if entry.attempt in ("", row.attempt)]
        # Errors with other reasons are about the region, and only for operators.
        error = row.error if row.reason in (CancelReason.SERVER_FAILED, CancelReason.SERVER_LOST) else None
        return FailureDetail(error=error, last_lines=last_lines(bodies))

    @unavailable_on_outage
    async def rulings(self, principal: Principal, server_id: str) -> list[MadeRuling]:
        """Return all rulings that were made on the match, newest first."""
        row = await self._own_row(principal, server_id)
        found = await rulings.of_server(self._db, row.id)
        names = await actor_names(self._db, [actor for made in found for actor in (made.ruled_by, made.withdrawn_by)])
        return [
            MadeRuling(
                ruling=ruling_of(made),
                who=names.get(made.ruled_by, made.ruled_by),
                withdrawn_at=time_text(made.withdrawn_at_ms),
                withdrawn_by=names.get(made.withdrawn_by or "", made.withdrawn_by or ""),
            )
            for made in found
        ]

    @unavailable_on_outage
    async def created_by(self, principal: Principal, server_id: str) -> str:
        """Return the name of the match's creator; empty if the caller may not see it, or if it is unknown."""
        row = visible_row(await self._own_row(principal, server_id), principal.audience)
        names = await actor_names(self._db, [row.created_by])
        return names.get(row.created_by or "", "")

    @unavailable_on_outage
    async def actors(self, actors: Iterable[str]) -> dict[str, str]:
        """Return the names of keys and sessions by id. The caller has checked that they may be shown."""
        found = set(actors)
        return {actor: actor for actor in found} | await actor_names(self._db, found)

    async def _own_row(self, principal: Principal, server_id: str) -> ServerRow:
        found = await servers.get(self._db, server_id) if read_server_id(server_id) else None
        return require_own(principal, found, "match")

    async def _callbacks(self, row: ServerRow) -> tuple[CallbackItem, ...]:
        _, found = await callback_lists.list_page(self._db, row.org_id, CallbacksQuery(server_id=row.id))
        return tuple(callback_item(callback) for callback in found)

    async def _progress(self, row: ServerRow) -> MatchProgress | None:
        if row.phase is not ServerPhase.RUNNING:
            return None
        return await read_progress(row, live=self._live, remote=self._remote)


def last_lines(parts: Sequence[bytes]) -> tuple[str, ...]:
    """Return the last lines of a log (limited in number and size), without control characters."""
    end = b"".join(parts)[-MAX_LAST_BYTES - 1 :]
    if len(end) > MAX_LAST_BYTES:
        end = end.partition(b"\n")[2] or end  # the first line was cut
    lines = [line for line in end.decode("utf-8", errors="replace").splitlines() if line.strip()]
    return tuple("".join(c if c.isprintable() else " " for c in line) for line in lines[-MAX_LAST_LINES:])


async def read_progress(row: ServerRow, *, live: LocalMatches, remote: RemoteMatches) -> MatchProgress | None:
    """Return a running match's progress: from memory if this process drives the match, else from its stored log.

    None if the progress cannot be built because of a bug.
    """
    local = live.get(row.id)
    with logged_if_failed(row.id):
        return local.progress() if local is not None else await remote.progress(row)
    return None


def situation_of(row: ServerRow, progress: MatchProgress | None, now_ms: int, *, silent_ms: int | None) -> Situation:
    """Return the facts that decide whether a match needs attention, from its row and, if known, its progress."""
    pending_ms = row.created_at_ms if row.phase is ServerPhase.PENDING else None
    if progress is None:
        return Situation(
            now_ms=now_ms, phase=row.public_phase, silent_ms=silent_ms, pending_ms=pending_ms, tries=row.tries
        )
    is_joining, missing = progress.waiting_for is WaitingFor.PLAYERS_TO_JOIN, len(progress.missing)
    return Situation(
        now_ms=now_ms,
        phase=progress.phase,
        missing=missing,
        left_ms=_left_ms(progress) if missing and progress.phase is PublicPhase.LIVE else (),
        is_loading=is_joining and bool(progress.roster) and not missing,
        join_until_ms=progress.until_ms if is_joining else None,
        silent_ms=silent_ms,
        paused_ms=progress.paused_ms,
        called_ms=progress.called_ms,
        call=progress.call,
        pending_ms=pending_ms,
        tries=row.tries,
        lost_rounds=progress.lost_rounds,
        detections=progress.detections,
    )


def _left_ms(progress: MatchProgress) -> tuple[int, ...]:
    """Return the times at which the missing players left, as far as these are known."""
    since = (player.since for player in progress.missing if player.since is not None)
    return tuple(left.from_ms for left in map(read_date, since) if left is not None)


async def acknowledged_by(db: Database, server_id: str) -> AcknowledgedBy | None:
    """Return who acknowledged a match, and when; None if it is not acknowledged."""
    found = await acknowledgements.of_server(db, server_id)
    if found is None:
        return None
    by = found.acknowledged_by or ""
    return AcknowledgedBy(at_ms=found.acknowledged_at_ms, who=(await actor_names(db, [by])).get(by, by))
