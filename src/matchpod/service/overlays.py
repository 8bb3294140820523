"""Create and end the tokens of overlays. An overlay shows a match in a video stream, and needs no log-in.

The token is part of the URL that a streamer enters in their streaming software. It gives access only to its match, and
is valid until it is ended, even after the match. Only its hash is stored.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence

import msgspec

from matchpod.core.errors import ForbiddenError
from matchpod.core.requests.history_query import read_server_id
from matchpod.ports import Clock, Database, NothingChangedError
from matchpod.service.access.audit import Action, Audit
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.identifiers import TOKEN_RANDOM_BYTES, is_token, new_token
from matchpod.service.identity.principals import Principal, require_own
from matchpod.storage import overlay_tokens, servers
from matchpod.storage.overlay_tokens import OverlayToken
from matchpod.storage.servers import ServerSummary, token_hash

_log = logging.getLogger(__name__)


class Overlay(msgspec.Struct, frozen=True):
    """The match that a token gives access to."""

    server_id: str
    org_id: str


class Overlays:
    """Creates, checks and ends the overlay tokens of all organizations."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        audit: Audit,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._db = db
        self._clock = clock
        self._audit = audit
        self._random_bytes = random_bytes

    @unavailable_on_outage
    async def create(self, principal: Principal, server_id: str) -> str:
        """Create a token for a match of the caller's organization; ForbiddenError if the caller may not act on it."""
        row = await self._own(principal, server_id)
        token = new_token(self._random_bytes(TOKEN_RANDOM_BYTES))
        stored = OverlayToken(
            token_hash=token_hash(token), server_id=row.id, org_id=row.org_id, created_at_ms=self._clock.now_ms()
        )
        record = self._audit.act_of(principal, Action.OVERLAY_CREATED, target=row.id)
        await self._db.write([overlay_tokens.insert(stored), record])
        _log.info("overlay created", extra={"server_id": row.id, "actor": principal.actor})
        return token

    @unavailable_on_outage
    async def find(self, token: str) -> Overlay | None:
        """Return the match that a token gives access to; None if there is no such token."""
        found = await overlay_tokens.by_hash(self._db, token_hash(token)) if is_token(token) else None
        return None if found is None else Overlay(server_id=found.server_id, org_id=found.org_id)

    def id_of(self, token: str) -> str:
        """Return the id of a token, which `valid_tokens` needs. The id is not secret."""
        return token_hash(token)

    @unavailable_on_outage
    async def valid_tokens(self, ids: Sequence[str]) -> set[str]:
        """Return those of the token ids whose tokens are still valid."""
        return await overlay_tokens.existing(self._db, ids)

    @unavailable_on_outage
    async def end(self, principal: Principal, server_id: str) -> int:
        """End all tokens of a match of the caller's organization. Return the number of ended tokens."""
        row = await self._own(principal, server_id)
        record = self._audit.act_of(principal, Action.OVERLAYS_ENDED, target=row.id)
        try:
            ended, _ = await self._db.write([overlay_tokens.end(row.id), record])
        except NothingChangedError:
            return 0
        _log.info("overlays ended", extra={"server_id": row.id, "actor": principal.actor, "count": len(ended)})
        return len(ended)

    async def _own(self, principal: Principal, server_id: str) -> ServerSummary:
        if not principal.may_act:
            raise ForbiddenError("This requires permission to act on matches.")
        found = await servers.summary(self._db, server_id) if read_server_id(server_id) else None
        return require_own(principal, found, "server")
