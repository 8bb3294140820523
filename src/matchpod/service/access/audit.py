"""Record who did what, for the people of an organization and for operators.

An entry is a statement in the transaction of its act: both are stored or neither. So an act that happened is always
recorded, one that changed nothing never is, and no act fails after it happened because of its entry.
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
"""The actor of acts on the machine itself."""


class Target(Enum):
    """What an act was done to, if that has a page of its own."""

    MATCH = auto()
    CALLBACK = auto()
    WEBHOOK = auto()
    KEY = auto()
    REGION = auto()


class Action(StrEnum):
    """What was done, in words for people, and to what."""

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
    ACTION_REQUESTED = "action_requested", "asked for an action on a match", Target.MATCH
    MATCH_ACKNOWLEDGED = "match_acknowledged", "acknowledged a match without a result", Target.MATCH
    ACKNOWLEDGEMENT_UNDONE = "acknowledgement_undone", "undid an acknowledgement"
    MATCH_CLAIMED = "match_claimed", "is on a match", Target.MATCH
    CLAIM_RELEASED = "claim_released", "is no longer on a match", Target.MATCH
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
    PRUNE_STARTED = "prune_started", "started to delete what is past its retention"
    RECOMPUTE_STARTED = "recompute_started", "started to recompute statistics", Target.MATCH
    OVERLAY_CREATED = "overlay_created", "created a link to the overlay", Target.MATCH
    OVERLAYS_ENDED = "overlays_ended", "ended the links to the overlay", Target.MATCH


def repeated_session(session_id: str, number: int) -> str:
    """Return the id of a session whose log-in repeats that of another one, and is counted in the entry of that one."""
    return f"{session_id}.{number}"


def begun_with(detail: str) -> str:
    """Return what a session was begun with, `a link` or the id of a key, from the detail of its log-in."""
    return detail.removeprefix("with ").partition(", ")[0]  # followed by how often, if that was repeated


def recorded_session(session_id: str) -> str:
    """Return the id of the session whose log-in has an entry: this one, or the one that it repeats."""
    return session_id.partition(".")[0]


class AuditItem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One act: who did what, and when."""

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
            description="The name of that key, or of the key that the session was begun with: the beginning of its "
            "text if it has no name. For a session that was begun with a link, the name of the person it was for, or "
            "`a link`. Otherwise null."
        ),
    ]
    action: Annotated[str, Meta(description="What was done, such as `match_canceled`. There may be more later.")]
    target: Annotated[str, Meta(description="What it was done to: the id of a key, server or callback; or empty.")]
    detail: Annotated[str, Meta(description="More about it, for people; or empty.")]


class AuditPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A page of the audit log."""

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
    """The record of all acts."""

    def __init__(
        self, *, db: Database, clock: Clock, random_bytes: Callable[[int], bytes] = secrets.token_bytes
    ) -> None:
        self._db = db
        self._clock = clock
        self._random_bytes = random_bytes

    def entry(self, action: Action, *, org_id: str | None, actor: str, target: str = "", detail: str = "") -> Statement:
        """Return the statement that records an act, to be written together with it."""
        return audit_log.insert(self.row(action, org_id=org_id, actor=actor, target=target, detail=detail))

    def row(self, action: Action, *, org_id: str | None, actor: str, target: str = "", detail: str = "") -> AuditRow:
        """Return the row of an act, for callers that need its id."""
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
        """Return what records an act of a caller in their organization, to be written together with it."""
        return self.entry(action, org_id=principal.org_id, actor=principal.actor, target=target, detail=detail)

    @unavailable_on_outage
    async def record(
        self, action: Action, *, org_id: str | None, actor: str, target: str = "", detail: str = ""
    ) -> None:
        """Record an act that was done."""
        await self._db.write([self.entry(action, org_id=org_id, actor=actor, target=target, detail=detail)])

    @unavailable_on_outage
    async def page(
        self, org_id: str | None, *, before_id: str | None = None, limit: int = PAGE_SIZE
    ) -> builtins.list[AuditItem]:
        """The newest acts in an organization, or before an older one; without an organization, those of operators.

        Their actors have no names.
        """
        found = await audit_log.list(self._db, org_id, before_id=before_id, limit=limit)
        return [view_of(AuditItem, row, actor_name=None) for row in found]

    @unavailable_on_outage
    async def log_ins(self) -> builtins.list[LogIn]:
        """The newest log-ins to all organizations and of operators."""
        found = await audit_log.newest_of(self._db, Action.LOGGED_IN.value, limit=PAGE_SIZE)
        return [view_of(LogIn, row, org_name=name) for row, name in found]

    @unavailable_on_outage
    async def log_in_details(self, org_id: str | None, actors: Collection[str]) -> dict[str, str]:
        """How each of these sessions was begun, by its id; without those that are no longer recorded."""
        recorded = {actor: recorded_session(actor) for actor in actors}
        details = await audit_log.details_of(self._db, org_id, Action.LOGGED_IN.value, set(recorded.values()))
        return {actor: details[act_id] for actor, act_id in recorded.items() if act_id in details}

    @unavailable_on_outage
    async def people(self, actors: Collection[str]) -> dict[str, str]:
        """The names of the people whose sessions are among these actors, by session."""
        return await people_of(self._db, actors)

    async def list(self, principal: Principal, query: AuditQuery) -> AuditPage:
        """The acts in the caller's organization, newest first. The web layer has checked scope and role."""
        size = query.page_size
        found = await self.page(principal.org_id, before_id=query.before, limit=size + 1)
        names = await self._actor_names(principal.org_id, {item.actor for item in found[:size]})
        items = tuple(replace(item, actor_name=names.get(item.actor)) for item in found[:size])
        return AuditPage(items=items, next_before=found[size - 1].id if len(found) > size else None)

    async def _actor_names(self, org_id: str, actors: Collection[str]) -> dict[str, str]:
        """The names of keys, also of those that sessions were begun with, by actor."""
        begun = await self.log_in_details(org_id, [actor for actor in actors if is_session(actor)])
        used = {actor: begun_with(begun[actor]) if actor in begun else actor for actor in actors}
        names = {LINK: LINK, **await actor_names(self._db, used.values())}
        known = {actor: names[key] for actor, key in used.items() if key in names and not is_session(key)}
        return known | await people_of(self._db, actors)
