"""Show and manage API keys, the webhook secret and sessions of an organization, and sessions of operators.

The page also shows the audit log. Only owners who have all scopes manage keys and secrets, so no key can be used to
create a key with more rights. Admins see the keys without buttons, members see only their own key. A new key or a
revealed secret is contained in one response only, which browsers do not store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from matchpod.console.audit_words import audit_lines, browser_words, session_words
from matchpod.console.visit import READER_ONLY, Visit, Who
from matchpod.core.errors import ForbiddenError, InvalidParamsError, NotFoundError
from matchpod.core.faults import stated_fault
from matchpod.core.requests.audit_query import read_audit_query
from matchpod.core.requests.history_query import MAX_PAGE
from matchpod.core.requests.query_fields import QueryFields
from matchpod.service.access.audit import PAGE_SIZE
from matchpod.service.access.console_sessions import PAGE_SIZE as SESSIONS_PER_PAGE
from matchpod.service.access.console_sessions import ConsoleUser
from matchpod.service.access.organizations import DAY_S, MAX_EXPIRES_IN_S, MAX_NAME
from matchpod.service.identity.principals import MANAGERS, KeyView, NewKey, Role, Scope
from matchpod.web.http.responses import Response

PATH = "/console/access"
LIFETIME_DAYS = (7, 30, 90, 365)
OVERLAPS = (("86400", "24 hours"), ("3600", "1 hour"), ("604800", "7 days"), ("0", "not at all"))
ROLE_TEXTS = {
    Role.OWNER: "may do everything, also manage keys and secrets here",
    Role.ADMIN: "creates and cancels matches",
    Role.MEMBER: "reads",
}

_NEW_KEY = {"role": Role.ADMIN.value, "days": "90"} | {scope.value: "on" for scope in Scope}


class SessionLine(msgspec.Struct, frozen=True, kw_only=True):
    """A session in the list of sessions."""

    session: object
    who: str
    """The name of the person, or what started the session."""
    browser: str
    may_end: bool


class SessionPage(msgspec.Struct, frozen=True, kw_only=True):
    lines: Sequence[SessionLine]
    page: int
    total: int
    """Number of sessions on all pages of the list."""
    page_size: int = SESSIONS_PER_PAGE


# --- keys ---------------------------------------------------------------------------------------------------------


async def create_key(visit: Visit) -> Response:
    """Create an API key, and show it once."""
    given = await visit.form()
    try:
        created = await visit.deps.keys.create(
            visit.user.org_name,
            name=given.get("name", "").strip(),
            role=_role(given.get("role", "")),
            scopes=[scope for scope in Scope if scope.value in given],
            expires_in_s=_lifetime_s(given.get("days", "")),
            actor=visit.user.session_id,
        )
    except InvalidParamsError as exc:
        return await overview(visit, given=given, fault=exc)
    return _new_key(visit, created, title="The key was created")


async def rotate_key(visit: Visit) -> Response:
    """Replace an API key with a new key, and show the new key once."""
    key_id, given = visit.call.params[0], await visit.form()
    overlap = next((choice for choice in OVERLAPS if choice[0] == given.get("overlap", "")), OVERLAPS[0])
    created = await visit.deps.keys.rotate(
        visit.user.org_name, key_id, overlap_s=int(overlap[0]), actor=visit.user.session_id
    )
    return _new_key(visit, created, title="The key was rotated")


async def revoke_key(visit: Visit) -> Response:
    """Revoke an API key. Its sessions end with it."""
    await visit.deps.keys.revoke(visit.user.org_name, visit.call.params[0], actor=visit.user.session_id)
    return visit.done(PATH, "key-revoked")


def _new_key(visit: Visit, created: NewKey, *, title: str) -> Response:
    return visit.page("secret.html", title=title, text=created.text, label="API key", key=created.view)


def _role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError as exc:
        raise _fault("role", f"The role must be one of {', '.join(Role)}.") from exc


def _lifetime_s(days: str) -> int | None:
    if not days:
        return None
    if not (days.isascii() and days.isdecimal() and len(days) <= 6):
        raise _fault("lifetime", f"The lifetime must be 1 to {MAX_EXPIRES_IN_S // DAY_S} days.")
    return int(days) * DAY_S


def _fault(field: str, message: str) -> InvalidParamsError:
    return InvalidParamsError(message, (stated_fault(field, message),))


# --- the webhook secret -------------------------------------------------------------------------------------------


async def reveal_secret(visit: Visit) -> Response:
    secret = await visit.deps.keys.reveal_webhook_secret(visit.user.org_name, actor=visit.user.session_id)
    return visit.page("secret.html", title="The webhook secret", text=secret, label="webhook secret", key=None)


async def replace_secret(visit: Visit) -> Response:
    """Replace the webhook secret, and show the new secret."""
    secret = await visit.deps.keys.replace_webhook_secret(visit.user.org_name, actor=visit.user.session_id)
    title = "The webhook secret was replaced"
    return visit.page("secret.html", title=title, text=secret, label="webhook secret", key=None)


# --- sessions -----------------------------------------------------------------------------------------------------


async def end_session(visit: Visit) -> Response:
    """End a session. Owners may end all sessions of their organization, other users only those of their own key."""
    user, session_id = visit.user, visit.call.params[0]
    found = await visit.deps.sessions.get(user.org_id, session_id)
    if found is None or not (_sees_all(user) or _is_own(user, session_id, found.key_id)):
        raise NotFoundError("There is no session with this id, or it has ended.")
    if not _may_end(visit, session_id, found.key_id):
        raise ForbiddenError("Only owners may end the sessions of other keys.")
    if session_id == user.session_id:
        await visit.deps.sessions.log_out(user)
        return visit.done("/console/login", "logged-out", visit.deps.origins.cookie_header("", max_age_s=0))
    await visit.deps.sessions.end(user, session_id)
    return visit.done(PATH, "session-ended")


async def end_other_sessions(visit: Visit) -> Response:
    """End all sessions that the user may end, except the current session."""
    ended = await visit.deps.sessions.end_others(visit.user, key_id=_only_key(visit, may_end=True))
    return visit.done(PATH, "other-sessions-ended" if ended else "no-sessions-ended")


async def _sessions(visit: Visit, key_names: Mapping[str, str]) -> SessionPage:
    user, only_key = visit.user, _only_key(visit)
    total = await visit.deps.sessions.count(user.org_id, key_id=only_key)
    page = min(_page_number(visit), max(1, -(-total // SESSIONS_PER_PAGE)))
    lines = [
        SessionLine(
            session=session,
            who=session.name
            or session_words("with a link" if session.key_id is None else f"with {session.key_id}", key_names),
            browser=browser_words(session.user_agent),
            may_end=_may_end(visit, session.id, session.key_id),
        )
        for session in await visit.deps.sessions.list(user.org_id, key_id=only_key, page=page)
    ]
    return SessionPage(lines=lines, page=page, total=total)


def _only_key(visit: Visit, *, may_end: bool = False) -> str | None:
    """Return the id of the only key whose sessions the user may see (or end, if `may_end`); None for all keys."""
    principal = visit.user.principal
    sees_all = visit.may(Who.OWNER) if may_end else _sees_all(visit.user)
    return None if principal is None or sees_all else principal.key_id


def _page_number(visit: Visit) -> int:
    fields = QueryFields([pair for pair in visit.query().items() if pair[0] == "page"], ("page",))
    number = fields.integer("page", at_least=1, at_most=MAX_PAGE)
    fields.check()
    return number or 1


def _sees_all(user: ConsoleUser) -> bool:
    return user.principal is None or user.principal.role in MANAGERS


def _may_end(visit: Visit, session_id: str, key_id: str | None) -> bool:
    return visit.user.is_operator or visit.may(Who.OWNER) or _is_own(visit.user, session_id, key_id)


def _is_own(user: ConsoleUser, session_id: str, key_id: str | None) -> bool:
    """True for the user's current session, and for sessions that were started with the same API key."""
    return session_id == user.session_id or (user.principal is not None and key_id == user.principal.key_id)


