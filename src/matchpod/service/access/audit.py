"""Write and read the audit log, which shows organizations and operators who did what.

An entry is written in the same transaction as its act, so either both are stored or neither is. An act that changed
nothing has no entry.
"""

from __future__ import annotations

import builtins
import secrets
from collections.abc import Callable, Collection
from enum import Enum, StrEnum, auto
from typing import Annotated, Final

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from matchpod.core.requests.audit_query import AuditQuery
from matchpod.core.views.result_shapes import IsoTime
from matchpod.ports import Clock, Database, Statement
from matchpod.service.access.actor_names import LINK, actor_names, is_session, people_of
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.identifiers import ID_RANDOM_BYTES, new_audit_id
from matchpod.service.identity.principals import Principal
from matchpod.service.row_views import view_of
from matchpod.storage import audit_log
from matchpod.storage.audit_log import AuditRow

PAGE_SIZE: Final = 100
COMMAND_LINE: Final = "command line"
"""The actor id in entries for commands that were run on the command line."""


class Target(Enum):
    """The type of object that a recorded act concerns, if the console has a page for objects of this type."""

    MATCH = auto()
    CALLBACK = auto()
    WEBHOOK = auto()
    KEY = auto()
    REGION = auto()


class Action(StrEnum):
    """A type of recorded act, with its description for people and the type of its target."""

    words: str
    target: Target | None

    def __new__(cls, value: str, words: str, target: Target | None = None) -> Action:
        action = str.__new__(cls, value)
        action._value_, action.words, action.target = value, words, target
        return action

    LINK_CREATED = "link_created", "printed a link to log in"
    LOGGED_IN = "logged_in", "logged in"
    LOGGED_OUT = "logged_out", "logged out"
    LOG_IN_FAILED = "log_in_failed", "failed to log in", Target.KEY
    SESSION_ENDED = "session_ended", "ended a session"
    OTHER_SESSIONS_ENDED = "other_sessions_ended", "ended all other sessions"
    MATCH_CREATED = "match_created", "created a match", Target.MATCH
    MATCH_CANCELED = "match_canceled", "canceled a match", Target.MATCH
    ACTION_REQUESTED = "action_requested", "requested an action on a match", Target.MATCH
    MATCH_ACKNOWLEDGED = "match_acknowledged", "acknowledged a match without a result", Target.MATCH
    ACKNOWLEDGEMENT_UNDONE = "acknowledgement_undone", "undid an acknowledgement"
    MATCH_CLAIMED = "match_claimed", "claimed a match", Target.MATCH
    CLAIM_RELEASED = "claim_released", "released the claim on a match", Target.MATCH
    MATCH_RULED = "match_ruled", "ruled on a match", Target.MATCH
    RULING_WITHDRAWN = "ruling_withdrawn", "withdrew the ruling on a match", Target.MATCH
    PASSWORD_REVEALED = "password_revealed", "revealed a password", Target.MATCH
    CALLBACK_REDELIVERED = "callback_redelivered", "sent a callback again", Target.CALLBACK
    WEBHOOK_CREATED = "webhook_created", "created a webhook", Target.WEBHOOK
    WEBHOOK_CHANGED = "webhook_changed", "changed a webhook", Target.WEBHOOK
    WEBHOOK_DELETED = "webhook_deleted", "deleted a webhook"
    WEBHOOK_SECRET_REPLACED = "webhook_own_secret_replaced", "replaced the secret of a webhook", Target.WEBHOOK
    WEBHOOK_TESTED = "webhook_tested", "sent a test to a webhook", Target.WEBHOOK
    WEBHOOK_REDELIVERED = "webhook_redelivered", "sent deliveries of a webhook again", Target.WEBHOOK
    KEY_CREATED = "key_created", "created a key", Target.KEY
    KEY_ROTATED = "key_rotated", "rotated a key", Target.KEY
    KEY_REVOKED = "key_revoked", "revoked a key", Target.KEY
    ORGANIZATION_CREATED = "organization_created", "created an organization"
    SECRET_REVEALED = "webhook_secret_revealed", "revealed the webhook secret"
    SECRET_REPLACED = "webhook_secret_replaced", "replaced the webhook secret"
    OLD_SECRET_ENDED = "old_webhook_secret_ended", "ended the old webhook secret"
    SECRETS_REENCRYPTED = "secrets_reencrypted", "encrypted the stored secrets with another key"
    REGION_CHANGED = "region_changed", "switched a region", Target.REGION
    REGION_CHECKED = "region_checked", "checked a region", Target.REGION
    SWEEP_CONFIRMED = "sweep_confirmed", "confirmed the release of servers without a match", Target.REGION
    BACKUP_WRITTEN = "backup_written", "wrote a backup"
    PRUNE_STARTED = "prune_started", "started to delete data past its retention"
    RECOMPUTE_STARTED = "recompute_started", "started to recompute statistics", Target.MATCH
    OVERLAY_CREATED = "overlay_created", "created a link to the overlay", Target.MATCH
    OVERLAYS_ENDED = "overlays_ended", "ended the links to the overlay", Target.MATCH


def repeated_session(session_id: str, number: int) -> str:
    """Return the id of a session whose log-in is counted as number `number` in the audit entry of `session_id`."""
    return f"{session_id}.{number}"


def begun_with(detail: str) -> str:
    """Return what a session was begun with (`a link` or a key's id), from the `detail` of its log-in's audit entry."""
    return detail.removeprefix("with ").partition(", ")[0]  # ", 3 times" or ", for NAME" may follow


def recorded_session(session_id: str) -> str:
    """Return the id of the session whose entry counts the log-in of `session_id`: this session or an earlier one."""
    return session_id.partition(".")[0]


