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
from typing import Final

import msgspec

from matchpod.core.errors import UnauthorizedError
from matchpod.core.text_rules import shown, unprintable_in
from matchpod.ports import Clock, Database, DatabaseError, DuplicateError, Statement, Vault
from matchpod.service import webhook_signature
from matchpod.service.availability import unavailable_when_away
from matchpod.service.identifiers import TOKEN_RANDOM_BYTES, new_token
from matchpod.service.principals import (
    KeyState,
    KeyView,
    NewKey,
    OrganizationView,
    Principal,
    Role,
    Scope,
    is_past,
    key_view,
    organization_view,
    principal_of,
    scopes_of,
    state_of,
)
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


class AccessError(Exception):
    """An organization or key cannot be made, found or changed; the message is a sentence that says why."""


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
        if known is None or is_past(known.expires_at_ms, now_ms):
            raise UnauthorizedError(KEY_INVALID)
        return known.principal

    async def _look_up(self, key_hash: str, now_ms: int) -> _Known | None:
        """Ask the database and remember good keys only: bad ones are free to make and would push out the good."""
        key = await api_keys.by_hash(self._db, key_hash)
        # Taken out after the wait: a request beside this one may have noted the use meanwhile.
        before = self._known.pop(key_hash, None)
        if key is None or state_of(key, now_ms) is not KeyState.ACTIVE:
            return None
        noted_at_ms = max(key.last_used_at_ms or 0, before.use_noted_at_ms if before else 0)
        is_use_new = now_ms - noted_at_ms >= NOTE_USE_MS
        known = _Known(
            principal=principal_of(key),
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
        organization = self._new_organization(name)
        await self._insert_organization(organization)
        return organization_view(organization)

    async def found_organization(self, name: str, *, key_name: str) -> NewKey:
        """Add an organization with an owner's key that opens everything: both or neither."""
        organization = self._new_organization(name)
        text, key = self._new_key(organization.id, name=key_name, role=Role.OWNER, scopes=frozenset(Scope))
        await self._insert_organization(organization, api_keys.insertion(key))
        return self._announce(text, key)

    async def organizations(self) -> list[OrganizationView]:
        """All organizations, by name."""
        return [organization_view(organization) for organization in await organizations.list(self._db)]

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

    def _new_organization(self, name: str) -> Organization:
        _check_name(name, "The name of an organization", shortest=1)
        sealed, now_ms = self._vault.seal(self._new_webhook_secret()), self._clock.now_ms()
        return Organization(id=self._new_id("org"), name=name, webhook_secret=sealed, created_at_ms=now_ms)

    async def _insert_organization(self, organization: Organization, *also: Statement) -> None:
        try:
            await organizations.create(self._db, organization, *also)
        except DuplicateError as exc:
            raise AccessError(f"There is an organization named {organization.name} already.") from exc
        _log.info("organization created", extra={"org_id": organization.id})

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
        text, key = self._new_key(organization.id, name=name, role=role, scopes=scopes, lifetime_ms=lifetime_ms)
        await api_keys.insert(self._db, key)
        return self._announce(text, key)

    async def keys(self, org_name: str) -> list[KeyView]:
        """All keys of an organization, ended ones included, the oldest first."""
        organization = await self._organization(org_name)
        now_ms = self._clock.now_ms()
        return [key_view(key, now_ms) for key in await api_keys.list(self._db, organization.id)]

    async def rotate_key(self, key_id: str, *, overlap_s: int) -> NewKey:
        """Make a key like this one, which goes on for `overlap_s`; the new one lives as long as the old one was to."""
        if not 0 <= overlap_s <= MAX_OVERLAP_S:
            raise AccessError(f"An old key goes on for 0 seconds to {MAX_OVERLAP_S // DAY_S} days.")
        old = await self._key(key_id)
        now_ms = self._clock.now_ms()
        state = state_of(old, now_ms)
        if state is not KeyState.ACTIVE:
            raise AccessError(f"The key {old.id} is {state}; make a new one instead.")
        lifetime_ms = None if old.expires_at_ms is None else old.expires_at_ms - old.created_at_ms
        # The new one first: if we die in between, the old one goes on as if nothing had happened.
        text, key = self._new_key(
            old.org_id, name=old.name, role=Role(old.role), scopes=scopes_of(old), lifetime_ms=lifetime_ms
        )
        await api_keys.insert(self._db, key)
        await api_keys.expire_at(self._db, old.id, now_ms + overlap_s * 1000)
        self._known.clear()
        _log.info("key rotated", extra={"key_id": old.id, "new_key_id": key.id, "org_id": old.org_id})
        return NewKey(text=text, view=key_view(key, now_ms))

    async def revoke_key(self, key_id: str) -> bool:
        """End a key, everywhere within CACHE_MS; False when it was revoked before, AccessError when there is none."""
        key = await self._key(key_id)
        if not await api_keys.revoke(self._db, key.id, self._clock.now_ms()):
            return False
        self._known.clear()
        _log.info("key revoked", extra={"key_id": key.id, "org_id": key.org_id})
        return True

    def _new_key(
        self, org_id: str, *, name: str, role: Role, scopes: Collection[Scope], lifetime_ms: int | None = None
    ) -> tuple[str, ApiKey]:
        """The text of a key, and what is stored of it."""
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
        return text, key

    def _announce(self, text: str, key: ApiKey) -> NewKey:
        _log.info("key created", extra={"key_id": key.id, "org_id": key.org_id, "role": key.role})
        return NewKey(text=text, view=key_view(key, key.created_at_ms))

    async def _key(self, key_id: str) -> ApiKey:
        found = None if unprintable_in(key_id) else await api_keys.get(self._db, key_id)
        if found is None:
            raise AccessError(f"There is no key with the id {shown(key_id)!r}.")
        return found

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


def _check_name(name: str, what: str, *, shortest: int) -> None:
    if not shortest <= len(name) <= MAX_NAME or name != name.strip():
        raise AccessError(f"{what} has {shortest} to {MAX_NAME} characters and no blanks around it.")
    if code := unprintable_in(name):
        raise AccessError(f"{what} must not contain control or format characters (found {code}).")
