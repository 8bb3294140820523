"""Who is calling, and what may they do? Organizations, their API keys, and what a key opens.

A key is shown once, when it is made; only its SHA-256 is kept (256 bits of chance need no slow hash). Callers are
told whether the header is missing or malformed; an unknown, a revoked and an expired key all hear the same sentence,
so that nobody learns which keys exist. What a key opens is remembered for CACHE_MS: that long a revoked one goes on.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
from collections.abc import Callable, Collection
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.core.errors import UnauthorizedError
from matchpod.core.result import iso_time
from matchpod.core.text_rules import shown, unprintable_in
from matchpod.ports import Clock, Database, DatabaseError, DuplicateError, Vault
from matchpod.service import webhook_signature
from matchpod.service.availability import unavailable_when_away
from matchpod.service.identifiers import TOKEN_RANDOM_BYTES, new_token
from matchpod.storage import api_keys, organizations
from matchpod.storage.api_keys import ApiKey
from matchpod.storage.organizations import Organization

KEY_MISSING: Final = "An API key is needed; send the header `Authorization: Bearer <key>`."
KEY_MALFORMED: Final = "The Authorization header must read `Bearer <key>`."
KEY_INVALID: Final = "The API key is not valid."

KEY_PREFIX: Final = "mk_live_"
"""Lets people and secret scanners see what a leaked text is."""
SHOWN_CHARACTERS: Final = len(KEY_PREFIX) + 4
"""Of a key's text, kept to tell keys apart: the other 39 characters are not guessed."""

CACHE_MS: Final = 5_000
"""A key is looked up once in this time, however many requests it makes; a revoked one ends within it."""
MAX_CACHED: Final = 4_096
"""Keys in use at the same moment; past that the one looked up first is looked up again."""
NOTE_USE_MS: Final = 60_000
"""The last use of a key is for people, to whom a minute is near enough; a write a request would be dear."""

MAX_NAME: Final = 64
"""Of organizations and keys: fits a line of a listing."""
DAY_S: Final = 24 * 60 * 60
MAX_EXPIRES_IN_S: Final = 3_650 * DAY_S
"""Ten years: more is a slip of the finger, and none at all can be had by leaving it out."""
MAX_OVERLAP_S: Final = 30 * DAY_S
"""An old key that goes on for longer was not rotated."""

_ID_RANDOM_BYTES: Final = 10
_KEY_TEXT: Final = re.compile(r"mk_live_[A-Za-z0-9_-]{43}")

_log = logging.getLogger(__name__)


class Role(StrEnum):
    """What the holder of a key is to the organization."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class Scope(StrEnum):
    """What a key was made for."""

    SERVERS_READ = "servers:read"
    SERVERS_WRITE = "servers:write"


class KeyState(StrEnum):
    """Whether a key opens anything."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


class AccessError(Exception):
    """An organization or key cannot be made, found or changed; the message is a sentence that says why."""


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who makes a request: an organization, by one of its keys."""

    org_id: str
    key_id: str
    role: Role
    scopes: frozenset[Scope]

    @property
    def may_create(self) -> bool:
        """True when the key can create and cancel matches."""
        return Scope.SERVERS_WRITE in self.scopes and self.role in (Role.OWNER, Role.ADMIN)


class OrganizationView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An organization as operators see it."""

    id: str
    name: str
    created_at: str


