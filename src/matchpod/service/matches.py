"""Create, read and cancel matches on behalf of callers.

The web layer has already checked scope and role. Here, the request is validated first; then NotFoundError or
ForbiddenError is raised if the match does not exist or belongs to another organization. Creating a match only writes
rows. Then a supervisor acquires the match; `notify` wakes the supervisor of this process.
"""

from __future__ import annotations

import logging
import secrets
import uuid
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from matchpod.core import errors
from matchpod.core.effects import CancelReason
from matchpod.core.faults import FieldPath
from matchpod.core.match.start_sides import with_sides
from matchpod.core.model import MatchRequest
from matchpod.core.requests import request_table as table
from matchpod.core.requests.history_query import read_server_id
from matchpod.core.requests.json_limits import decode_json
from matchpod.core.requests.match_list_query import MatchListQuery
from matchpod.core.requests.text_rules import external_id_fault
from matchpod.core.requests.validation import CvarReader, read_match_request
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.trace_context import TraceContext, with_context
from matchpod.core.views.marks import encode_marks
from matchpod.core.views.match_progress import LiveState
from matchpod.ports import Clock, Database, DatabaseUnavailableError, DuplicateError, Vault
from matchpod.service.access.audit import Action, Audit
from matchpod.service.access.quotas import Quotas
from matchpod.service.access.rate_limit import RateLimiter
from matchpod.service.at_once import result_at_once
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.cancellation import Cancellation
from matchpod.service.history.rows import initial_history
from matchpod.service.identity import identifiers
from matchpod.service.identity.identifiers import server_name
from matchpod.service.identity.principals import Principal, require_own
from matchpod.service.ingest.tokens import new_tokens, token_columns
from matchpod.service.match_log.live import LocalMatches, logged_if_failed
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.operations.disk_space import DiskSpace
from matchpod.service.reading import match_head
from matchpod.service.reading.encoded_servers import EncodedServer, EncodedServers
from matchpod.service.reading.endings import ending_of, match_of
from matchpod.service.reading.server_lists import ServersPage, server_items
from matchpod.service.regions.regions import Regions
from matchpod.service.request_keys import check_key, earlier_use, key_conflict, used_key
from matchpod.service.streams import organization_event_lines
from matchpod.service.telemetry.match_spans import NO_SPANS, MatchSpans
from matchpod.service.telemetry.metrics import Metrics
from matchpod.storage import history, outbox, server_labels, servers
from matchpod.storage.list_positions import ListPositions
from matchpod.storage.match_lists import list_matches
from matchpod.storage.servers import Idempotency, ServerRow, ServerSummary, TooManyLiveError

RCON_PASSWORD_BYTES: Final = 16
"""Number of random bytes in an RCON password: 128 bits. The password is in hex, because that needs no quotes in a
console."""

LIVE_RETRY_S: Final = 30
"""Retry-After in seconds of the error that an organization has too many live matches. One of them may end soon."""

_encode: Final = msgspec.json.Encoder().encode
_log = logging.getLogger(__name__)


class Creation(msgspec.Struct, frozen=True):
    """The response to a create request."""

    server: match_head.ServerView
    is_replayed: bool = False
    """True if an earlier request with the same idempotency key created the match."""


