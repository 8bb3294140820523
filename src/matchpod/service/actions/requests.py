"""Accept requests for actions on matches, and show the state of requested actions.

A request is stored twice: as a row for readers, and as an entry of the match's log. The process that drives the match
applies the entry like any other. It is notified of the entry, but would also find it without a notification.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from contextlib import suppress

import msgspec

from matchpod.core.errors import ActionNotPossibleError, ForbiddenError, NotFoundError
from matchpod.core.match.actions import ActionRequest, Obstacle
from matchpod.core.requests.action_request import read_action_id, read_action_request
from matchpod.core.requests.history_query import read_server_id
from matchpod.core.requests.json_limits import decode_json
from matchpod.core.server_status import ServerPhase
from matchpod.cs2.match_reader import MatchReader
from matchpod.ports import Clock, Database, DatabaseError, DuplicateError, NothingChangedError
from matchpod.service.access.audit import Action, Audit
from matchpod.service.actions.views import (
    ActionView,
    MatchActionsView,
    action_view,
    possible_actions,
    restorable_rounds,
)
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.identifiers import ID_RANDOM_BYTES, new_action_id
from matchpod.service.identity.principals import Principal, require_own
from matchpod.service.match_log.entries import EntryKind, NewEntry, action_body, statements_of, stored_entry
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.request_keys import check_key, made_before, used_key
from matchpod.service.streams import organization_event_lines
from matchpod.storage import match_actions, organization_events, servers
from matchpod.storage.announcements import announce_entry
from matchpod.storage.match_actions import ActionRow
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import Idempotency, ServerRow

_ENDED = Obstacle(text="The match has ended.")
_NO_SERVER = Obstacle(text="The server of the match is not running yet.", retry_after_s=5)

_log = logging.getLogger(__name__)


class AcceptedAction(msgspec.Struct, frozen=True):
    """The action of an accepted request."""

    action: ActionView
    is_replayed: bool = False
    """True if an earlier request with the same idempotency key created the action."""


class ActionRequests:
    """Stores requests for actions from callers, and from operators on the command line."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        audit: Audit,
        *,
        live: LocalMatches | None = None,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._db, self._clock, self._audit = db, clock, audit
        self._live = live or LocalMatches()
        self._random_bytes = random_bytes

    def new_id(self) -> str:
        return new_action_id(self._clock.now_ms(), self._random_bytes(ID_RANDOM_BYTES))

    async def store(
        self,
        row: ServerRow,
        action: ActionRequest,
        *,
        created_by: str,
        actor: str,
        org_id: str | None,
        used: Idempotency | None = None,
    ) -> ActionRow:
        """Store a request; ActionNotPossibleError if the match has ended.

        Raise DuplicateError if a concurrent request has used the same idempotency key.
        """
        now_ms = self._clock.now_ms()
        stored = ActionRow(
            id=action.id,
            server_id=row.id,
            requested_at_ms=now_ms,
            changed_at_ms=now_ms,
            created_by=created_by,
            request=msgspec.json.encode(action),
        )
        entry = NewEntry(kind=EntryKind.ACTION, received_ms=now_ms, body=action_body(action))
        event = organization_event_lines.action_changed(row, action, stored.state, at_ms=now_ms)
        asked = Action.ACTION_REQUESTED
        statements = [
            *statements_of(row.id, entry),
            match_actions.insert(stored),
            *([] if used is None else servers.insert_key(used, action.id)),
            self._audit.entry(asked, org_id=org_id, actor=actor, target=row.id, detail=_describe(action)),
            *organization_events.append(row.org_id, [event], at_ms=now_ms),
        ]
        try:
            numbers, *_ = await self._db.write(statements)
        except NothingChangedError:
            raise _not_possible(_ENDED) from None
        await self._announce(stored_entry(row.id, msgspec.convert(numbers[0][0], int), entry))
        _log.info("action requested", extra={"server_id": row.id, "action": action.type.value, "action_id": action.id})
        return stored

    async def _announce(self, entry: RawEntry) -> None:
        """Notify the process that drives the match. If that fails, the process finds the entry a little later."""
        live = self._live.publish(entry)
        if live is not None:
            live.woken.set()
        elif self._db.is_postgres:
            with suppress(DatabaseError):
                await announce_entry(self._db, entry.server_id, entry.seq)