class KeyView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A key as operators see it: everything but its text."""

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
    """A key that was just made, with the text that is never seen again."""

    text: str
    view: KeyView

    def __repr__(self) -> str:
        return f"NewKey({self.view.id})"


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """A key that was good when it was looked up."""

    principal: Principal
    looked_up_at_ms: int
    expires_at_ms: int | None
    use_noted_at_ms: int


class Access:
    """Organizations and keys: the door of the API, and what the command line does about it."""

    def __init__(
        self, *, db: Database, clock: Clock, vault: Vault, random_bytes: Callable[[int], bytes] = secrets.token_bytes
    ) -> None:
        self._db = db
        self._clock = clock
        self._vault = vault
        self._random_bytes = random_bytes
        self._known: dict[str, _Known] = {}

    # --- the door -------------------------------------------------------------------------------------------------

    @unavailable_when_away
    async def authenticate(self, authorization: str | None) -> Principal:
        """Who sent this Authorization header; UnauthorizedError when it names nobody."""
        key_hash = _hash(_read_header(authorization))
        now_ms = self._clock.now_ms()
        known = self._known.get(key_hash)
        if known is None or now_ms - known.looked_up_at_ms >= CACHE_MS:
            known = await self._look_up(key_hash, now_ms)
        if known is None or _is_past(known.expires_at_ms, now_ms):
            raise UnauthorizedError(KEY_INVALID)
        return known.principal

    async def _look_up(self, key_hash: str, now_ms: int) -> _Known | None:
        """Ask the database and remember good keys only: bad ones are free to make and would push out the good."""
        key = await api_keys.by_hash(self._db, key_hash)
        # Taken out after the wait: a request beside this one may have noted the use meanwhile.
        before = self._known.pop(key_hash, None)
        if key is None or _state(key, now_ms) is not KeyState.ACTIVE:
            return None
        noted_at_ms = max(key.last_used_at_ms or 0, before.use_noted_at_ms if before else 0)
        is_use_new = now_ms - noted_at_ms >= NOTE_USE_MS
        known = _Known(
            principal=_principal(key),
            looked_up_at_ms=now_ms,
            expires_at_ms=key.expires_at_ms,
            use_noted_at_ms=now_ms if is_use_new else noted_at_ms,
        )
        if len(self._known) >= MAX_CACHED:
            del self._known[next(iter(self._known))]
        self._known[key_hash] = known
        if is_use_new:
            await self._note_use(key.id, now_ms)
        return known

    async def _note_use(self, key_id: str, now_ms: int) -> None:
        try:
            await api_keys.mark_used(self._db, key_id, now_ms)
        except DatabaseError as exc:
            # The key is good: a database that can be read but not written must not lock its holder out.
            _log.warning("use of a key not noted", extra={"key_id": key_id, "reason": str(exc)})

    # --- organizations --------------------------------------------------------------------------------------------

    async def create_organization(self, name: str) -> OrganizationView:
        """Add an organization with a webhook secret of its own; AccessError when the name is taken or unfit."""
        _check_name(name, "The name of an organization", shortest=1)
        organization = Organization(
            id=self._new_id("org"),
            name=name,
            webhook_secret=self._vault.seal(self._new_webhook_secret()),
            created_at_ms=self._clock.now_ms(),
        )
        try:
            await organizations.create(self._db, organization)
        except DuplicateError as exc:
            raise AccessError(f"There is an organization named {name} already.") from exc
        _log.info("organization created", extra={"org_id": organization.id})
        return _organization_view(organization)

    async def organizations(self) -> list[OrganizationView]:
        """All organizations, by name."""
        return [_organization_view(organization) for organization in await organizations.list(self._db)]

    async def has_organizations(self) -> bool:
        """False on a new database."""
        return bool(await organizations.list(self._db))

    async def webhook_secret(self, org_name: str) -> str:
        """The secret that signs the organization's callbacks."""
        organization = await self._organization(org_name)
        try:
            return self._vault.open(organization.webhook_secret)
        except ValueError as exc:
            raise AccessError(f"The webhook secret of {org_name} cannot be opened: {exc}.") from exc

    async def replace_webhook_secret(self, org_name: str) -> str:
        """A new secret for the organization's callbacks, from the next attempt on."""
        organization = await self._organization(org_name)
        secret = self._new_webhook_secret()
        await organizations.set_webhook_secret(self._db, organization.id, self._vault.seal(secret))
        _log.info("webhook secret replaced", extra={"org_id": organization.id})
        return secret

    async def _organization(self, name: str) -> Organization:
        # A name that cannot be stored cannot be asked for either: PostgreSQL refuses a NUL in a parameter.
        found = None if unprintable_in(name) else await organizations.by_name(self._db, name)
        if found is None:
            raise AccessError(f"There is no organization named {shown(name)!r}.")
        return found

    # --- keys -----------------------------------------------------------------------------------------------------

    async def create_key(
        self, org_name: str, *, name: str = "", role: Role, scopes: Collection[Scope], expires_in_s: int | None = None
    ) -> NewKey:
        """Make a key; its text is in the answer and nowhere else. Without `expires_in_s` it does not expire."""
        _check_name(name, "The name of a key", shortest=0)
        if not scopes:
            raise AccessError("A key without a scope opens nothing; give it at least one.")
        if expires_in_s is not None and not 0 < expires_in_s <= MAX_EXPIRES_IN_S:
            raise AccessError(f"A key expires after 1 second to {MAX_EXPIRES_IN_S // DAY_S} days, or never.")
        organization = await self._organization(org_name)
        lifetime_ms = None if expires_in_s is None else expires_in_s * 1000
        key = await self._insert_key(organization.id, name=name, role=role, scopes=scopes, lifetime_ms=lifetime_ms)
        _log.info("key created", extra={"key_id": key.view.id, "org_id": organization.id, "role": role.value})
        return key

    async def keys(self, org_name: str) -> list[KeyView]:
        """All keys of an organization, ended ones included, the oldest first."""
        organization = await self._organization(org_name)
        now_ms = self._clock.now_ms()
        return [_key_view(key, now_ms) for key in await api_keys.list(self._db, organization.id)]

    async def rotate_key(self, key_id: str, *, overlap_s: int) -> NewKey:
        """Make a key like this one, which goes on for `overlap_s`; the new one lives as long as the old one was to."""
        if not 0 <= overlap_s <= MAX_OVERLAP_S:
            raise AccessError(f"An old key goes on for 0 seconds to {MAX_OVERLAP_S // DAY_S} days.")
        old = await self._key(key_id)
        now_ms = self._clock.now_ms()
        state = _state(old, now_ms)
        if state is not KeyState.ACTIVE:
            raise AccessError(f"The key {old.id} is {state}; make a new one instead.")
        lifetime_ms = None if old.expires_at_ms is None else old.expires_at_ms - old.created_at_ms
        # The new one first: if we die in between, the old one goes on as if nothing had happened.
        key = await self._insert_key(
            old.org_id, name=old.name, role=Role(old.role), scopes=_scopes(old), lifetime_ms=lifetime_ms
        )
        await api_keys.expire_at(self._db, old.id, now_ms + overlap_s * 1000)
        self._known.clear()
        _log.info("key rotated", extra={"key_id": old.id, "new_key_id": key.view.id, "org_id": old.org_id})
        return key

    async def revoke_key(self, key_id: str) -> bool:
        """End a key, everywhere within CACHE_MS; False when it was revoked before, AccessError when there is none."""
        key = await self._key(key_id)
        if not await api_keys.revoke(self._db, key.id, self._clock.now_ms()):
            return False
        self._known.clear()
        _log.info("key revoked", extra={"key_id": key.id, "org_id": key.org_id})
        return True

    async def _insert_key(
        self, org_id: str, *, name: str, role: Role, scopes: Collection[Scope], lifetime_ms: int | None
    ) -> NewKey:
        now_ms = self._clock.now_ms()
        text = KEY_PREFIX + new_token(self._random_bytes(TOKEN_RANDOM_BYTES))
        key = ApiKey(
            id=self._new_id("key"),
            org_id=org_id,
            name=name,
            prefix=text[:SHOWN_CHARACTERS],
            key_hash=_hash(text),
            role=role.value,
            scopes=tuple(scope.value for scope in Scope if scope in scopes),
            created_at_ms=now_ms,
            expires_at_ms=None if lifetime_ms is None else now_ms + lifetime_ms,
        )
        await api_keys.insert(self._db, key)
        return NewKey(text=text, view=_key_view(key, now_ms))

    async def _key(self, key_id: str) -> ApiKey:
        # Walks over all keys: rotations are rare and done by hand.
        for organization in await organizations.list(self._db):
            for key in await api_keys.list(self._db, organization.id):
                if key.id == key_id:
                    return key
        raise AccessError(f"There is no key with the id {shown(key_id)!r}.")

    def _new_id(self, kind: str) -> str:
        return f"{kind}_{self._random_bytes(_ID_RANDOM_BYTES).hex()}"

    def _new_webhook_secret(self) -> str:
        return webhook_signature.new_secret(self._random_bytes(webhook_signature.SECRET_BYTES))