class Matches:
    """Creates, reads and cancels matches. Each organization can access only its own matches.

    `db_version` returns a number that changes with each change of the database, or None if it cannot be read without
    waiting.
    """

    def __init__(  # noqa: PLR0913 - one argument per collaborator
        self,
        *,
        db: Database,
        clock: Clock,
        vault: Vault,
        regions: Regions,
        live: LocalMatches,
        remote: RemoteMatches,
        read_cvars: CvarReader,
        notify: Callable[[str], None],
        audit: Audit,
        metrics: Metrics,
        quotas: Quotas,
        private_callbacks: PrivateCallbacks,
        disk: DiskSpace,
        installation: str,
        db_version: Callable[[], int | None] | None = None,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
        spans: MatchSpans = NO_SPANS,
    ) -> None:
        self._db = db
        self._clock = clock
        self._vault = vault
        self._regions = regions
        self._live = live
        self._remote = remote
        self._read_cvars = read_cvars
        self._notify = notify
        self._metrics, self._spans = metrics, spans
        self._random_bytes = random_bytes
        self._positions, self._encoded = ListPositions(), EncodedServers()
        self._cancellation = Cancellation(db=db, clock=clock, random_bytes=random_bytes)
        self._installation = installation
        self._audit, self._disk, self._private_callbacks = audit, disk, private_callbacks
        self._db_version = db_version
        self._max_live = quotas.max_live_matches
        per_minute = quotas.max_creations_per_minute
        limiter = partial(RateLimiter, monotonic=self._now_s, owner="this organization", unit="new matches")
        self._creations = None if per_minute is None else limiter(per_minute)

    @unavailable_on_outage
    async def create(
        self, principal: Principal, body: bytes, idempotency_key: str | None, *, caller: TraceContext | None = None
    ) -> Creation:
        """Create a match, or return the match that was created with the same idempotency key and body in the last day.

        `caller` is the trace context that the caller sent. The spans of the match become part of its trace.
        """
        check_key(idempotency_key)
        decoded = decode_json(body)
        now_ms = self._clock.now_ms()
        used = used_key(principal.org_id, idempotency_key, decoded, now_ms)
        earlier = await earlier_use(self._db, used) if used is not None else None
        # Check this before validation, so that a repeated request returns its match even if the region is now switched
        # off.
        if used is not None and earlier is not None and earlier[0] == used.body_hash:
            return await self._replayed(principal, earlier[1])
        callback_private = await self._private_callbacks.are_allowed()
        request = await self._read_request(decoded, callback_private=callback_private)
        if earlier is not None:
            raise key_conflict()
        new_row = partial(self._new_row, principal, request, now_ms, caller, callback_private=callback_private)
        return await self._create_new(principal, request, new_row, used)

    @unavailable_on_outage
    async def check(self, body: bytes) -> None:
        """Validate the body as `create` does, without creating a match. Raise InvalidParamsError with all faults."""
        await self._read_request(decode_json(body), callback_private=await self._private_callbacks.are_allowed())

    @unavailable_on_outage
    async def get(self, principal: Principal, server_id: str) -> match_head.ServerView:
        """Return the view of a server, with the live state of its match while the server is running."""
        found = await servers.summary(self._db, server_id) if read_server_id(server_id) else None
        row = require_own(principal, found, "server")
        return await self._view(principal, row, await self._state(principal, row))

    @unavailable_on_outage
    async def get_encoded(self, principal: Principal, server_id: str) -> EncodedServer:
        """Return the view of a server as JSON. It is cached until the row or the state of the match changes."""
        columns = await servers.summary_columns(self._db, server_id) if read_server_id(server_id) else None
        row = require_own(principal, None if columns is None else servers.to_summary(columns), "server")
        state, audience = await self._state(principal, row), principal.audience
        found = self._encoded.find(row.id, columns or (), state, audience=audience)
        if found is not None:
            return found
        body = _encode(await self._view(principal, row, state))
        encoded = EncodedServer(org_id=row.org_id, columns=columns or (), state=state, body=body)
        # Do not cache a canceled match, because its details are partly in other rows, nor a running match whose state
        # could not be built, because this may work the next time.
        if row.reason is None and (state is not None or row.status is not ServerStatus.RUNNING):
            self._encoded.keep(row.id, encoded, audience=audience)
        return encoded

    def get_at_once(self, principal: Principal, server_id: str) -> EncodedServer | None:
        """Return the cached JSON of a server without waiting, if it is up to date. If None, call `get_encoded`."""
        kept = self._encoded.latest(server_id, audience=principal.audience)
        version = None if kept is None or self._db_version is None else self._db_version()
        if kept is None or version is None or kept.org_id != principal.org_id:
            return None
        try:
            if kept.version != version:  # the database has changed, perhaps in this row
                if result_at_once(servers.summary_columns(self._db, server_id)) != kept.columns:
                    return None
                kept.version = version
            live = self._live.get(server_id)
            is_current = kept.state is None or (live is not None and live.state() is kept.state)
        except Exception:  # noqa: BLE001 - `get_encoded` reports it
            return None
        return kept if is_current else None

    async def _state(self, principal: Principal, row: ServerSummary) -> LiveState | None:
        """Return the state of a running match; None if the match is not running, or if its state cannot be built."""
        if row.status is not ServerStatus.RUNNING:
            return None
        live = self._live.get(row.id)
        with logged_if_failed(row.id):
            if live is not None:
                return live.state()
            return await self._remote.state(await self._own_row(principal, row.id))
        return None

    async def _view(self, principal: Principal, row: ServerSummary, state: LiveState | None) -> match_head.ServerView:
        return match_head.server_view(
            match_head.visible_row(row, principal.audience),
            rcon_password=self._rcon_password(principal, row),
            ending=await ending_of(self._db, row.id, row) if row.has_ended else match_head.IN_PROGRESS,
            live=state,
            connect=self._connect(principal, row),
        )

    @unavailable_on_outage
    async def server_list(self, principal: Principal, query: MatchListQuery) -> ServersPage:
        """Return a page of the organization's servers, newest first."""
        total, found = await list_matches(self._db, principal.org_id, query, positions=self._positions)
        items = await server_items(self._db, [match_head.visible_row(row, principal.audience) for row in found])
        return ServersPage(page=query.page, page_size=query.page_size, total=total, items=items)

    @unavailable_on_outage
    async def cancel(self, principal: Principal, server_id: str) -> None:
        """Cancel a match. If it is already canceled, nothing changes, and no second callback is sent."""
        row = await self._own_row(principal, server_id)
        if not row.has_ended and await self._cancel(principal, row):
            return
        outcome = await outbox.outcome_of(self._db, row.id)
        if outcome is None or outcome.reason != CancelReason.CANCELED_BY_USER:
            raise errors.ServerNotRunningError("The match on this server has already ended and cannot be canceled.")

    @unavailable_on_outage
    async def by_external_id(self, principal: Principal, external_id: str) -> match_head.MatchView:
        """Return the organization's newest match with this external id, with its result if it has finished."""
        if fault := external_id_fault(external_id):
            raise errors.InvalidFieldsError((fault.at(FieldPath(("externalMatchId",))),))
        row = await servers.newest_by_external_id(self._db, principal.org_id, external_id)
        if row is None:
            if await servers.external_id_exists(self._db, external_id):
                raise errors.ForbiddenError("The match with this externalMatchId belongs to another organization.")
            raise errors.NotFoundError("There is no match with this externalMatchId.")
        return await match_of(self._db, row)

    # --- creation -------------------------------------------------------------------------------------------------

    async def _create_new(
        self, principal: Principal, request: MatchRequest, new_row: Callable[[], ServerRow], used: Idempotency | None
    ) -> Creation:
        await self._disk.require()
        if self._creations is not None:
            self._creations.acquire(principal.org_id)
        row = new_row()
        created = initial_history(row, request.game_settings, self._server_name(row))
        counts = history.count_new(created, region=row.region, created_at_ms=row.created_at_ms)
        statements = history.insert(created)
        statements += server_labels.insert(row.org_id, row.id, row.created_at_ms, request.labels)
        statements.append(self._audit.act_of(principal, Action.MATCH_CREATED, target=row.id))
        event = organization_event_lines.match_created(row)
        try:
            await servers.create(
                self._db,
                row,
                idempotency=used,
                event=event,
                counts=counts,
                also=statements,
                max_live=self._max_live,
            )
        except (DuplicateError, TooManyLiveError) as exc:
            # A concurrent request used the same idempotency key. Without a key, a DuplicateError is a bug.
            earlier = await earlier_use(self._db, used) if used is not None else None
            if used is not None and earlier is not None:
                if earlier[0] != used.body_hash:
                    raise key_conflict() from None
                return await self._replayed(principal, earlier[1])
            if isinstance(exc, DuplicateError):
                raise
            raise _too_many_live(self._max_live) from None
        except DatabaseUnavailableError:
            # An interrupted COMMIT may have succeeded. If this raised an error, a caller without an idempotency key
            # would retry and create a second match.
            if await servers.get(self._db, row.id) is None:
                raise
        self._report_created(row, request)
        return Creation(match_head.created_view(row, rcon_password=self._rcon_password(principal, row)))

    async def _read_request(self, decoded: object, *, callback_private: bool) -> MatchRequest:
        region = decoded.get("region") if isinstance(decoded, dict) else None
        return read_match_request(
            decoded,
            regions=await self._regions.rules(region),
            read_cvars=self._read_cvars,
            allow_private_callback=callback_private,
        )

    def _now_s(self) -> float:
        return self._clock.now_ms() / 1000

    async def _replayed(self, principal: Principal, server_id: str) -> Creation:
        """Return the current view of a server that an earlier request created."""
        row = await self._own_row(principal, server_id)
        ending = await ending_of(self._db, row.id, row)
        view = match_head.created_view(row, rcon_password=self._rcon_password(principal, row), ending=ending)
        return Creation(view, is_replayed=True)

    def _new_row(
        self,
        principal: Principal,
        request: MatchRequest,
        now_ms: int,
        caller: TraceContext | None,
        *,
        callback_private: bool,
    ) -> ServerRow:
        random_bytes, seal = self._random_bytes, self._vault.seal
        server_id = identifiers.new_server_id(now_ms, random_bytes(identifiers.ID_RANDOM_BYTES))
        settings = with_sides(request.game_settings, server_id)
        auth, password = request.callback_auth_token, settings.server_password
        given = ((table.CALLBACK_AUTH_TOKEN, auth), (table.SERVER_PASSWORD, password))
        return ServerRow(
            id=server_id,
            game_id=str(uuid.UUID(bytes=random_bytes(16), version=4)),
            org_id=principal.org_id,
            region=request.region,
            phase=ServerPhase.ALLOCATING,
            status=ServerStatus.ALLOCATING,
            settings=with_context(msgspec.json.encode(msgspec.structs.replace(settings, server_password=None)), caller),
            external_match_id=request.external_match_id,
            callback_url=request.callback_url,
            callback_auth=None if auth is None else seal(auth),
            callback_private=None if request.callback_url is None else callback_private,
            rcon_password=seal(random_bytes(RCON_PASSWORD_BYTES).hex()),
            server_password=None if password is None else seal(password),
            created_by=principal.key_id,
            marks=encode_marks(
                request.labels,
                is_simulated=self._regions.is_sandbox(request.region),
                secrets=tuple(field.name for field, value in given if value is not None),
            ),
            **token_columns(new_tokens(random_bytes, self._installation), self._vault),
            plugin_match_id=identifiers.new_plugin_match_id(random_bytes(identifiers.MATCH_NUMBER_BYTES)),
            created_at_ms=now_ms,
            next_at_ms=now_ms,
        )

    def _server_name(self, row: ServerRow) -> str:
        region = self._regions.get(row.region)
        return server_name(region.name if region else row.region, row.id)

    def _report_created(self, row: ServerRow, request: MatchRequest) -> None:
        self._notify(row.id)
        self._metrics.matches_created.inc(row.region)
        self._spans.created(row, self._clock.now_ms())
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

    # --- access, cancellation and views ---------------------------------------------------------------------------

    async def _own_row(self, principal: Principal, server_id: str) -> ServerRow:
        found = await servers.get(self._db, server_id) if read_server_id(server_id) else None
        return require_own(principal, found, "server")

    async def _cancel(self, principal: Principal, row: ServerRow) -> bool:
        """Cancel an open match. False if it has ended in the meantime."""
        reason, live = CancelReason.CANCELED_BY_USER, self._live.get(row.id)
        is_complete = None if live is None else live.fold.match.is_log_complete
        record = self._audit.act_of(principal, Action.MATCH_CANCELED, target=row.id)
        if not await self._cancellation.cancel(row, reason, record, is_log_complete=is_complete):
            return False
        self._notify(row.id)
        self._metrics.matches_ended.inc(row.region, reason.value)
        return True

    def _rcon_password(self, principal: Principal, row: ServerSummary) -> str | None:
        is_shown = principal.may_create and row.is_password_ours and not row.has_ended
        return self._vault.open(row.rcon_password) if is_shown and row.rcon_password is not None else None

    def _connect(self, principal: Principal, row: ServerSummary) -> str | None:
        if not principal.audience.may_connect or row.status is not ServerStatus.RUNNING:
            return None
        sealed = row.server_password
        return match_head.connect_command(row, None if sealed is None else self._vault.open(sealed))


def _too_many_live(limit: int | None) -> errors.RateLimitError:
    return errors.RateLimitError(
        f"This organization has {limit} matches that have not ended, its limit."
        " Retry when one has ended, or cancel one.",
        retry_after_s=LIVE_RETRY_S,
    )
