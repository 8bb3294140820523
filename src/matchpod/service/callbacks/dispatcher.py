"""Deliver the callbacks in the outbox that are due, each in its own task.

A callback gets two attempts, the second 5 s after the first one failed, and one more each time its caller or an
operator requests it. An attempt is recorded after it was made, so one that a crash interrupted is repeated with the
same id, bytes and number; the claim of a callback limits how often.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

import msgspec

from matchpod import ports
from matchpod.core.fair_shares import FairShares, Receiver
from matchpod.core.trace_context import TRACEPARENT, TraceContext
from matchpod.service.access.webhook_signature import attempt_headers, mask_headers
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.telemetry.log_context import begin_work
from matchpod.service.telemetry.match_spans import NO_SPANS, MatchSpans
from matchpod.service.telemetry.metrics import Metrics
from matchpod.storage import organizations, outbox, servers
from matchpod.storage.organizations import Organization
from matchpod.storage.outbox import CallbackRow, DueCallback
from matchpod.storage.servers import CallbackTerms

MAX_ATTEMPTS: Final = 2
"""Attempts per callback, unless more are requested; documented for callers."""

RETRY_AFTER_MS: Final = 5_000
"""Time from the end of a failed attempt to the next one; a restarting receiver is back by then."""

MAX_PER_HOST: Final = 1_024
"""Maximum number of concurrent attempts to one host of an organization. If 1,000 of them hang, others still get
through, and 100 per second even if the host hangs for all."""

PAGE: Final = 64
"""Callbacks that are claimed at a time: starting them takes some 30 ms, after which others may take precedence."""

CANDIDATES: Final = 1_024
"""Due callbacks that a page is chosen from: more than a page, so that those that were chosen are never all."""

KNOWN_RECEIVERS: Final = 10_000
"""Receivers of which the dispatcher remembers whether they answered."""

ATTEMPT_S: Final = 15.0
"""Timeout of an attempt, above the sender's own 10 s and below the lease: only one process may send a callback."""

POLL_S: Final = 1.0
"""How often the outbox is polled without a call of `wake`: other processes end matches too."""

ROOM_S: Final = 0.1
"""Pause before the outbox is polled because attempts have ended: a poll passes over all callbacks that have no room."""

