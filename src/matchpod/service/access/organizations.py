"""Manage organizations and their API keys, and authenticate requests.

A key is shown once, at creation; only its SHA-256 is stored (256 random bits need no slow hash). Unknown, revoked and
expired keys get the same error text, so the text does not reveal which keys exist; only a missing or malformed header
gets another text. Keys are cached for CACHE_MS, so for that time other processes may still accept a key that was
revoked.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
from collections.abc import Callable, Collection, Sequence
from typing import Final

import msgspec

from cs2_protocol.text import unprintable_in
from matchpod.core.errors import InvalidParamsError, UnauthorizedError
from matchpod.core.faults import stated_fault
from matchpod.core.requests.text_rules import printable
from matchpod.ports import Clock, Database, DatabaseError, DuplicateError, Statement, Vault
from matchpod.service.access import webhook_signature
from matchpod.service.access.audit import COMMAND_LINE, Action, Audit
from matchpod.service.access.failed_logins import Address, FailedLogIns, LogInKind
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.identifiers import TOKEN_RANDOM_BYTES, new_token
from matchpod.service.identity.principals import (
    KeyState,
    KeyView,
    NewKey,
    OrganizationView,
    Principal,
    Role,
    Scope,
    is_past,
    key_view,
    principal_of,
    scopes_of,
    state_of,
)
from matchpod.service.row_views import view_of
from matchpod.storage import api_keys, audit_log, organizations
from matchpod.storage.api_keys import ApiKey
from matchpod.storage.organizations import Organization

KEY_MISSING: Final = "Missing API key. Send the header `Authorization: Bearer <key>`."
KEY_MALFORMED: Final = "Malformed Authorization header. Expected `Bearer <key>`."
KEY_INVALID: Final = "The API key is not valid."

KEY_PREFIX: Final = "mk_live_"
"""The prefix of every API key, by which people and secret scanners recognize a leaked key."""
SHOWN_CHARACTERS: Final = len(KEY_PREFIX) + 4
"""Number of characters at the start of a key that are stored, so that people can tell keys apart. The other 39
characters cannot be guessed."""

CACHE_MS: Final = 3_000
"""Time for which a key is cached. A key that another process revokes may still work for this time."""
MAX_CACHED: Final = 4_096
"""Maximum number of cached keys. If the cache is full, the key whose database read is oldest is dropped."""
OLD_SECRET_MS: Final = 24 * 60 * 60 * 1000
"""Time after the replacement of a webhook secret in which callbacks are also signed with the old secret."""

RECORD_USE_MS: Final = 60_000
"""Minimum time between two updates of a key's last use. A write per request would be expensive."""

MAX_NAME: Final = 64
"""Maximum number of characters in the name of an organization or key, so that the name fits one line of a list."""
DAY_S: Final = 24 * 60 * 60
MAX_EXPIRES_IN_S: Final = 3_650 * DAY_S
"""Maximum lifetime of a key that expires: ten years. A longer lifetime is almost certainly a typo."""
MAX_OVERLAP_S: Final = 30 * DAY_S
"""Maximum time for which the old key may stay valid after a rotation."""

_ID_RANDOM_BYTES: Final = 10
_REPLACED_BY: Final = "replaced by "
"""Prefix of the detail in the audit entry of a key rotation. The id of the new key follows."""
_BEARER: Final = b"Bearer "
"""The usual beginning of the Authorization header. Clients may write the scheme in lower case, too."""
_KEY_TEXT: Final = re.compile(r"mk_live_[A-Za-z0-9_-]{43}")

_log = logging.getLogger(__name__)


class AccessError(InvalidParamsError):
    """An organization or key cannot be created, found or changed. The message is a sentence for operators and owners.

    `field` names the invalid field: `name`, `scopes` or `lifetime`. It is empty for other errors.
    """

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message, (stated_fault(field, message),) if field else ())