# --- the page -----------------------------------------------------------------------------------------------------


async def overview(
    visit: Visit, *, given: Mapping[str, str] | None = None, fault: InvalidParamsError | None = None
) -> Response:
    """Show keys, sessions and the audit log."""
    user = visit.user
    if user.principal is not None and Scope.SERVERS_READ not in user.principal.scopes:
        raise ForbiddenError(READER_ONLY)
    sees_all = _sees_all(user)
    keys: Sequence[KeyView] = () if user.is_operator else await visit.deps.keys.keys(user.org_name)
    if not sees_all:
        keys = [key for key in keys if user.principal is not None and key.id == user.principal.key_id]
    key_names = {key.id: f"{key.name} ({key.prefix}…)" if key.name else f"{key.prefix}…" for key in keys}
    before = read_audit_query([(name, text) for name, text in visit.query().items() if name == "before"]).before
    acts = await visit.deps.audit.page(user.org_id, before_id=before) if sees_all else []
    actors = {act.actor for act in acts}
    log_ins = await visit.deps.audit.log_in_details(user.org_id, actors)
    people = await visit.deps.audit.people(actors)
    return visit.page(
        "access.html",
        status=200 if fault is None else fault.status,
        is_owner=visit.may(Who.OWNER),
        sees_all=sees_all,
        keys=keys,
        sessions=await _sessions(visit, key_names),
        acts=audit_lines(acts, log_ins=log_ins, key_names=key_names, people=people),
        older=acts[-1].id if len(acts) == PAGE_SIZE else "",
        is_newest=before is None,
        log_ins=await visit.deps.audit.log_ins() if user.is_operator else (),
        given=given if given is not None else _NEW_KEY,
        fault=fault,
        wrong=str(fault.faults[0].path) if fault is not None and fault.faults else "",
        roles=ROLE_TEXTS,
        scopes=tuple(Scope),
        lifetimes=LIFETIME_DAYS,
        overlaps=OVERLAPS,
        max_name=MAX_NAME,
    )