def _read_header(authorization: str | None) -> str:
    """The key in an Authorization header; the word Bearer in any case, as HTTP has it."""
    header = (authorization or "").strip(" \t")
    if not header:
        raise UnauthorizedError(KEY_MISSING)
    scheme, _, key = header.partition(" ")
    key = key.lstrip(" ")
    if scheme.lower() != "bearer" or not key or " " in key:
        raise UnauthorizedError(KEY_MALFORMED)
    if not _KEY_TEXT.fullmatch(key):  # never one of ours: not worth asking the database
        raise UnauthorizedError(KEY_INVALID)
    return key


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _is_past(at_ms: int | None, now_ms: int) -> bool:
    return at_ms is not None and at_ms <= now_ms


def _state(key: ApiKey, now_ms: int) -> KeyState:
    if key.revoked_at_ms is not None:
        return KeyState.REVOKED
    return KeyState.EXPIRED if _is_past(key.expires_at_ms, now_ms) else KeyState.ACTIVE


def _scopes(key: ApiKey) -> tuple[Scope, ...]:
    # A scope that only a newer version knows opens nothing here.
    return tuple(scope for scope in Scope if scope in key.scopes)


def _principal(key: ApiKey) -> Principal:
    return Principal(org_id=key.org_id, key_id=key.id, role=Role(key.role), scopes=frozenset(_scopes(key)))


def _organization_view(row: Organization) -> OrganizationView:
    return OrganizationView(id=row.id, name=row.name, created_at=iso_time(row.created_at_ms))


def _key_view(key: ApiKey, now_ms: int) -> KeyView:
    return KeyView(
        id=key.id,
        name=key.name,
        prefix=key.prefix,
        role=Role(key.role),
        scopes=_scopes(key),
        state=_state(key, now_ms),
        created_at=iso_time(key.created_at_ms),
        expires_at=_time(key.expires_at_ms),
        revoked_at=_time(key.revoked_at_ms),
        last_used_at=_time(key.last_used_at_ms),
    )


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else iso_time(at_ms)


def _check_name(name: str, what: str, *, shortest: int) -> None:
    if not shortest <= len(name) <= MAX_NAME or name != name.strip():
        raise AccessError(f"{what} has {shortest} to {MAX_NAME} characters and no blanks around it.")
    if code := unprintable_in(name):
        raise AccessError(f"{what} must not contain control or format characters (found {code}).")
