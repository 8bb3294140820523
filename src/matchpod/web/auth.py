"""Authenticate and authorize a request: first the key (401), then the rate limit (429), then scope and role (403)."""

from __future__ import annotations

from functools import partial
from typing import Final

from matchpod.core.errors import ForbiddenError
from matchpod.service.access.organizations import Access
from matchpod.service.access.rate_limit import RateLimiter
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.identity.principals import Principal
from matchpod.web.endpoint import Call, Endpoint
from matchpod.web.http.admission import address_group
from matchpod.web.proxy_signs import proxy_sign

LOOPBACK: Final = "loopback"
"""The key for counting all requests from this machine: loopback addresses do not identify a client."""


async def authorize(
    access: Access,
    limiter: RateLimiter | None,
    endpoint: Endpoint,
    call: Call,
    *,
    private_callbacks: PrivateCallbacks,
) -> Principal:
    """Return the principal of an authorized request. `call.principal` is set as soon as the key is authenticated."""
    principal = await access.authenticate(call.header(b"authorization"), address=partial(client_address, call))
    call.principal = principal
    await note_proxy(private_callbacks, call)
    if limiter is not None:
        limiter.acquire(principal.key_id)
    if endpoint.access is not None and endpoint.access not in principal.scopes:
        raise ForbiddenError(f"This key lacks the scope {endpoint.access}.")
    if endpoint.roles and principal.role not in endpoint.roles:
        raise ForbiddenError(
            f"This request needs a key with the role {' or '.join(endpoint.roles)}, not {principal.role}."
        )
    return principal


async def note_proxy(private_callbacks: PrivateCallbacks, call: Call) -> None:
    """Note whether an authenticated request came through a proxy. Unauthenticated clients could send false headers."""
    if private_callbacks.is_watching and (sign := proxy_sign(call.scope["headers"])) is not None:
        await private_callbacks.proxy_seen(sign)


def client_address(call: Call) -> str | None:
    """Return the key for counting a client's requests: its IPv4 address or IPv6 network, as proxies report it."""
    client = call.scope.get("client")
    return None if client is None else address_group(client[0]) or LOOPBACK
