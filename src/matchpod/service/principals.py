"""Define roles, scopes and principals, and build the operator views of organizations and keys."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from matchpod.core.result import iso_time
from matchpod.storage.api_keys import ApiKey
from matchpod.storage.organizations import Organization


class Role(StrEnum):
    """The role of a key's holder in the organization."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class Scope(StrEnum):
    """What a key may access."""

    SERVERS_READ = "servers:read"
    SERVERS_WRITE = "servers:write"


class KeyState(StrEnum):
    """Whether a key can be used."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The authenticated sender of a request: an organization and one of its keys."""

    org_id: str
    key_id: str
    role: Role
    scopes: frozenset[Scope]

    @property
    def may_create(self) -> bool:
        """True if the key can create and cancel matches."""
        return Scope.SERVERS_WRITE in self.scopes and self.role in (Role.OWNER, Role.ADMIN)


class OrganizationView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An organization, as shown to operators."""

    id: str
    name: str
    created_at: str


class KeyView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A key, as shown to operators: without its text."""

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
    """A new key with its text, which is not stored."""

    text: str
    view: KeyView

    def __repr__(self) -> str:
        return f"NewKey({self.view.id})"


def is_past(at_ms: int | None, now_ms: int) -> bool:
    """True if the time has passed; None never passes."""
    return at_ms is not None and at_ms <= now_ms


def state_of(key: ApiKey, now_ms: int) -> KeyState:
    """The state of a key at this time."""
    if key.revoked_at_ms is not None:
        return KeyState.REVOKED
    return KeyState.EXPIRED if is_past(key.expires_at_ms, now_ms) else KeyState.ACTIVE


def scopes_of(key: ApiKey) -> tuple[Scope, ...]:
    """The scopes of a key."""
    # Ignore scopes that only a newer version knows.
    return tuple(scope for scope in Scope if scope in key.scopes)


def principal_of(key: ApiKey) -> Principal:
    """The principal of a key."""
    return Principal(org_id=key.org_id, key_id=key.id, role=Role(key.role), scopes=frozenset(scopes_of(key)))


def organization_view(row: Organization) -> OrganizationView:
    """The operator view of an organization."""
    return OrganizationView(id=row.id, name=row.name, created_at=iso_time(row.created_at_ms))


def key_view(key: ApiKey, now_ms: int) -> KeyView:
    """The operator view of a key."""
    return KeyView(
        id=key.id,
        name=key.name,
        prefix=key.prefix,
        role=Role(key.role),
        scopes=scopes_of(key),
        state=state_of(key, now_ms),
        created_at=iso_time(key.created_at_ms),
        expires_at=_time(key.expires_at_ms),
        revoked_at=_time(key.revoked_at_ms),
        last_used_at=_time(key.last_used_at_ms),
    )


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else iso_time(at_ms)
