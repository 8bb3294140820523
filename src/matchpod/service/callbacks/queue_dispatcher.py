"""Deliver the due rows of a queue, each row in its own task. There are two queues: callbacks, and webhook deliveries.

Each queue has its own dispatcher with its own limit of concurrent attempts, so slow receivers of one queue do not delay
the other queue. An attempt is recorded after it was made. If a crash interrupts an attempt, the attempt is repeated
with the same id, body and attempt number. A claimed row is leased, so it is repeated only after its lease has expired.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from heapq import heappop, heappush
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from matchpod import ports
from matchpod.core.fair_shares import FairShares, Receiver
from matchpod.core.trace_context import TraceContext
from matchpod.service.access.webhook_signature import mask_headers
from matchpod.service.telemetry.metrics import Metrics
from matchpod.storage import outbox
from matchpod.storage.outbox import Queue

MAX_PER_HOST: Final = 1_024
"""Maximum number of concurrent attempts per organization and host, so that attempts to other hosts still get through if
1,000 attempts to one host hang. A host that never answers still gets 100 attempts per second, because each attempt
times out after 10 s."""

PAGE: Final = 64
"""Maximum number of rows per claim. Starting their tasks takes about 30 ms. Then the next claim can prefer other
rows."""

CANDIDATES: Final = 1_024
"""Maximum number of due rows per query. The rows to claim (at most PAGE) are chosen from these rows."""

KNOWN_RECEIVERS: Final = 10_000
"""Maximum number of receivers for which the dispatcher remembers whether they answered the last attempt."""

ATTEMPT_S: Final = 15.0
"""Timeout of an attempt in seconds. It is longer than the sender's own timeout of 10 s, and shorter than the lease of a
row, so that two processes do not send the same row at the same time."""

POLL_S: Final = 1.0
"""Interval in seconds at which the queue is polled unless `wake` is called. Other processes add rows without calling
it."""

ROOM_S: Final = 0.1
"""Delay in seconds from the end of an attempt to the poll that it triggers if a limit of concurrent attempts may be
holding back due rows. Polls are then expensive, so all attempts that end within the delay trigger only one poll."""

DATABASE_RETRY_S: Final = 1.0
"""Delay in seconds before a failed database access is retried."""

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class DispatchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits and intervals of a dispatcher."""

    max_per_host: int = MAX_PER_HOST
    page: int = PAGE
    candidates: int = CANDIDATES
    attempt_s: float = ATTEMPT_S
    poll_s: float = POLL_S
    database_retry_s: float = DATABASE_RETRY_S


LIMITS: Final = DispatchLimits()