class AuditItem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One entry of the audit log: who did what, and when."""

    id: Annotated[str, Meta(description="The id of the entry.")]
    at: IsoTime
    actor: Annotated[
        str,
        Meta(
            description="The id of a key (`key_…`) or of a session of the console (`ses_…`); `command line`, an "
            "operator on the machine of the service; or `unknown`, for a log-in that failed."
        ),
    ]
    actor_name: Annotated[
        str | None,
        Meta(
            description="The name of that key, or of the key that the session was begun with; if the key has no name, "
            "the beginning of its text. For a session that was begun with a link, the name of the person that the link "
            "was for, or `a link`. Otherwise null."
        ),
    ]
    action: Annotated[str, Meta(description="What was done, such as `match_canceled`. There may be more later.")]
    target: Annotated[str, Meta(description="The id of the key, server or callback that it was done to; or empty.")]
    detail: Annotated[str, Meta(description="Details for people; or empty.")]


class AuditPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A page of entries of the audit log."""

    items: Annotated[tuple[AuditItem, ...], Meta(description="The items of this page, newest first.")]
    next_before: Annotated[
        str | None, Meta(description="The `before` of the next page, with older entries; null if there are none.")
    ]


class LogIn(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One log-in, as shown to operators."""

    id: str
    at: str
    actor: str
    detail: str
    org_id: str | None
    """None for an operator."""
    org_name: str | None


class Audit:
    """Writes and reads the audit log."""

    def __init__(
        self, *, db: Database, clock: Clock, random_bytes: Callable[[int], bytes] = secrets.token_bytes
    ) -> None:
        self._db = db
        self._clock = clock
        self._random_bytes = random_bytes

    def entry(self, action: Action, *, org_id: str | None, actor: str, target: str = "", detail: str = "") -> Statement:
        """Return the statement that inserts an act's audit entry. Execute it in the same transaction as the act."""
        return audit_log.insert(self.row(action, org_id=org_id, actor=actor, target=target, detail=detail))

    def row(self, action: Action, *, org_id: str | None, actor: str, target: str = "", detail: str = "") -> AuditRow:
        """Return the row of an act's audit entry, for callers that need the entry's id."""
        now_ms = self._clock.now_ms()
        return AuditRow(
            id=new_audit_id(now_ms, self._random_bytes(ID_RANDOM_BYTES)),
            org_id=org_id,
            at_ms=now_ms,
            actor=actor,
            action=action.value,
            target=target,
            detail=detail,
        )

    def act_of(self, principal: Principal, action: Action, *, target: str = "", detail: str = "") -> Statement:
        """Return the statement that inserts the audit entry of an act by this principal in its organization."""
        return self.entry(action, org_id=principal.org_id, actor=principal.actor, target=target, detail=detail)

    @unavailable_on_outage
    async def record(
        self, action: Action, *, org_id: str | None, actor: str, target: str = "", detail: str = ""
    ) -> None:
        """Insert an act's audit entry in a separate transaction."""
        await self._db.write([self.entry(action, org_id=org_id, actor=actor, target=target, detail=detail)])

    @unavailable_on_outage
    async def page(
        self, org_id: str | None, *, before_id: str | None = None, limit: int = PAGE_SIZE
    ) -> builtins.list[AuditItem]:
        """Return a page of audit entries of an organization, newest first; if `org_id` is None, of operators.

        With `before_id`, only entries before that entry are returned. The names of the actors are not filled in.
        """
        found = await audit_log.list(self._db, org_id, before_id=before_id, limit=limit)
        return [view_of(AuditItem, row, actor_name=None) for row in found]

    @unavailable_on_outage
    async def log_ins(self) -> builtins.list[LogIn]:
        """Return the newest log-ins of operators and of the members of all organizations."""
        found = await audit_log.newest_of(self._db, Action.LOGGED_IN.value, limit=PAGE_SIZE)
        return [view_of(LogIn, row, org_name=name) for row, name in found]

    @unavailable_on_outage
    async def log_in_details(self, org_id: str | None, actors: Collection[str]) -> dict[str, str]:
        """Return the details of log-in entries by session id. Sessions whose entry has been deleted are left out."""
        recorded = {actor: recorded_session(actor) for actor in actors}
        details = await audit_log.details_of(self._db, org_id, Action.LOGGED_IN.value, set(recorded.values()))
        return {actor: details[act_id] for actor, act_id in recorded.items() if act_id in details}

    @unavailable_on_outage
    async def people(self, actors: Collection[str]) -> dict[str, str]:
        """Return the names of the people behind those `actors` that are console sessions, by session id."""
        return await people_of(self._db, actors)

    async def list(self, principal: Principal, query: AuditQuery) -> AuditPage:
        """Return a page of the organization's audit log, newest first. The web layer has checked scope and role."""
        size = query.page_size
        found = await self.page(principal.org_id, before_id=query.before, limit=size + 1)
        names = await self._actor_names(principal.org_id, {item.actor for item in found[:size]})
        items = tuple(replace(item, actor_name=names.get(item.actor)) for item in found[:size])
        return AuditPage(items=items, next_before=found[size - 1].id if len(found) > size else None)

    async def _actor_names(self, org_id: str, actors: Collection[str]) -> dict[str, str]:
        """Return names by actor id: a key's name, a session's person or, if unknown, `a link` or the session's key."""
        begun = await self.log_in_details(org_id, [actor for actor in actors if is_session(actor)])
        used = {actor: begun_with(begun[actor]) if actor in begun else actor for actor in actors}
        names = {LINK: LINK, **await actor_names(self._db, used.values())}
        known = {actor: names[key] for actor, key in used.items() if key in names and not is_session(key)}
        return known | await people_of(self._db, actors)
