"""Log people in to the console, with a single-use link or an API key, and check their sessions.

The cookie of a session is a random token; only its hash is stored. A session ends after IDLE_MS without use, after
MAX_MS, when it is ended in the console, or when its key is revoked or expires. The API accepts only keys, no cookies.
For REPEAT_MS after a log-in with a key, further log-ins with it are counted in the audit entry of the first.

Versions without roles treat every link and session that they find as that of an owner. Links and sessions of other
roles are therefore stored under a different kind of hash, which those versions do not look up.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from matchpod.core.errors import UnauthorizedError
from matchpod.core.requests.text_rules import printable
from matchpod.ports import Clock, Database, NothingChangedError, Statement
from matchpod.service.access.audit import COMMAND_LINE, Action, Audit, recorded_session, repeated_session
from matchpod.service.access.failed_logins import LogInKind
from matchpod.service.access.organizations import Access, check_name
from matchpod.service.access.rate_limit import RateLimiter
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.identifiers import TOKEN_RANDOM_BYTES, is_token, new_token
from matchpod.service.identity.principals import (
    ConsoleRole,
    KeyState,
    Principal,
    Role,
    principal_of,
    principal_of_link,
    state_of,
)
from matchpod.storage import audit_log, console_sessions, organizations
from matchpod.storage.api_keys import ApiKey
from matchpod.storage.console_sessions import ActiveSessions, ConsoleLink, ConsoleSession

HOUR_MS: Final = 60 * 60 * 1000
IDLE_MS: Final = 12 * HOUR_MS
MAX_MS: Final = 7 * 24 * HOUR_MS
LINK_MS: Final = 5 * 60 * 1000
RECORD_USE_MS: Final = 60_000
"""Minimum time between two updates of a session's last use. A write per request would be expensive."""
MAX_USER_AGENT: Final = 200
MAX_SESSIONS: Final = 50
"""Maximum number of sessions per key, and of link sessions per organization. A further session ends the oldest."""
LOG_INS_PER_MINUTE: Final = 10
"""Maximum number of log-ins per key and minute, because each log-in writes to the database. People need fewer."""
REPEAT_MS: Final = HOUR_MS
"""Time after a key's log-in got an audit entry, in which further log-ins with the key only raise the entry's count."""
MAX_REMEMBERED: Final = 10_000
"""Maximum number of keys whose last log-in entry is remembered; they take one or two megabytes. A log-in with a key
that is not remembered gets a new entry."""
PAGE_SIZE: Final = 100
"""Number of sessions per page of the session list."""
LOGIN_PATH: Final = "/console/login/"
"""Path prefix of a log-in link. It is followed by the link's token."""
LINK_INVALID: Final = (
    "This link is not valid. A link works once, for 5 minutes; print a new one with `matchpod console`."
)

_ID_RANDOM_BYTES: Final = 10

_log = logging.getLogger(__name__)


class ConsoleUser(msgspec.Struct, frozen=True, kw_only=True):
    """A user of the console, identified by their session, with their rights."""

    session_id: str
    org_id: str | None
    """None for an operator."""
    org_name: str
    principal: Principal | None
    """The principal with the user's rights in the organization; None for an operator."""
    name: str = ""
    """The person that the session's link was created for; empty if no name was given."""

    @property
    def is_operator(self) -> bool:
        """True for operators, who see the whole installation instead of one organization."""
        return self.principal is None


class NewSession(msgspec.Struct, frozen=True):
    """A new session and the value of its cookie. Only the hash of the cookie is stored."""

    cookie: str
    session_id: str

    def __repr__(self) -> str:
        return f"NewSession({self.session_id})"


