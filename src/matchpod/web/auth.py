"""Authenticate and authorize a request: first the key (401), then the rate limit (429), then scope and role (403)."""

from __future__ import annotations

from matchpod.core.errors import ForbiddenError
from matchpod.service.access import Access
from matchpod.service.principals import Principal
from matchpod.service.rate_limit import RateLimiter
from matchpod.web.endpoint import Call, Endpoint


async def authorize(access: Access, limiter: RateLimiter | None, endpoint: Endpoint, call: Call) -> Principal:
    """Return the principal of an authorized request."""
    principal = await access.authenticate(call.header(b"authorization"))
    if limiter is not None:
        limiter.acquire(principal.key_id)
    if endpoint.access is not None and endpoint.access not in principal.scopes:
        raise ForbiddenError(f"This key lacks the scope {endpoint.access}.")
    if endpoint.roles and principal.role not in endpoint.roles:
        raise ForbiddenError(f"This needs a key with the role {' or '.join(endpoint.roles)}, not {principal.role}.")
    return principal
