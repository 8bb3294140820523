"""Define roles, scopes and principals, and how operators see organizations and keys."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Protocol, TypeVar

import msgspec

from matchpod.core.errors import ForbiddenError, NotFoundError
from matchpod.service.row_views import view_of
from matchpod.storage.api_keys import ApiKey


class Role(StrEnum):
    """The role that a key has in its organization."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class ConsoleRole(StrEnum):
    """A role that only links to the console can give. No key has this role."""

    REFEREE = "referee"
    """May do everything with a match except create, cancel or rule on it: for example request actions, acknowledge or
    claim the match, and redeliver its callback."""
    CASTER = "caster"
    """May only read matches, including how to connect to their servers."""


MANAGERS: Final = (Role.OWNER, Role.ADMIN)
"""The roles that may create, cancel and rule on matches, and redeliver callbacks."""
LINK_ROLES: Final = (*Role, *ConsoleRole)
"""The roles that a link to the console can give."""


class Audience(StrEnum):
    """Which details of a match a principal sees, in addition to those that all principals of the organization see."""

    MEMBERS = "members"
    """Sees no additional details."""
    CASTERS = "casters"
    """Sees how to connect to the server, including the password for players."""
    REFEREES = "referees"
    """Sees what casters see, and who requested actions."""
    MANAGERS = "managers"
    """Sees who created the match, who requested actions, and the complete callback URL."""
    CREATORS = "creators"
    """Sees what managers see, and the passwords, because the principal may create matches."""

    @property
    def sees_creator(self) -> bool:
        """True if the audience sees who created the match, and the complete callback URL."""
        return self in (Audience.MANAGERS, Audience.CREATORS)

    @property
    def sees_actors(self) -> bool:
        """True if the audience sees who requested an action."""
        return self is Audience.REFEREES or self.sees_creator

    @property
    def may_connect(self) -> bool:
        """True if the audience sees the complete command with which players connect."""
        return self in (Audience.CASTERS, Audience.REFEREES, Audience.CREATORS)


class Scope(StrEnum):
    """What a key may be used for."""

    SERVERS_READ = "servers:read"
    SERVERS_WRITE = "servers:write"


class KeyState(StrEnum):
    """Whether a key is valid."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The authenticated sender of a request: an organization, and one of its keys or sessions."""

    org_id: str
    key_id: str
    role: Role | ConsoleRole
    scopes: frozenset[Scope]
    session_id: str | None = None
    """The id of a console session; None for a request to the API."""

    @property
    def actor(self) -> str:
        """The actor in audit entries: the id of the session or, without a session, of the key."""
        return self.key_id if self.session_id is None else self.session_id

    @property
    def may_create(self) -> bool:
        """True if the sender can create, cancel and rule on matches."""
        return Scope.SERVERS_WRITE in self.scopes and self.role in MANAGERS

    @property
    def may_act(self) -> bool:
        """True if the sender can request actions on a match, acknowledge it and redeliver its callback."""
        return self.may_create or self.role is ConsoleRole.REFEREE

    @property
    def audience(self) -> Audience:
        """The audience that the sender belongs to. It determines which details of a match the sender sees."""
        match self.role:
            case Role.MEMBER:
                return Audience.MEMBERS
            case ConsoleRole.CASTER:
                return Audience.CASTERS
            case ConsoleRole.REFEREE:
                return Audience.REFEREES
            case Role.OWNER | Role.ADMIN:
                return Audience.CREATORS if Scope.SERVERS_WRITE in self.scopes else Audience.MANAGERS


class OrganizationView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An organization, as shown to operators."""

    id: str
    name: str
    created_at: str


class KeyView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A key as shown to operators, without its text."""

    id: str
    name: str
    prefix: str
    role: Role
    scopes: tuple[Scope, ...]
    state: KeyState
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """A new key and its text. Only the hash and the first characters of the text are stored."""

    text: str
    view: KeyView

    def __repr__(self) -> str:
        return f"NewKey({self.view.id})"


class _Owned(Protocol):
    """A row that belongs to an organization."""

    @property
    def org_id(self) -> str: ...


_Row = TypeVar("_Row", bound=_Owned)


def require_own(principal: Principal, row: _Row | None, what: str) -> _Row:
    """Return the row. Raise NotFoundError if it is None, ForbiddenError if it belongs to another organization."""
    if row is None:
        raise NotFoundError(f"There is no {what} with this id.")
    if row.org_id != principal.org_id:
        raise ForbiddenError(f"This {what} belongs to another organization.")
    return row


def is_past(at_ms: int | None, now_ms: int) -> bool:
    """True if the time has passed; False for None, which means no expiry."""
    return at_ms is not None and at_ms <= now_ms


def state_of(key: ApiKey, now_ms: int) -> KeyState:
    if key.revoked_at_ms is not None:
        return KeyState.REVOKED
    return KeyState.EXPIRED if is_past(key.expires_at_ms, now_ms) else KeyState.ACTIVE


def scopes_of(key: ApiKey) -> tuple[Scope, ...]:
    # Ignore scopes that this version does not know.
    return tuple(scope for scope in Scope if scope in key.scopes)


def principal_of(key: ApiKey) -> Principal:
    return Principal(org_id=key.org_id, key_id=key.id, role=Role(key.role), scopes=frozenset(scopes_of(key)))


def principal_of_link(org_id: str, session_id: str, role: str) -> Principal | None:
    """Return the principal of a session that was begun with a link; None if this version does not know the role."""
    known = next((link_role for link_role in LINK_ROLES if link_role == role), None)
    if known is None:
        return None
    scopes = frozenset([Scope.SERVERS_READ] if known in (Role.MEMBER, ConsoleRole.CASTER) else Scope)
    return Principal(org_id=org_id, key_id=session_id, role=known, scopes=scopes, session_id=session_id)


def key_view(key: ApiKey, now_ms: int) -> KeyView:
    return view_of(KeyView, key, role=Role(key.role), scopes=scopes_of(key), state=state_of(key, now_ms))