class _Begun(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of a session that is about to begin: organization, key or link, and client."""

    org_id: str | None
    key_id: str | None = None
    user_agent: str
    address: str | None
    name: str | None = None
    role: str | None = None


class _RecordedLogIn(msgspec.Struct, kw_only=True):
    """A key's last log-in that got an audit entry, and the number of log-ins counted in this entry."""

    act_id: str
    session_id: str
    at_ms: int
    count: int = 1


class ConsoleSessions:
    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        access: Access,
        audit: Audit,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
        log_ins_per_minute: int = LOG_INS_PER_MINUTE,
    ) -> None:
        self._db = db
        self._clock = clock
        self._access = access
        self._audit = audit
        self._failures = access.failures
        self._random_bytes = random_bytes
        self._log_ins = RateLimiter(
            log_ins_per_minute, lambda: clock.now_ms() / 1000, owner="this key", unit="log-ins to the console"
        )
        self._recorded: OrderedDict[str, _RecordedLogIn] = OrderedDict()
        """The last log-in of each key that has its own audit entry, oldest first."""
        self._recording = asyncio.Lock()
        """Held while a log-in with a key is stored, so that a concurrent log-in finds its entry."""

    # --- log in ---------------------------------------------------------------------------------------------------

    async def create_link(self, org_id: str | None, *, name: str = "", role: Role | ConsoleRole = Role.OWNER) -> str:
        """Create a log-in link for a person of an organization, or for an operator. Return the link's token.

        Raise AccessError if the name is not valid.
        """
        if name:
            check_name(name, "The name of a person", shortest=1)
        token, given = self._new_token(), None if org_id is None or role is Role.OWNER else role.value
        link = ConsoleLink(
            token_hash=_hash_for(token, given),
            org_id=org_id,
            expires_at_ms=self._clock.now_ms() + LINK_MS,
            name=name or None,
            role=given,
        )
        record = self._audit.entry(
            Action.LINK_CREATED, org_id=org_id, actor=COMMAND_LINE, detail=", ".join(_for_whom(link.name, given))
        )
        await self._db.write([console_sessions.insert_link(link), record])
        return token

    @unavailable_on_outage
    async def open_by_link(self, token: str, *, user_agent: str, address: str | None = None) -> NewSession:
        """Begin a session with a link; UnauthorizedError if it was used or has expired.

        Raise RateLimitError if too many log-ins from the address have failed.
        """
        await self._failures.check(address, LogInKind.CONSOLE_LINK)  # before the write that consumes the link
        link = await console_sessions.consume_link(self._db, _hashes(token)) if is_token(token) else None
        if link is None or link.expires_at_ms <= self._clock.now_ms():
            org_id = None if link is None else link.org_id
            await self._failures.add(address, LogInKind.CONSOLE_LINK, org_id=org_id)
            raise UnauthorizedError(LINK_INVALID)
        detail = ", ".join(["with a link", *_for_whom(link.name, link.role)])
        begun = _Begun(org_id=link.org_id, user_agent=user_agent, address=address, name=link.name, role=link.role)
        return await self._open(begun, detail=detail)

    @unavailable_on_outage
    async def open_by_key(self, key: str, *, user_agent: str, address: str | None = None) -> NewSession:
        """Begin a session with an API key; UnauthorizedError if the key is not valid.

        Raise RateLimitError if too many log-ins from the address have failed, or if the key was used for too many
        log-ins.
        """
        principal = await self._access.authenticate(
            f"Bearer {key.strip()}", address=lambda: address, kind=LogInKind.CONSOLE_KEY
        )
        self._log_ins.acquire(principal.key_id)
        begun = _Begun(org_id=principal.org_id, key_id=principal.key_id, user_agent=user_agent, address=address)
        async with self._recording:
            recorded = self._recorded.get(principal.key_id)
            if recorded is not None and self._clock.now_ms() - recorded.at_ms < REPEAT_MS:
                with suppress(NothingChangedError):  # if the audit entry was deleted, add a new entry
                    return await self._open_repeated(begun, recorded)
            return await self._open(begun, detail=f"with {principal.key_id}")

    async def _open(self, begun: _Begun, *, detail: str) -> NewSession:
        session_id = f"ses_{self._random_bytes(_ID_RANDOM_BYTES).hex()}"
        act = self._audit.row(Action.LOGGED_IN, org_id=begun.org_id, actor=session_id, detail=detail)
        opened = await self._insert(session_id, begun, record=audit_log.insert(act))
        if begun.key_id is not None:
            self._recorded.pop(begun.key_id, None)
            self._recorded[begun.key_id] = _RecordedLogIn(act_id=act.id, session_id=session_id, at_ms=act.at_ms)
            if len(self._recorded) > MAX_REMEMBERED:
                self._recorded.popitem(last=False)
        return opened

    async def _open_repeated(self, begun: _Begun, recorded: _RecordedLogIn) -> NewSession:
        recorded.count += 1
        session_id = repeated_session(recorded.session_id, recorded.count)
        record = audit_log.set_detail(recorded.act_id, f"with {begun.key_id}, {recorded.count} times")
        return await self._insert(session_id, begun, record=record)

    async def _insert(self, session_id: str, begun: _Begun, *, record: Statement) -> NewSession:
        now_ms, cookie = self._clock.now_ms(), self._new_token()
        session = ConsoleSession(
            id=session_id,
            token_hash=_hash_for(cookie, begun.role),
            org_id=begun.org_id,
            key_id=begun.key_id,
            created_at_ms=now_ms,
            seen_at_ms=now_ms,
            expires_at_ms=now_ms + MAX_MS,
            user_agent=printable(begun.user_agent, at_most=MAX_USER_AGENT),
            name=begun.name,
            role=begun.role,
            address=begun.address,
        )
        person = [] if begun.name is None else [console_sessions.insert_person(session_id, begun.name, now_ms)]
        surplus = console_sessions.end_oldest(begun.org_id, begun.key_id, keep=MAX_SESSIONS - 1)
        await self._db.write([surplus, console_sessions.insert(session), *person, record])
        _log.info("logged in", extra={"session_id": session.id, "org_id": begun.org_id, "key_id": begun.key_id})
        return NewSession(cookie, session.id)

    # --- sessions -------------------------------------------------------------------------------------------------

    @unavailable_on_outage
    async def find(self, cookie: str) -> ConsoleUser | None:
        """Return the user to whom a session cookie belongs; None if the session has ended."""
        found = await console_sessions.by_hash(self._db, _hashes(cookie)) if is_token(cookie) else None
        if found is None:
            return None
        session, key = found
        now_ms = self._clock.now_ms()
        if not is_active(session, key, now_ms):
            return None
        if now_ms - session.seen_at_ms >= RECORD_USE_MS:
            await console_sessions.mark_seen(self._db, [session.id], now_ms)
        return await self._user(session, key)

    @unavailable_on_outage
    async def active_sessions(self, session_ids: Sequence[str]) -> set[str]:
        """Return which sessions have not ended, and record that these are in use, because they have open streams."""
        now_ms = self._clock.now_ms()
        found = await console_sessions.by_ids(self._db, session_ids)
        active = [session for session, key in found if is_active(session, key, now_ms)]
        unrecorded = [session.id for session in active if now_ms - session.seen_at_ms >= RECORD_USE_MS]
        if unrecorded:
            await console_sessions.mark_seen(self._db, unrecorded, now_ms)
        return {session.id for session in active}

    @unavailable_on_outage
    async def list(self, org_id: str | None, *, key_id: str | None = None, page: int = 1) -> list[ConsoleSession]:
        """Return a page of the active sessions of an organization, or of operators, newest first.

        With `key_id`, return only sessions that were begun with this key. `key_id` may also be the id of a single
        session.
        """
        which, offset = self._active(org_id, key_id), (page - 1) * PAGE_SIZE
        return await console_sessions.list(self._db, which, offset=offset, limit=PAGE_SIZE)

    @unavailable_on_outage
    async def count(self, org_id: str | None, *, key_id: str | None = None) -> int:
        """Return the number of sessions on all pages of `list`."""
        return await console_sessions.count(self._db, self._active(org_id, key_id))

    def _active(self, org_id: str | None, key_id: str | None) -> ActiveSessions:
        now_ms = self._clock.now_ms()
        return ActiveSessions(org_id=org_id, key_id=key_id, now_ms=now_ms, seen_after_ms=now_ms - IDLE_MS)

    @unavailable_on_outage
    async def get(self, org_id: str | None, session_id: str) -> ConsoleSession | None:
        """Return a session of an organization, or of operators; None if it does not exist or has ended."""
        for session, key in await console_sessions.by_ids(self._db, [session_id]):
            if session.org_id == org_id and is_active(session, key, self._clock.now_ms()):
                return session
        return None

    @unavailable_on_outage
    async def log_out(self, user: ConsoleUser) -> None:
        statements = [console_sessions.end(user.session_id)]
        if recorded_session(user.session_id) == user.session_id:  # its log-in has an audit entry
            statements.append(self._audit.entry(Action.LOGGED_OUT, org_id=user.org_id, actor=user.session_id))
        await self._db.write(statements)

    @unavailable_on_outage
    async def end(self, user: ConsoleUser, session_id: str) -> bool:
        """End another session of the user's organization; False if no such session exists."""
        if await self.get(user.org_id, session_id) is None:
            return False
        record = self._audit.entry(Action.SESSION_ENDED, org_id=user.org_id, actor=user.session_id, target=session_id)
        await self._db.write([console_sessions.end(session_id), record])
        return True

    @unavailable_on_outage
    async def end_others(self, user: ConsoleUser, *, key_id: str | None = None) -> int:
        """End all sessions that `list` returns, except the user's own. Return the number of ended sessions."""
        others = console_sessions.end_others(self._active(user.org_id, key_id), kept=user.session_id)
        record = self._audit.entry(Action.OTHER_SESSIONS_ENDED, org_id=user.org_id, actor=user.session_id)
        try:
            ended, _ = await self._db.write([others, record])
        except NothingChangedError:
            return 0
        return len(ended)

    async def sweep(self) -> None:
        """Delete sessions and links that can no longer be used."""
        now_ms = self._clock.now_ms()
        await console_sessions.delete_expired(self._db, now_ms=now_ms, seen_before_ms=now_ms - IDLE_MS)

    async def _user(self, session: ConsoleSession, key: ApiKey | None) -> ConsoleUser | None:
        if session.org_id is None:
            return ConsoleUser(session_id=session.id, org_id=None, org_name="", principal=None, name=session.name or "")
        organization = await organizations.get(self._db, session.org_id)
        if organization is None:
            return None
        if key is None:
            principal = principal_of_link(session.org_id, session.id, session.role or Role.OWNER)
        else:
            principal = replace(principal_of(key), session_id=session.id)
        if principal is None:
            return None
        return ConsoleUser(
            session_id=session.id,
            org_id=session.org_id,
            org_name=organization.name,
            principal=principal,
            name=session.name or "",
        )

    def _new_token(self) -> str:
        return new_token(self._random_bytes(TOKEN_RANDOM_BYTES))