class Actions:
    """Accepts and shows actions on matches. Each organization can access only its own matches."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        live: LocalMatches,
        remote: RemoteMatches,
        requests: ActionRequests,
    ) -> None:
        self._db, self._clock = db, clock
        self._live, self._remote = live, remote
        self._requests = requests

    @unavailable_on_outage
    async def request(self, principal: Principal, server_id: str, body: bytes, key: str | None) -> AcceptedAction:
        """Accept a request for an action, or return the action of an earlier request with the same key and body."""
        if not principal.may_act:
            raise ForbiddenError("This requires permission to act on matches.")
        check_key(key)
        decoded = decode_json(body)
        action = read_action_request(decoded, self._requests.new_id())
        row = await self._own_row(principal, server_id)
        used = used_key(principal.org_id, key, decoded, self._clock.now_ms(), place=f"{row.id}/actions")
        if (earlier := await self._earlier(row, used)) is not None:
            return earlier
        reader = await self._reader(row)
        obstacle = reader if isinstance(reader, Obstacle) else reader.obstacle_to(action)
        if obstacle is not None or isinstance(reader, Obstacle):
            raise _not_possible(obstacle or _ENDED)
        point = next((point for point in reader.match.restorable() if point.round == action.round), None)
        try:
            stored = await self._requests.store(
                row,
                action,
                created_by=principal.key_id,
                actor=principal.actor,
                org_id=principal.org_id,
                used=used,
            )
        except DuplicateError:
            # A concurrent request used the same idempotency key. If this request has no key, the error is a bug: raise
            # it.
            if (earlier := await self._earlier(row, used)) is None:
                raise
            return earlier
        return AcceptedAction(action_view(stored, has_ended=False, shows_actor=True, restores=point))

    @unavailable_on_outage
    async def list(self, principal: Principal, server_id: str) -> MatchActionsView:
        """Return which actions are possible now, and the actions that were requested on the match."""
        row = await self._own_row(principal, server_id)
        reader = await self._reader(row)
        found = await match_actions.of_server(self._db, row.id)
        return MatchActionsView(
            possible=tuple(possible_actions(reader)),
            restorable=restorable_rounds(reader),
            items=tuple(self._view(principal, row, action) for action in found),
        )

    @unavailable_on_outage
    async def get(self, principal: Principal, server_id: str, action_id: str) -> ActionView:
        """Return the view of an action that was requested on a match."""
        row = await self._own_row(principal, server_id)
        found = await match_actions.get(self._db, row.id, action_id) if read_action_id(action_id) else None
        if found is None:
            raise NotFoundError("There is no action with this id on this match.")
        return self._view(principal, row, found)

    async def _earlier(self, row: ServerRow, used: Idempotency | None) -> AcceptedAction | None:
        """Return the action of an earlier request with this key; IdempotencyConflictError if the bodies differ."""
        action_id = await made_before(self._db, used)
        found = None if action_id is None else await match_actions.get(self._db, row.id, action_id)
        if found is None:
            return None
        return AcceptedAction(action_view(found, has_ended=row.has_ended, shows_actor=True), is_replayed=True)

    async def _reader(self, row: ServerRow) -> MatchReader | Obstacle:
        """Return the match's reader, which is valid only until the next await, or why no action is possible."""
        if row.has_ended:
            return _ENDED
        live = self._live.get(row.id)
        if live is not None:
            return live.fold.reader
        return await self._remote.reader(row) if row.phase is ServerPhase.RUNNING else _NO_SERVER

    async def _own_row(self, principal: Principal, server_id: str) -> ServerRow:
        found = await servers.get(self._db, server_id) if read_server_id(server_id) else None
        return require_own(principal, found, "server")

    @staticmethod
    def _view(principal: Principal, row: ServerRow, found: ActionRow) -> ActionView:
        shows_actor = principal.audience.sees_actors
        return action_view(found, has_ended=row.has_ended, shows_actor=shows_actor)


def _not_possible(obstacle: Obstacle) -> ActionNotPossibleError:
    return ActionNotPossibleError(obstacle.text, retry_after_s=obstacle.retry_after_s)


def _describe(action: ActionRequest) -> str:
    """Describe an action for the audit log: its type and the fields that are set."""
    given = {**action.fields(), "reason": action.reason, "by": action.by}
    words = [action.type.value, *(f"{name} {value}" for name, value in given.items() if value is not None)]
    return ", ".join(words)