class Queued(Protocol):
    """A row of a queue."""

    @property
    def id(self) -> str: ...
    @property
    def org_id(self) -> str: ...
    @property
    def created_at_ms(self) -> int: ...
    @property
    def attempts(self) -> int: ...
    @property
    def lease_until_ms(self) -> int | None: ...
    @property
    def unrecorded(self) -> int: ...


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is ready to be sent, and the trace context that it carries."""

    request: ports.CallbackRequest
    context: TraceContext | None = None


class Unsendable(msgspec.Struct, frozen=True, kw_only=True):
    """The result if the request of a row cannot be built. This counts as a failed attempt."""

    error: str
    is_final: bool = False
    """True if the row must not be retried."""


class PutOff(msgspec.Struct, frozen=True, kw_only=True):
    """The result if a row cannot be sent now. No attempt is counted."""

    until_ms: int | None = None
    """When to try again, but not before the lease expires; None to try again as soon as the lease has expired."""


Row = TypeVar("Row", bound=Queued)


class QueueDispatcher(ABC, Generic[Row]):
    """Delivers the rows of a queue. Any number of processes may share the queue's database."""

    what = ""
    """The noun for a row in log messages, such as `callback`."""
    part = "callbacks"
    """The metrics label under which errors of the dispatcher are counted."""
    queue: Queue

    def __init__(
        self,
        *,
        db: ports.Database,
        clock: ports.Clock,
        sender: ports.CallbackSender,
        metrics: Metrics,
        owner: str,
        places: int,
        limits: DispatchLimits = LIMITS,
    ) -> None:
        """`places` is the maximum number of concurrent attempts."""
        self._db = db
        self._clock = clock
        self._sender = sender
        self._metrics = metrics
        self._owner = owner
        self._limits = limits
        self._in_flight: dict[str, asyncio.Task[None]] = {}
        self._shares = FairShares(places, per_host=limits.max_per_host)
        self._has_answered: dict[Receiver, bool] = {}
        self._is_limited = False  # due rows may be waiting because a limit of concurrent attempts was reached
        self._retries: list[int] = []  # a heap of times: when this process's retries are due
        self._woken = asyncio.Event()
        self._is_draining = False
        self._is_over = False
        self._is_waiting_for_database = False
        self._has_stopped = asyncio.Event()
        self._has_stopped.set()

    # --- implemented per queue ------------------------------------------------------------------------------------

    @abstractmethod
    async def claim(self, ids: Sequence[str], now_ms: int) -> list[Row]:
        """Claim the rows with these ids that are still due."""

    @abstractmethod
    def receiver(self, row: Row) -> Receiver:
        """Return the receiver of a row, as stored in the queue. Concurrent attempts are limited per receiver."""

    @abstractmethod
    async def prepare(self, row: Row) -> Prepared | Unsendable | PutOff:
        """Return the request to send, or why the row cannot be sent."""

    @abstractmethod
    def retry_at_ms(self, row: Row, number: int) -> int | None:
        """Return the time to retry after attempt `number` has failed; None to give the row up."""

    @abstractmethod
    def log_fields(self, row: Row) -> dict[str, str | int | bool | None]:
        """Return the fields with which attempts of a row are logged."""

    @abstractmethod
    def count(self, row: Row, delivery: ports.Delivery, *, is_given_up: bool) -> None:
        """Update the metrics after an attempt."""

    def also_recorded(self, _row: Row, _delivery: ports.Delivery, _number: int) -> list[ports.Statement]:
        """Return statements to be executed in the transaction that records an attempt."""
        return []

    async def after_recording(self, row: Row, number: int, delivery: ports.Delivery) -> None:
        """Hook that is called after an attempt was recorded."""

    def was_sent(self, row: Row, prepared: Prepared, delivery: ports.Delivery, began_ms: int) -> None:
        """Hook that is called after an attempt was made, before it is recorded."""

    # --- the loop -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Deliver rows until `drain` is called. On cancellation, cancel the attempts in flight."""
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
        """Make the loop poll the queue now, because a row is due."""
        self._woken.set()

    async def drain(self, timeout_s: float) -> None:
        """Stop claiming rows, and wait for attempts in flight.

        After the timeout, the attempts are cancelled. They are repeated later, by any process.
        """
        self._is_draining = True
        self._woken.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._has_stopped.wait()  # rows that are just being claimed are still sent
                if self._in_flight:
                    await asyncio.wait(self._in_flight.values())
        await self._cancel_in_flight()

    # --- due rows -------------------------------------------------------------------------------------------------

    async def _poll(self) -> None:
        """Claim and send due rows, then wait until the next poll. Only cancellation raises an error."""
        try:
            now_ms = self._clock.now_ms()
            while self._retries and self._retries[0] <= now_ms:
                heappop(self._retries)
            await self._claim()
            self._is_waiting_for_database = False
            await self._wait()
        except ports.DatabaseUnavailableError:
            if not self._is_waiting_for_database:
                self._is_waiting_for_database = True  # log it once, not every second
                _log.warning("database unavailable, %ss are delayed", self.what)
            await asyncio.sleep(self._limits.database_retry_s)
        except Exception:  # noqa: BLE001 - the loop must survive
            _log.exception("%s loop failed", self.what)
            self._metrics.crashes.inc(self.part)
            await asyncio.sleep(self._limits.database_retry_s)

    async def _claim(self) -> None:
        while not self._is_draining and await self._claim_page():
            pass

    async def _claim_page(self) -> bool:
        """Claim due rows of receivers below their limits, and start to send them. True if more may be claimed now."""
        full_orgs, full_hosts = self._shares.full_organizations(), self._shares.full_receivers()
        self._is_limited = bool(full_orgs or full_hosts or self._shares.free <= 0)
        if self._shares.free <= 0:
            return False
        now_ms, limit = self._clock.now_ms(), self._limits.candidates
        find = partial(
            outbox.due_callbacks, self._db, now_ms=now_ms, limit=limit, without_hosts=full_hosts, queue=self.queue
        )
        due = await find(without_orgs=full_orgs)
        if len(due) == limit:  # other organizations may have due rows beyond the limit
            due += await find(without_orgs=[*full_orgs, *{row.org_id for row in due}])
        turns = self._shares.choose([Receiver(row.org_id, row.host) for row in due], self._limits.page, rank=self._rank)
        ids = [due[position].id for position in turns]
        # Rows in flight are due if their lease expired before the attempt was recorded. Do not send them again.
        unrecorded = [row_id for row_id in ids if row_id in self._in_flight]
        if unrecorded:
            await self._db.write([outbox.extend_leases(unrecorded, now_ms, self.queue)])
        fresh = [row_id for row_id in ids if row_id not in self._in_flight]
        if fresh:
            for row in await self.claim(fresh, now_ms):
                self._start(row)
        return 0 < len(ids) < len(due)

    def _rank(self, receiver: Receiver) -> int:
        """Return a receiver's rank (lower first): 0 if it answered the last attempt, 1 if unknown, 2 if it did not."""
        return {True: 0, None: 1, False: 2}[self._has_answered.get(receiver)]

    def _start(self, row: Row) -> None:
        if not self._is_over:  # otherwise the row becomes due again when its lease expires
            task = asyncio.create_task(self._deliver(row), name=f"{self.what} {row.id}")
            self._in_flight[row.id] = task
            self._shares.hold(self.receiver(row))
            task.add_done_callback(partial(self._forget, row))

    def _forget(self, row: Row, _: asyncio.Task[None]) -> None:
        del self._in_flight[row.id]
        self._shares.release(self.receiver(row))
        if self._is_limited:
            self._is_limited = False  # until the next claim, so that several ended attempts trigger only one poll
            asyncio.get_running_loop().call_later(ROOM_S, self._woken.set)

    async def _wait(self) -> None:
        wait_s = self._limits.poll_s
        if self._retries:  # wait only until the first retry is due
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

    # --- one row --------------------------------------------------------------------------------------------------

    async def _deliver(self, row: Row) -> None:
        try:
            prepared = await self._retry_while_unavailable(lambda: self.prepare(row))
            began_ms = self._clock.now_ms()
            # If the database was slow, the lease may expire during the attempt. Put the row back, to be claimed again.
            if isinstance(prepared, PutOff) or began_ms + self._limits.attempt_s * 1000 > (row.lease_until_ms or 0):
                due_ms = (prepared.until_ms if isinstance(prepared, PutOff) else None) or began_ms
                put_back = outbox.put_back(self.queue, row.id, lease_until_ms=row.lease_until_ms, due_ms=due_ms)
                await self._retry_while_unavailable(lambda: self._db.write([put_back]))
                return
            if row.unrecorded > 1:
                _log.warning("%s repeated, its attempt was not recorded", self.what, extra=self.log_fields(row))
            if isinstance(prepared, Unsendable):
                delivery = ports.Delivery(error=prepared.error)
                await self._record(row, delivery, began_ms, is_final=prepared.is_final)
            else:
                delivery = await self._send(prepared.request)
                self.was_sent(row, prepared, delivery, began_ms)
                await self._record(row, delivery, began_ms, headers=mask_headers(prepared.request.headers))
        except Exception:  # noqa: BLE001 - an error of one row must not affect other rows
            _log.exception("%s failed, will be retried", self.what, extra=self.log_fields(row))
            self._metrics.crashes.inc(self.part)

    async def _send(self, request: ports.CallbackRequest) -> ports.Delivery:
        try:
            async with asyncio.timeout(self._limits.attempt_s):
                return await self._sender.send(request)
        except TimeoutError:
            return ports.Delivery(duration_ms=int(self._limits.attempt_s * 1000), error="attempt timed out")
        except Exception:  # noqa: BLE001 - a bug in the sender; count the attempt, or it would be repeated forever
            _log.exception("callback sender failed")
            self._metrics.crashes.inc(self.part)
            return ports.Delivery(error="internal error")

    async def _record(
        self,
        row: Row,
        delivery: ports.Delivery,
        began_ms: int,
        *,
        headers: Mapping[str, str] | None = None,
        is_final: bool = False,
    ) -> None:
        self._has_answered[self.receiver(row)] = delivery.status is not None
        if len(self._has_answered) > KNOWN_RECEIVERS:
            del self._has_answered[next(iter(self._has_answered))]
        number = row.attempts + 1
        next_at_ms = None if delivery.is_success or is_final else self.retry_at_ms(row, number)
        self._report(row, delivery, is_given_up=next_at_ms is None and not delivery.is_success)
        statements = [
            *outbox.record_attempt(
                row.id,
                delivery,
                number=number,
                at_ms=began_ms,
                next_at_ms=next_at_ms,
                headers=headers,
                queue=self.queue,
            ),
            *self.also_recorded(row, delivery, number),
        ]
        try:
            await self._retry_while_unavailable(lambda: self._db.write(statements))
        except ports.NothingChangedError:
            # The lease expired before the attempt was recorded, and the row was sent again. Receivers recognize its id.
            _log.warning("duplicate %s delivery", self.what, extra=self.log_fields(row))
            return
        await self.after_recording(row, number, delivery)
        if next_at_ms is not None:
            heappush(self._retries, next_at_ms)
            if next_at_ms - self._clock.now_ms() < self._limits.poll_s * 1000:
                self._woken.set()  # the loop may be waiting until a later time

    def _report(self, row: Row, delivery: ports.Delivery, *, is_given_up: bool) -> None:
        fields = self.log_fields(row) | {
            "status": delivery.status,
            "error": delivery.error,
            "is_given_up": is_given_up,
        }
        if delivery.is_success:
            _log.info("%s delivered", self.what, extra=fields)
        else:
            _log.warning("%s attempt failed", self.what, extra=fields)
        self.count(row, delivery, is_given_up=is_given_up)

    async def _retry_while_unavailable(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Retry for as long as the database is unavailable, because every attempt must be recorded."""
        while True:
            try:
                return await work()
            except ports.DatabaseUnavailableError:
                await asyncio.sleep(self._limits.database_retry_s)


def outcome_of(delivery: ports.Delivery) -> str:
    """Return the metrics label for the outcome of an attempt."""
    if delivery.is_success:
        return "delivered"
    return "no_answer" if delivery.status is None else "refused"