def login_url(base_url: str, token: str) -> str:
    return f"{base_url}{LOGIN_PATH}{token}"


def is_active(session: ConsoleSession, key: ApiKey | None, now_ms: int) -> bool:
    """True if a session has not ended, so that it can be used."""
    if session.key_id is not None and (key is None or state_of(key, now_ms) is not KeyState.ACTIVE):
        return False
    return not _is_over(session, now_ms)


def _is_over(session: ConsoleSession, now_ms: int) -> bool:
    return session.expires_at_ms <= now_ms or session.seen_at_ms + IDLE_MS <= now_ms


def _for_whom(name: str | None, role: str | None) -> list[str]:
    """Return the phrases for a link's audit entry: `for` its person and `as` its role, unless these are None."""
    return [*([] if name is None else [f"for {name}"]), *([] if role is None else [f"as {role}"])]


def _hash_for(token: str, role: str | None) -> str:
    """Return the hash under which a link or a session is stored; `role` is None for owners and operators."""
    as_owner, limited = _hashes(token)
    return as_owner if role is None else limited


def _hashes(token: str) -> tuple[str, str]:
    """Return a token's hash for owners and operators, which every version looks up, and its hash for other roles."""
    return hashlib.sha256(token.encode()).hexdigest(), hashlib.sha256(f"role {token}".encode()).hexdigest()
