"""What can a caller do with a match? Create it, look at its server, cancel it, and read its result.

Scope and role were checked before; here the order is: a bad request, an unknown thing, somebody else's thing.
A creation only writes a row: whoever drives matches finds it there, woken by `notify` where that is this process.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import uuid
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from matchpod.core.effects import CancelReason
from matchpod.core.errors import (
    Fault,
    ForbiddenError,
    IdempotencyConflictError,
    InvalidParamsError,
    NotFoundError,
    ServerNotRunningError,
)
from matchpod.core.history_query import read_server_id
from matchpod.core.model import MatchRequest
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.text_rules import external_id_fault
from matchpod.core.validation import CvarReader, read_match_request
from matchpod.ports import Clock, Database, DuplicateError, NothingChangedError, Vault
from matchpod.service import identifiers
from matchpod.service.availability import unavailable_when_away
from matchpod.service.conclusion import MATCH_OVER, Ending, conclude
from matchpod.service.history.naming import server_name
from matchpod.service.history.rows import upcoming
from matchpod.service.live import LiveMatches
from matchpod.service.measures import Measures
from matchpod.service.principals import Principal
from matchpod.service.regions import Regions
from matchpod.service.server_views import MatchView, ServerView, has_ended, match_view, server_view
from matchpod.service.spectators import Spectators
from matchpod.storage import history, outbox, servers
from matchpod.storage.servers import IDEMPOTENCY_MS, Idempotency, ServerRow, ServerSummary

RCON_PASSWORD_BYTES: Final = 16
"""128 bits, written as 32 characters that need no quotes on any console."""

MAX_IDEMPOTENCY_KEY: Final = 255
"""Room for a UUID or a compound key, and short enough to be indexed everywhere."""

_IDEMPOTENCY_KEY: Final = re.compile(rf"[!-~]{{1,{MAX_IDEMPOTENCY_KEY}}}")

_Row = TypeVar("_Row", bound=ServerSummary)

_log = logging.getLogger(__name__)


class Matches:
    """The matches of all organizations, each seen by its own."""

    def __init__(  # noqa: PLR0913 - one argument a collaborator
        self,
        *,
        db: Database,
        clock: Clock,
        vault: Vault,
        regions: Regions,
        live: LiveMatches,
        spectators: Spectators,
        read_cvars: CvarReader,
        notify: Callable[[str], None],
        measures: Measures | None = None,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._db = db
        self._clock = clock
        self._vault = vault
        self._regions = regions
        self._live = live
        self._spectators = spectators
        self._read_cvars = read_cvars
        self._notify = notify
        self._measures = measures
        self._random_bytes = random_bytes

    @unavailable_when_away
    async def create(self, principal: Principal, body: bytes, idempotency_key: str | None) -> ServerView:
        """Create a match, or find the one that the same key and body created within the last day."""
        _check_idempotency_key(idempotency_key)
        asked, body_hash = _read_json(body)
        now_ms = self._clock.now_ms()
        used = None
        if idempotency_key is not None:
            used = Idempotency(org_id=principal.org_id, key=idempotency_key, body_hash=body_hash, created_at_ms=now_ms)
        earlier = await self._earlier(used) if used is not None else None
        # Before anything is validated: a region that was switched off since does not change what was answered.
        if earlier is not None and earlier[0] == body_hash:
            return await self._created(principal, earlier[1])
        region = asked.get("region") if isinstance(asked, dict) else None
        request = read_match_request(asked, regions=await self._regions.rules(region), read_cvars=self._read_cvars)
        if earlier is not None:
            raise _conflict()
        row = self._new_row(request, principal.org_id, now_ms)
        begun = history.begin(upcoming(row, request.game_settings, self._server_name(row)))
        try:
            await servers.create(self._db, row, idempotency=used, also=begun)
        except DuplicateError:
            # Somebody used the key since we looked. Without a key it is our own fault.
            earlier = await self._earlier(used) if used is not None else None
            if earlier is None:
                raise
            if earlier[0] != body_hash:
                raise _conflict() from None
            return await self._created(principal, earlier[1])
        self._announce_creation(row, request)
        return self._view(principal, row)

    @unavailable_when_away
    async def get(self, principal: Principal, server_id: str) -> ServerView:
        """The server, and how its match stands while it runs."""
        row = _own(principal, await servers.summary(self._db, server_id) if read_server_id(server_id) else None)
        match = None
        if row.status is ServerStatus.RUNNING:
            live = self._live.get(row.id)
            if live is not None:
                match = msgspec.Raw(live.view())
            else:
                match = msgspec.Raw(await self._spectators.view(await self._own_row(principal, server_id)))
        return self._view(principal, row, match=match)

    @unavailable_when_away
    async def cancel(self, principal: Principal, server_id: str) -> None:
        """End a match without a result; one that its caller canceled before stays so, and nothing is sent again."""
        row = await self._own_row(principal, server_id)
        if not has_ended(row) and await self._conclude_canceled(row):
            return
        outcome = await outbox.outcome_of(self._db, row.id)
        if outcome is None or outcome.reason != CancelReason.CANCELED_BY_USER:
            raise ServerNotRunningError("The match on this server has already ended and cannot be canceled.")

    @unavailable_when_away
    async def by_external_id(self, principal: Principal, external_id: str) -> MatchView:
        """The organization's newest match with this correlation id, with its result once it is over."""
        if fault := external_id_fault(external_id):
            raise InvalidParamsError(f"externalMatchId {fault}", (Fault("externalMatchId", fault),))
        row = await servers.newest_by_external_id(self._db, principal.org_id, external_id)
        if row is None:
            if await servers.external_id_exists(self._db, external_id):
                raise ForbiddenError("The match with this externalMatchId belongs to another organization.")
            raise NotFoundError("There is no match with this externalMatchId.")
        outcome = await outbox.outcome_of(self._db, row.id) if has_ended(row) else None
        is_over = outcome is not None and outcome.kind == MATCH_OVER
        return match_view(row, result=outcome.result if outcome is not None and is_over else None)

    # --- creation -------------------------------------------------------------------------------------------------

    async def _earlier(self, used: Idempotency) -> tuple[str, str] | None:
        """The body's hash and the server for which the key was used before."""
        return await servers.find_idempotent(self._db, used.org_id, used.key, used.created_at_ms - IDEMPOTENCY_MS)

    async def _created(self, principal: Principal, server_id: str) -> ServerView:
        """A server that was created before, as it is now."""
        return self._view(principal, await self._own_row(principal, server_id))

    def _new_row(self, request: MatchRequest, org_id: str, now_ms: int) -> ServerRow:
        chance, seal = self._random_bytes, self._vault.seal
        settings = request.game_settings
        auth, password = request.callback_auth_token, settings.server_password
        return ServerRow(
            id=identifiers.new_server_id(now_ms, chance(identifiers.ID_RANDOM_BYTES)),
            game_id=str(uuid.UUID(bytes=chance(16), version=4)),
            org_id=org_id,
            region=request.region,
            phase=ServerPhase.ALLOCATING,
            status=ServerStatus.ALLOCATING,
            settings=msgspec.json.encode(msgspec.structs.replace(settings, server_password=None)),
            external_match_id=request.external_match_id,
            callback_url=request.callback_url,
            callback_auth=None if auth is None else seal(auth),
            rcon_password=seal(chance(RCON_PASSWORD_BYTES).hex()),
            server_password=None if password is None else seal(password),
            log_token=identifiers.new_token(chance(identifiers.TOKEN_RANDOM_BYTES)),
            report_token=identifiers.new_token(chance(identifiers.TOKEN_RANDOM_BYTES)),
            plugin_match_id=identifiers.new_plugin_match_id(chance(identifiers.MATCH_NUMBER_BYTES)),
            created_at_ms=now_ms,
            next_at_ms=now_ms,
        )

    def _server_name(self, row: ServerRow) -> str:
        region = self._regions.get(row.region)
        return server_name(region.name if region else row.region, row.id)

    def _announce_creation(self, row: ServerRow, request: MatchRequest) -> None:
        self._notify(row.id)
        if self._measures is not None:
            self._measures.matches_created.inc(row.region)
        _log.info(
            "match created",
            extra={
                "server_id": row.id,
                "org_id": row.org_id,
                "region": row.region,
                "match_type": request.game_settings.match_type.value,
                "external_match_id": row.external_match_id,
            },
        )

    # --- the rest -------------------------------------------------------------------------------------------------

    async def _own_row(self, principal: Principal, server_id: str) -> ServerRow:
        return _own(principal, await servers.get(self._db, server_id) if read_server_id(server_id) else None)

    async def _conclude_canceled(self, row: ServerRow) -> bool:
        """True when the match ended by this very call."""
        ending = Ending(reason=CancelReason.CANCELED_BY_USER)
        now_ms = self._clock.now_ms()
        callback_id = identifiers.new_callback_id(now_ms, self._random_bytes(identifiers.ID_RANDOM_BYTES))
        try:
            await self._db.write(conclude(row, ending, fence=None, now_ms=now_ms, callback_id=callback_id))
        except NothingChangedError:
            return False
        self._notify(row.id)
        if self._measures is not None:
            self._measures.matches_ended.inc(row.region, CancelReason.CANCELED_BY_USER.value)
        _log.info("match canceled", extra={"server_id": row.id, "org_id": row.org_id, "region": row.region})
        return True

    def _view(
        self, principal: Principal, row: ServerSummary, *, match: msgspec.Raw | msgspec.UnsetType | None = msgspec.UNSET
    ) -> ServerView:
        password = None
        is_shown = principal.may_create and row.is_password_ours and not has_ended(row)
        if is_shown and row.rcon_password is not None:
            password = self._vault.open(row.rcon_password)
        return server_view(row, rcon_password=password, match=match)


def _own(principal: Principal, row: _Row | None) -> _Row:
    """The row, when there is one and it belongs to the caller."""
    if row is None:
        raise NotFoundError("There is no server with this id.")
    if row.org_id != principal.org_id:
        raise ForbiddenError("This server belongs to another organization.")
    return row


def _check_idempotency_key(key: str | None) -> None:
    if key is not None and not _IDEMPOTENCY_KEY.fullmatch(key):
        fault = f"must be 1 to {MAX_IDEMPOTENCY_KEY} visible ASCII characters"
        raise InvalidParamsError(f"Idempotency-Key {fault}", (Fault("Idempotency-Key", fault),))


def _read_json(body: bytes) -> tuple[object, str]:
    """The decoded body, and a hash that is the same for the same JSON however it was written."""
    try:
        asked: object = msgspec.json.decode(body)
        canonical = msgspec.json.encode(asked, order="deterministic")
    except (ValueError, RecursionError) as exc:  # ValueError: malformed, or no UTF-8
        raise InvalidParamsError("The request body is not JSON.") from exc
    return asked, hashlib.sha256(canonical).hexdigest()


def _conflict() -> IdempotencyConflictError:
    return IdempotencyConflictError("This Idempotency-Key was used with another request body; use a new key.")