class _CachedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that was active when it was read from the database."""

    principal: Principal
    looked_up_at_ms: int
    expires_at_ms: int | None
    use_recorded_at_ms: int


class Access:
    """Organizations and API keys: authentication for the API, management for the command line and the console.

    Changes are recorded in the audit log; `actor` is the key, session or operator that made the change.
    """

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        vault: Vault,
        audit: Audit | None = None,
        failures: FailedLogIns | None = None,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
        max_cached: int = MAX_CACHED,
    ) -> None:
        self._db = db
        self._clock = clock
        self._vault = vault
        self._max_cached = max_cached
        self._random_bytes = random_bytes
        self._audit = audit or Audit(db=db, clock=clock)
        self.failures = failures or FailedLogIns(audit=self._audit)
        self._cache: dict[str, _CachedKey] = {}

    # --- authentication -------------------------------------------------------------------------------------------

    @unavailable_on_outage
    async def authenticate(
        self, authorization: str | None, *, address: Address | None = None, kind: LogInKind = LogInKind.API_KEY
    ) -> Principal:
        """Return the principal of an Authorization header; UnauthorizedError if it has no valid key.

        Raise RateLimitError instead if too many log-ins from the address have failed.
        """
        try:
            key_hash = _hash(_read_header(authorization))
        except UnauthorizedError:
            if authorization and address is not None:
                await self.failures.add(address(), kind)
            raise
        now_ms = self._clock.now_ms()
        cached = self._cache.get(key_hash)
        if cached is None or now_ms - cached.looked_up_at_ms >= CACHE_MS or is_past(cached.expires_at_ms, now_ms):
            key = await api_keys.by_hash(self._db, key_hash)
            if key is None or state_of(key, now_ms) is not KeyState.ACTIVE:
                self._cache.pop(key_hash, None)
                ids = {} if key is None else {"org_id": key.org_id, "key_id": key.id}
                await self.failures.add(None if address is None else address(), kind, **ids)
                raise UnauthorizedError(KEY_INVALID)
            cached = await self._cache_key(key, now_ms)
        return cached.principal

    def known(self, authorization: bytes) -> Principal | None:
        """Return the principal of a header's key if the key is cached; None if `authenticate` must be called."""
        key = authorization[len(_BEARER) :]
        cached = self._cache.get(hashlib.sha256(key).hexdigest()) if authorization.startswith(_BEARER) else None
        if cached is None:
            return None
        now_ms = self._clock.now_ms()
        is_current = now_ms - cached.looked_up_at_ms < CACHE_MS and not is_past(cached.expires_at_ms, now_ms)
        return cached.principal if is_current else None

    @unavailable_on_outage
    async def active_keys(self, key_ids: Sequence[str]) -> set[str]:
        """Return which of the `key_ids` belong to active keys, and drop the other keys from the cache."""
        now_ms = self._clock.now_ms()
        active: set[str] = set()
        for key in await api_keys.by_ids(self._db, key_ids):
            if state_of(key, now_ms) is KeyState.ACTIVE:
                active.add(key.id)
            else:
                self._cache.pop(key.key_hash, None)
        return active

    async def _cache_key(self, key: ApiKey, now_ms: int) -> _CachedKey:
        """Cache a key that was just read and is active. (Cached inactive keys would evict active keys.)"""
        # Get the old cache entry only now: while the key was read, a concurrent request may have recorded its use.
        before = self._cache.pop(key.key_hash, None)
        recorded_at_ms = max(key.last_used_at_ms or 0, before.use_recorded_at_ms if before else 0)
        is_use_new = now_ms - recorded_at_ms >= RECORD_USE_MS
        cached = _CachedKey(
            principal=principal_of(key),
            looked_up_at_ms=now_ms,
            expires_at_ms=key.expires_at_ms,
            use_recorded_at_ms=now_ms if is_use_new else recorded_at_ms,
        )
        if len(self._cache) >= self._max_cached:
            del self._cache[next(iter(self._cache))]
        self._cache[key.key_hash] = cached
        if is_use_new:
            await self._record_use(key.id, now_ms)
        return cached

    async def _record_use(self, key_id: str, now_ms: int) -> None:
        try:
            await api_keys.mark_used(self._db, key_id, now_ms)
        except DatabaseError as exc:
            # The key is valid, so a request with it must not fail because of this write.
            _log.warning("key use not recorded", extra={"key_id": key_id, "reason": str(exc)})

    # --- organizations --------------------------------------------------------------------------------------------

    async def create_organization(self, name: str, *, actor: str = COMMAND_LINE) -> OrganizationView:
        """Create an organization with its own webhook secret; AccessError if the name is taken or invalid."""
        organization = self._new_organization(name)
        await self._insert_organization(organization, actor)
        return view_of(OrganizationView, organization)

    async def create_organization_with_key(
        self, name: str, *, key_name: str, text: str | None = None, actor: str = COMMAND_LINE
    ) -> NewKey:
        """Create an organization and an owner key with all scopes, in one transaction.

        `text` is the text of the key; if None, it is random. Raise AccessError if the name or the key is taken.
        """
        organization = self._new_organization(name)
        text, key = self._new_key(organization.id, name=key_name, role=Role.OWNER, scopes=frozenset(Scope), text=text)
        await self._insert_organization(organization, actor, api_keys.insert(key), self._key_created(key, actor))
        return self._log_created(text, key)

    async def organizations(self) -> list[OrganizationView]:
        """Return all organizations, sorted by name."""
        return [view_of(OrganizationView, organization) for organization in await organizations.list(self._db)]

    async def webhook_secret(self, org_name: str) -> str:
        """Return the secret with which the organization's callbacks are signed."""
        organization = await self._organization(org_name)
        try:
            return self._vault.open(organization.webhook_secret)
        except ValueError as exc:
            raise AccessError(f"The webhook secret of {org_name} cannot be decrypted: {exc}.") from exc

    async def reveal_webhook_secret(self, org_name: str, *, actor: str = COMMAND_LINE) -> str:
        """Add an audit entry, then return the webhook secret, so that it is never shown without an audit entry."""
        secret = await self.webhook_secret(org_name)
        organization = await self._organization(org_name)
        await self._db.write([self._audit.entry(Action.SECRET_REVEALED, org_id=organization.id, actor=actor)])
        return secret

    async def replace_webhook_secret(self, org_name: str, *, keeps_old: bool = True, actor: str = COMMAND_LINE) -> str:
        """Replace the webhook secret, and return the new secret, which is used from the next delivery attempt on.

        If `keeps_old`, callbacks are signed with both secrets for OLD_SECRET_MS, so that receivers have time to switch
        to the new secret.
        """
        organization = await self._organization(org_name)
        secret = self._new_webhook_secret()
        until_ms = self._clock.now_ms() + OLD_SECRET_MS if keeps_old else None
        sealed = self._vault.seal(secret)
        detail = "" if keeps_old else "without an overlap"
        record = self._audit.entry(Action.SECRET_REPLACED, org_id=organization.id, actor=actor, detail=detail)
        await organizations.set_webhook_secret(self._db, organization.id, sealed, record, old_until_ms=until_ms)
        _log.info("webhook secret replaced", extra={"org_id": organization.id})
        return secret

    async def end_old_webhook_secret(self, org_name: str, *, actor: str = COMMAND_LINE) -> None:
        """Stop signing callbacks with the old webhook secret."""
        organization = await self._organization(org_name)
        record = self._audit.entry(Action.OLD_SECRET_ENDED, org_id=organization.id, actor=actor)
        await organizations.forget_old_secret(self._db, organization.id, record)
        _log.info("old webhook secret is no longer used", extra={"org_id": organization.id})

    def _new_organization(self, name: str) -> Organization:
        check_name(name, "The name of an organization", shortest=1)
        sealed, now_ms = self._vault.seal(self._new_webhook_secret()), self._clock.now_ms()
        return Organization(id=self._new_id("org"), name=name, webhook_secret=sealed, created_at_ms=now_ms)

    async def _insert_organization(self, organization: Organization, actor: str, *also: Statement) -> None:
        record = self._audit.entry(
            Action.ORGANIZATION_CREATED, org_id=None, actor=actor, target=organization.id, detail=organization.name
        )
        try:
            await organizations.create(self._db, organization, *also, record)
        except DuplicateError as exc:
            raise AccessError(f"An organization named {organization.name} already exists.", field="name") from exc
        _log.info("organization created", extra={"org_id": organization.id})

    async def _organization(self, name: str) -> Organization:
        # Do not query for an unprintable name: no organization has such a name, and PostgreSQL rejects NUL characters.
        found = None if unprintable_in(name) else await organizations.by_name(self._db, name)
        if found is None:
            raise AccessError(f"There is no organization named {printable(name)!r}.")
        return found

    # --- keys -----------------------------------------------------------------------------------------------------

    async def create_key(
        self,
        org_name: str,
        *,
        name: str = "",
        role: Role,
        scopes: Collection[Scope],
        expires_in_s: int | None = None,
        actor: str = COMMAND_LINE,
    ) -> NewKey:
        """Create a key; without `expires_in_s` it never expires. The key's text is returned, but not stored."""
        check_name(name, "The name of a key", shortest=0)
        if not scopes:
            raise AccessError("A key needs at least one scope.", field="scopes")
        if expires_in_s is not None and not 0 < expires_in_s <= MAX_EXPIRES_IN_S:
            text = f"The lifetime of a key must be between 1 second and {MAX_EXPIRES_IN_S // DAY_S} days."
            raise AccessError(text, field="lifetime")
        organization = await self._organization(org_name)
        lifetime_ms = None if expires_in_s is None else expires_in_s * 1000
        text, key = self._new_key(organization.id, name=name, role=role, scopes=scopes, lifetime_ms=lifetime_ms)
        await self._db.write([api_keys.insert(key), self._key_created(key, actor)])
        return self._log_created(text, key)

    async def is_active_key(self, text: str) -> bool:
        """True if this is the text of an active key."""
        key = await api_keys.by_hash(self._db, _hash(text))
        return key is not None and state_of(key, self._clock.now_ms()) is KeyState.ACTIVE

    async def keys(self, org_name: str) -> list[KeyView]:
        """Return all keys of an organization, including expired and revoked keys, oldest first."""
        organization = await self._organization(org_name)
        now_ms = self._clock.now_ms()
        return [key_view(key, now_ms) for key in await api_keys.list(self._db, organization.id)]

    async def rotate_key(self, key_id: str, *, overlap_s: int, actor: str = COMMAND_LINE) -> NewKey:
        """Create a key with the same name, rights and lifetime. The old key expires after at most `overlap_s`."""
        if not 0 <= overlap_s <= MAX_OVERLAP_S:
            raise AccessError(f"The overlap must be between 0 seconds and {MAX_OVERLAP_S // DAY_S} days.")
        old = await self._key(key_id)
        now_ms = self._clock.now_ms()
        state = state_of(old, now_ms)
        if state is not KeyState.ACTIVE:
            raise AccessError(f"The key {old.id} is {state}. Create a new key instead.")
        text, key = self._new_key(
            old.org_id,
            name=old.name,
            role=Role(old.role),
            scopes=scopes_of(old),
            lifetime_ms=await self._original_lifetime_ms(old),
        )
        detail = f"{_REPLACED_BY}{key.id}"
        record = self._audit.entry(Action.KEY_ROTATED, org_id=key.org_id, actor=actor, target=old.id, detail=detail)
        expires_at_ms = now_ms + overlap_s * 1000
        if not await api_keys.expire_by(self._db, old.id, expires_at_ms, api_keys.insert(key), record):
            raise AccessError(f"The key {old.id} is {KeyState.REVOKED}. Create a new key instead.")
        self._cache.pop(old.key_hash, None)
        _log.info("key rotated", extra={"key_id": old.id, "new_key_id": key.id, "org_id": old.org_id})
        return NewKey(text=text, view=key_view(key, now_ms))

    async def revoke_key(self, key_id: str, *, actor: str = COMMAND_LINE) -> bool:
        """Revoke a key; False if it was already revoked, AccessError if there is no such key.

        Other processes may still accept the key for CACHE_MS.
        """
        key = await self._key(key_id)
        record = self._audit.entry(Action.KEY_REVOKED, org_id=key.org_id, actor=actor, target=key.id)
        if not await api_keys.revoke(self._db, key.id, self._clock.now_ms(), record):
            return False
        self._cache.pop(key.key_hash, None)
        _log.info("key revoked", extra={"key_id": key.id, "org_id": key.org_id})
        return True

    async def _original_lifetime_ms(self, key: ApiKey) -> int | None:
        """Return the lifetime with which a key was created, even if a rotation has shortened it; None if unlimited."""
        while detail := await audit_log.first_detail(self._db, key.org_id, Action.KEY_ROTATED.value, target=key.id):
            replacement = await api_keys.get(self._db, detail.removeprefix(_REPLACED_BY))
            if replacement is None:
                break
            key = replacement
        return None if key.expires_at_ms is None else key.expires_at_ms - key.created_at_ms

    def _new_key(
        self,
        org_id: str,
        *,
        name: str,
        role: Role,
        scopes: Collection[Scope],
        lifetime_ms: int | None = None,
        text: str | None = None,
    ) -> tuple[str, ApiKey]:
        """Return the text and the row of a new key; the text is random unless `text` is passed."""
        now_ms = self._clock.now_ms()
        text = text or KEY_PREFIX + new_token(self._random_bytes(TOKEN_RANDOM_BYTES))
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

    def _key_created(self, key: ApiKey, actor: str) -> Statement:
        detail = f"{key.role}, {' '.join(key.scopes)}"
        return self._audit.entry(Action.KEY_CREATED, org_id=key.org_id, actor=actor, target=key.id, detail=detail)

    def _log_created(self, text: str, key: ApiKey) -> NewKey:
        _log.info("key created", extra={"key_id": key.id, "org_id": key.org_id, "role": key.role})
        return NewKey(text=text, view=key_view(key, key.created_at_ms))

    async def _key(self, key_id: str) -> ApiKey:
        found = None if unprintable_in(key_id) else await api_keys.get(self._db, key_id)
        if found is None:
            raise AccessError(f"There is no key with the id {printable(key_id)!r}.")
        return found

    def _new_id(self, kind: str) -> str:
        return f"{kind}_{self._random_bytes(_ID_RANDOM_BYTES).hex()}"

    def _new_webhook_secret(self) -> str:
        return webhook_signature.new_secret(self._random_bytes(webhook_signature.SECRET_BYTES))


def is_key_text(text: str) -> bool:
    return _KEY_TEXT.fullmatch(text) is not None


def _read_header(authorization: str | None) -> str:
    """Return the key in an Authorization header. The scheme is case-insensitive, as HTTP requires."""
    header = (authorization or "").strip(" \t")
    if not header:
        raise UnauthorizedError(KEY_MISSING)
    scheme, _, key = header.partition(" ")
    key = key.lstrip(" ")
    if scheme.lower() != "bearer" or not key or " " in key:
        raise UnauthorizedError(KEY_MALFORMED)
    if not is_key_text(key):  # not a text that this service issues: skip the database
        raise UnauthorizedError(KEY_INVALID)
    return key


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def check_name(name: str, what: str, *, shortest: int) -> None:
    """Raise AccessError if the name of an organization, a key or a person is not valid."""
    if not shortest <= len(name) <= MAX_NAME or name != name.strip():
        text = f"{what} must have {shortest} to {MAX_NAME} characters and no surrounding whitespace."
        raise AccessError(text, field="name")
    if code := unprintable_in(name):
        raise AccessError(f"{what} must not contain control or format characters (found {code}).", field="name")
