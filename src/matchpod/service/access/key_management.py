"""Manage the API keys and the webhook secret of one organization, for its owners in the console.

Every call passes the id of the user's organization, and keys of other organizations are reported as unknown. (The
command line can manage all organizations.) `actor` is the actor for the audit log.
"""

from __future__ import annotations

from collections.abc import Collection

from matchpod.core.errors import NotFoundError, UnavailableError
from matchpod.service.access.organizations import Access, AccessError
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.principals import KeyState, KeyView, NewKey, OrganizationView, Role, Scope


class KeyManagement:
    """Manages the keys and the webhook secret of the organization that is passed to each call."""

    def __init__(self, access: Access) -> None:
        self._access = access

    @unavailable_on_outage
    async def keys(self, org_name: str) -> list[KeyView]:
        """Return all keys of the organization: first active keys, then expired and revoked keys, each newest first."""
        newest_first = (await self._access.keys(org_name))[::-1]
        return sorted(newest_first, key=lambda key: key.state is not KeyState.ACTIVE)

    @unavailable_on_outage
    async def create(
        self,
        org_name: str,
        *,
        name: str,
        role: Role,
        scopes: Collection[Scope],
        expires_in_s: int | None,
        actor: str,
    ) -> NewKey:
        """Create a key; AccessError if its name, scopes or lifetime is not valid."""
        return await self._access.create_key(
            org_name, name=name, role=role, scopes=scopes, expires_in_s=expires_in_s, actor=actor
        )

    @unavailable_on_outage
    async def rotate(self, org_name: str, key_id: str, *, overlap_s: int, actor: str) -> NewKey:
        """Create a replacement for a key. The old key expires after at most `overlap_s` seconds."""
        await self._require(org_name, key_id)
        return await self._access.rotate_key(key_id, overlap_s=overlap_s, actor=actor)

    @unavailable_on_outage
    async def revoke(self, org_name: str, key_id: str, *, actor: str) -> bool:
        """Revoke a key and end the console sessions begun with it; False if it was already revoked."""
        await self._require(org_name, key_id)
        return await self._access.revoke_key(key_id, actor=actor)

    @unavailable_on_outage
    async def reveal_webhook_secret(self, org_name: str, *, actor: str) -> str:
        """Return the secret with which the organization's callbacks are signed, and add an audit entry."""
        try:
            return await self._access.reveal_webhook_secret(org_name, actor=actor)
        except AccessError as exc:
            raise UnavailableError(str(exc)) from exc

    @unavailable_on_outage
    async def replace_webhook_secret(self, org_name: str, *, actor: str) -> str:
        """Replace the webhook secret, and return the new secret. Callbacks are signed with both secrets for a day."""
        return await self._access.replace_webhook_secret(org_name, actor=actor)

    @unavailable_on_outage
    async def create_organization(self, name: str, *, actor: str) -> OrganizationView:
        """Create an organization without keys; AccessError if its name is taken or not valid."""
        return await self._access.create_organization(name, actor=actor)

    async def _require(self, org_name: str, key_id: str) -> None:
        if key_id not in {key.id for key in await self._access.keys(org_name)}:
            raise NotFoundError("There is no key with this id.")