DATABASE_RETRY_S: Final = 1.0
"""Pause after an error, before the database is used again."""

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class DispatchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many callbacks are sent at a time, and how long a dispatcher waits."""

    retry_after_ms: int = RETRY_AFTER_MS
    max_per_host: int = MAX_PER_HOST
    page: int = PAGE
    candidates: int = CANDIDATES
    attempt_s: float = ATTEMPT_S
    poll_s: float = POLL_S
    database_retry_s: float = DATABASE_RETRY_S


LIMITS: Final = DispatchLimits()


class CallbackDispatcher:
    """Delivers callbacks; any number of processes may share a database."""

    def __init__(  # noqa: PLR0913 - one argument per collaborator
        self,
        *,
        db: ports.Database,
        clock: ports.Clock,
        vault: ports.Vault,
        sender: ports.CallbackSender,
        private_callbacks: PrivateCallbacks,
        metrics: Metrics,
        owner: str,
        version: str,
        wall_s: Callable[[], float] = time.time,
        limits: DispatchLimits = LIMITS,
        spans: MatchSpans = NO_SPANS,
    ) -> None:
        """`wall_s` returns the system time, which receivers compare the timestamp with; `clock` ignores its jumps."""
        self._db = db
        self._clock = clock
        self._vault = vault
        self._sender = sender
        self.private_callbacks = private_callbacks
        self._metrics = metrics
        metrics.callback_attempts.preset(("delivered", "refused", "no_answer"))
        self._owner = owner
        self._version = version
        self._wall_s = wall_s
        self._limits = limits
        self._spans = spans
        self._in_flight: dict[str, asyncio.Task[None]] = {}
        self._shares = FairShares(sender.capacity, per_host=limits.max_per_host)
        self._has_answered: dict[Receiver, bool] = {}
        self._is_limited = False  # callbacks that are due may be waiting until attempts in flight end
        self._retries: deque[int] = deque()  # when the retries of our failed attempts are due, earliest first
        self._woken = asyncio.Event()
        self._is_draining = False
        self._is_over = False
        self._is_waiting_for_database = False
        self._has_stopped = asyncio.Event()
        self._has_stopped.set()

    async def run(self) -> None:
        """Deliver callbacks until drained. If cancelled, attempts in flight are cancelled too."""
        self._has_stopped.clear()
        try:
            while not self._is_draining:
                await self._poll()
        except asyncio.CancelledError:
            await self._cancel_in_flight()
            raise
        finally:
            self._has_stopped.set()

    def wake(self) -> None:
        """Poll now: a callback is due."""
        self._woken.set()

    async def drain(self, timeout_s: float) -> None:
        """Stop claiming and wait for attempts in flight; after the timeout they are cancelled, to be repeated later."""
        self._is_draining = True
        self._woken.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._has_stopped.wait()  # callbacks that are being claimed are still sent
                if self._in_flight:
                    await asyncio.wait(self._in_flight.values())
        await self._cancel_in_flight()

    # --- due callbacks --------------------------------------------------------------------------------------------

    async def _poll(self) -> None:
        """Claim what is due, then wait. Never raises, except when cancelled."""
        try:
            now_ms = self._clock.now_ms()
            while self._retries and self._retries[0] <= now_ms:
                self._retries.popleft()
            await self._claim()
            self._is_waiting_for_database = False
            await self._wait()
        except ports.DatabaseUnavailableError:
            if not self._is_waiting_for_database:
                self._is_waiting_for_database = True  # log it once, not every second
                _log.warning("database unavailable, callbacks are delayed")
            await asyncio.sleep(self._limits.database_retry_s)
        except Exception:  # noqa: BLE001 - the loop must survive
            _log.exception("callback loop failed")
            self._metrics.crashes.inc("callbacks")
            await asyncio.sleep(self._limits.database_retry_s)

    async def _claim(self) -> None:
        while not self._is_draining and await self._claim_page():
            pass

    async def _claim_page(self) -> bool:
        """Claim and start due callbacks that have room, at most a page; False if no others can be started."""
        full_orgs, full_hosts = self._shares.full_organizations(), self._shares.full_receivers()
        self._is_limited = bool(full_orgs or full_hosts or self._shares.free <= 0)
        if self._shares.free <= 0:
            return False
        now_ms, limit = self._clock.now_ms(), self._limits.candidates
        find = partial(outbox.due_callbacks, self._db, now_ms=now_ms, limit=limit, without_hosts=full_hosts)
        due = await find(without_orgs=full_orgs)
        if len(due) == limit:  # do not overlook other organizations
            due += await find(without_orgs=[*full_orgs, *{row.org_id for row in due}])
        turns = self._shares.choose([_receiver(row) for row in due], self._limits.page, rank=self._rank)
        ids = [due[position].id for position in turns]
        # Leases expire while attempts wait to be recorded: do not send these callbacks twice.
        unrecorded = [callback_id for callback_id in ids if callback_id in self._in_flight]
        if unrecorded:
            await self._db.write([outbox.extend_leases(unrecorded, now_ms)])
        fresh = [callback_id for callback_id in ids if callback_id not in self._in_flight]
        if fresh:
            for row in await outbox.claim_callbacks(self._db, fresh, owner=self._owner, now_ms=now_ms):
                self._start(row)
        return 0 < len(ids) < len(due)

    def _rank(self, receiver: Receiver) -> int:
        """Receivers that answered last time come first, those that did not come last."""
        return {True: 0, None: 1, False: 2}[self._has_answered.get(receiver)]

    def _start(self, row: CallbackRow) -> None:
        if not self._is_over:  # the lease of a row that is claimed after draining is left to expire
            task = asyncio.create_task(self._deliver(row), name=f"callback {row.id}")
            self._in_flight[row.id] = task
            self._shares.hold(_receiver(row))
            task.add_done_callback(partial(self._forget, row))

    def _forget(self, row: CallbackRow, _: asyncio.Task[None]) -> None:
        del self._in_flight[row.id]
        self._shares.release(_receiver(row))
        if self._is_limited:
            self._is_limited = False  # until the next claim: all attempts that end in the meantime cause one poll
            asyncio.get_running_loop().call_later(ROOM_S, self._woken.set)

    async def _wait(self) -> None:
        wait_s = self._limits.poll_s
        if self._retries:  # if one became due since the claim, do not wait
            wait_s = min(wait_s, (self._retries[0] - self._clock.now_ms() + 1) / 1000)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._woken.wait()
        self._woken.clear()

    async def _cancel_in_flight(self) -> None:
        self._is_over = True
        tasks = tuple(self._in_flight.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # --- one callback ---------------------------------------------------------------------------------------------

    async def _deliver(self, row: CallbackRow) -> None:
        try:
            read = partial(servers.callback_terms, self._db, row.server_id)
            terms = await self._retry_while_unavailable(read)
            context = None if terms is None else self._spans.callback_context(row, terms.settings)
            begin_work(traceparent=None if context is None else context.header)
            request = await self._request(row, terms, context)
            began_ms = self._clock.now_ms()
            # After waiting for the database, the lease may be too short for an attempt: leave it to the next claim.
            if request is None or began_ms + self._limits.attempt_s * 1000 > (row.lease_until_ms or 0):
                await self._retry_while_unavailable(lambda: self._db.write([outbox.unclaim(row, began_ms)]))
                return
            if row.unrecorded > 1:
                _log.warning("callback repeated, its attempt was not recorded", extra=_log_fields(row))
            if isinstance(request, ports.Delivery):
                await self._record(row, request, began_ms)
            else:
                delivery = await self._send(request)
                self._spans.called_back(row, context, delivery, began_ms)
                await self._record(row, delivery, began_ms, headers=mask_headers(request.headers))
        except Exception:  # noqa: BLE001 - one callback must not end the others
            _log.exception("callback failed, will be retried", extra=_log_fields(row))
            self._metrics.crashes.inc("callbacks")

    async def _request(
        self, row: CallbackRow, terms: CallbackTerms | None, context: TraceContext | None
    ) -> ports.CallbackRequest | ports.Delivery | None:
        """The request to send, or a failed delivery if the callback can never be signed.

        None if its secrets cannot be decrypted: no attempt is made, so it is delivered once the vault key is right.
        """
        organization = await self._retry_while_unavailable(lambda: organizations.get(self._db, row.org_id))
        if organization is None:
            return self._unsendable(row, "the organization does not exist")
        try:
            secrets = [self._vault.open(organization.webhook_secret), *self._old_secrets(organization)]
            authorization = None if row.auth is None else self._vault.open(row.auth)
        except ValueError as exc:
            self._unsendable(row, str(exc))
            return None
        try:
            headers = attempt_headers(
                secrets,
                row.id,
                row.body,
                timestamp_s=int(self._wall_s()),
                attempt=row.attempts + 1,
                version=self._version,
                authorization=authorization,
            )
        except ValueError as exc:
            return self._unsendable(row, str(exc))
        if context is not None:
            headers[TRACEPARENT] = context.header
        return ports.CallbackRequest(
            url=row.url,
            headers=headers,
            body=row.body,
            org_id=row.org_id,
            allow_private=self.private_callbacks.may_send(None if terms is None else terms.callback_private),
        )

    def _old_secrets(self, organization: Organization) -> list[str]:
        """The secret before the current one, as long as it signs too."""
        old, until_ms = organization.old_webhook_secret, organization.old_secret_until_ms
        if old is None or until_ms is None or self._clock.now_ms() >= until_ms:
            return []
        try:
            return [self._vault.open(old)]
        except ValueError:
            return []  # of a vault key that was lost: the current secret is enough

    def _unsendable(self, row: CallbackRow, why: str) -> ports.Delivery:
        _log.error("callback cannot be signed", extra=_log_fields(row) | {"org_id": row.org_id, "error": why})
        return ports.Delivery(error=f"not sent: {why}")

    async def _send(self, request: ports.CallbackRequest) -> ports.Delivery:
        try:
            async with asyncio.timeout(self._limits.attempt_s):
                return await self._sender.send(request)
        except TimeoutError:
            return ports.Delivery(duration_ms=int(self._limits.attempt_s * 1000), error="attempt timed out")
        except Exception:  # noqa: BLE001 - a bug in the sender; the attempt counts, otherwise it would be repeated forever
            _log.exception("callback sender failed")
            self._metrics.crashes.inc("callbacks")
            return ports.Delivery(error="internal error")

    async def _record(
        self, row: CallbackRow, delivery: ports.Delivery, began_ms: int, *, headers: Mapping[str, str] | None = None
    ) -> None:
        self._has_answered[_receiver(row)] = delivery.status is not None
        if len(self._has_answered) > KNOWN_RECEIVERS:
            del self._has_answered[next(iter(self._has_answered))]
        number = row.attempts + 1
        # An attempt that was requested has a higher number, so it is not repeated.
        is_last = delivery.is_success or number >= MAX_ATTEMPTS
        next_at_ms = None if is_last else self._clock.now_ms() + self._limits.retry_after_ms
        self._report(row, delivery, is_given_up=is_last and not delivery.is_success)
        statements = outbox.record_attempt(
            row.id, delivery, number=number, at_ms=began_ms, next_at_ms=next_at_ms, headers=headers
        )
        try:
            await self._retry_while_unavailable(lambda: self._db.write(statements))
        except ports.NothingChangedError:
            # Our lease expired before we recorded the attempt. The receiver recognizes the repeated id.
            _log.warning("duplicate callback delivery", extra=_log_fields(row))
            return
        if next_at_ms is not None:
            self._retries.append(next_at_ms)
            if self._limits.retry_after_ms < self._limits.poll_s * 1000:
                self._woken.set()  # the current wait may be too long

    def _report(self, row: CallbackRow, delivery: ports.Delivery, *, is_given_up: bool) -> None:
        fields = _log_fields(row) | {"status": delivery.status, "error": delivery.error, "is_given_up": is_given_up}
        if delivery.is_success:
            _log.info("callback delivered", extra=fields)
        else:
            _log.warning("callback attempt failed", extra=fields)
        self._metrics.callback_attempts.inc(_outcome(delivery))
        self._metrics.callback_s.observe(delivery.duration_ms / 1000)
        if is_given_up:
            self._metrics.callbacks_given_up.inc()
        if delivery.is_success and row.attempts < MAX_ATTEMPTS:  # later ones were requested by people
            self._metrics.callback_delay_s.observe(max(0, self._clock.now_ms() - row.created_at_ms) / 1000)

    async def _retry_while_unavailable(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Retry until the database is available, without a limit: an attempt that was made must be recorded."""
        while True:
            try:
                return await work()
            except ports.DatabaseUnavailableError:
                await asyncio.sleep(self._limits.database_retry_s)


def _receiver(row: CallbackRow | DueCallback) -> Receiver:
    return Receiver(row.org_id, row.host)


def _log_fields(row: CallbackRow) -> dict[str, str | int | bool | None]:
    return {"callback_id": row.id, "server_id": row.server_id, "attempt": row.attempts + 1}


def _outcome(delivery: ports.Delivery) -> str:
    if delivery.is_success:
        return "delivered"
    return "no_answer" if delivery.status is None else "refused"
