"""How does a caller learn how his match ended? The outbox takes callbacks that are due and sends each on its own.

Two attempts, the second 5 s after the first one failed; one more whenever an operator asks for it. An attempt is
recorded after it was made, so one that our own death cut off is made again: same id, same bytes, same number.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from matchpod.ports import (
    CallbackRequest,
    CallbackSender,
    Clock,
    Database,
    DatabaseAwayError,
    Delivery,
    NothingChangedError,
    Vault,
)
from matchpod.service.measures import Measures
from matchpod.service.webhook_signature import attempt_headers
from matchpod.storage import organizations, outbox
from matchpod.storage.outbox import CallbackRow

MAX_ATTEMPTS: Final = 2
"""As promised to callers: one, and one more."""

RETRY_AFTER_MS: Final = 5_000
"""From the end of a failed attempt to the next: a receiver that restarts is back by then."""

MAX_UNDER_WAY: Final = 256
"""Attempts at a time, a connection each: receivers that all hang still leave 25 attempts a second to the others."""

ATTEMPT_S: Final = 15.0
"""An attempt takes 10 s; one that outlives this would outlive its lease next, and be made by two."""

POLL_S: Final = 1.0
"""The longest time between two looks: other processes end matches too, and their callbacks may be left to us."""

AWAY_S: Final = 1.0
"""Until a database that is away is asked again."""

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Outbox:
    """The callbacks that this process delivers; any number of processes may share a database."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        vault: Vault,
        sender: CallbackSender,
        measures: Measures,
        owner: str,
        version: str,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        """`wall_s` is the time that receivers compare a signature with: unlike our clock, it is set right."""
        self._db = db
        self._clock = clock
        self._vault = vault
        self._sender = sender
        self._measures = measures
        self._owner = owner
        self._version = version
        self._wall_s = wall_s
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._retries: deque[int] = deque()  # when attempts of ours are to be repeated, the earliest first
        self._woken = asyncio.Event()
        self._is_draining = False
        self._is_over = False
        self._is_waiting_for_database = False
        self._has_stopped = asyncio.Event()
        self._has_stopped.set()

    async def run(self) -> None:
        """Deliver callbacks until drained, or until cancelled: then attempts under way are cut off."""
        self._has_stopped.clear()
        try:
            while not self._is_draining:
                await self._look()
        except asyncio.CancelledError:
            await self._cut_off()
            raise
        finally:
            self._has_stopped.set()

    def wake(self) -> None:
        """A callback is due now: do not wait for the next look."""
        self._woken.set()

    async def drain(self, timeout_s: float) -> None:
        """Take no more callbacks, let attempts under way end; those that do not in time are cut off, to be repeated."""
        self._is_draining = True
        self._woken.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._has_stopped.wait()  # what is being claimed right now is still to be sent
                if self._under_way:
                    await asyncio.wait(self._under_way.values())
        await self._cut_off()

    # --- which callbacks ------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Take what is due, then wait for more; whatever happens, there is a next look."""
        try:
            now_ms = self._clock.now_ms()
            while self._retries and self._retries[0] <= now_ms:
                self._retries.popleft()
            await self._claim(now_ms)
            self._is_waiting_for_database = False
            await self._wait()
        except DatabaseAwayError:
            if not self._is_waiting_for_database:
                self._is_waiting_for_database = True  # said once, not every second
                _log.warning("callbacks wait for the database")
            await asyncio.sleep(AWAY_S)
        except Exception:  # noqa: BLE001 - the loop must survive
            _log.exception("the callback loop failed and goes on")
            self._measures.crashes.inc("callbacks")
            await asyncio.sleep(AWAY_S)

    async def _claim(self, now_ms: int) -> None:
        room = MAX_UNDER_WAY - len(self._under_way)
        if room <= 0:
            return
        for row in await outbox.claim_callbacks(self._db, owner=self._owner, now_ms=now_ms, limit=room):
            # Its lease may end while its record waits for the database: it was sent all the same. And a claim that
            # was answered after the end of draining is left to run out.
            if row.id not in self._under_way and not self._is_over:
                task = asyncio.create_task(self._deliver(row), name=f"callback {row.id}")
                self._under_way[row.id] = task
                task.add_done_callback(partial(self._ended, row.id))

    def _ended(self, callback_id: str, _: asyncio.Task[None]) -> None:
        if len(self._under_way) >= MAX_UNDER_WAY:
            self._woken.set()  # there was no room, now there is
        del self._under_way[callback_id]

    async def _wait(self) -> None:
        wait_s = POLL_S
        if self._retries:  # one may have become due since the claim: then there is no wait
            wait_s = min(wait_s, (self._retries[0] - self._clock.now_ms() + 1) / 1000)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._woken.wait()
        self._woken.clear()

    async def _cut_off(self) -> None:
        self._is_over = True
        tasks = tuple(self._under_way.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # --- one callback ---------------------------------------------------------------------------------------------

    async def _deliver(self, row: CallbackRow) -> None:
        try:
            request = await self._request(row)
            if request is None:
                return  # its lease runs out, then it is tried again
            # Waiting for the database may have used up the lease: then the attempt is somebody else's.
            if self._clock.now_ms() + ATTEMPT_S * 1000 > (row.lease_until_ms or 0):
                return
            began_ms = self._clock.now_ms()
            delivery = request if isinstance(request, Delivery) else await self._send(request)
            await self._record(row, delivery, began_ms)
        except Exception:  # noqa: BLE001 - one callback must not end the others
            _log.exception("a callback failed and is tried again", extra=_names(row))
            self._measures.crashes.inc("callbacks")

    async def _request(self, row: CallbackRow) -> CallbackRequest | Delivery | None:
        """What is to be sent; a delivery that failed where it cannot be signed, ever.

        None where its secrets do not open: no attempt is used up, so that with the right key it is still delivered.
        """
        organization = await _patiently(lambda: organizations.get(self._db, row.org_id))
        if organization is None:
            return self._unsendable(row, "there is no such organization")
        try:
            secret = self._vault.open(organization.webhook_secret)
            authorization = None if row.auth is None else self._vault.open(row.auth)
        except ValueError as exc:
            self._unsendable(row, str(exc))
            return None
        try:
            headers = attempt_headers(
                [secret],
                row.id,
                row.body,
                timestamp_s=int(self._wall_s()),
                attempt=row.attempts + 1,
                version=self._version,
                authorization=authorization,
            )
        except ValueError as exc:
            return self._unsendable(row, str(exc))
        return CallbackRequest(url=row.url, headers=headers, body=row.body)

    def _unsendable(self, row: CallbackRow, why: str) -> Delivery:
        _log.error("a callback cannot be signed", extra=_names(row) | {"org_id": row.org_id, "error": why})
        return Delivery(error=f"not sent: {why}")

    async def _send(self, request: CallbackRequest) -> Delivery:
        try:
            async with asyncio.timeout(ATTEMPT_S):
                return await self._sender.send(request)
        except TimeoutError:
            return Delivery(duration_ms=int(ATTEMPT_S * 1000), error="no end within the limit")
        except Exception:  # noqa: BLE001 - a sender never raises; if it does, the attempt counts, or there is no end
            _log.exception("the sender of callbacks failed")
            self._measures.crashes.inc("callbacks")
            return Delivery(error="the sender failed")

    async def _record(self, row: CallbackRow, delivery: Delivery, began_ms: int) -> None:
        number = row.attempts + 1
        # Nothing is to come after an attempt that an operator asked for: its number is past the promised ones.
        is_last = delivery.is_done or number >= MAX_ATTEMPTS
        next_at_ms = None if is_last else self._clock.now_ms() + RETRY_AFTER_MS
        self._tell(row, delivery, is_given_up=is_last and not delivery.is_done)
        statements = outbox.attempted(
            row.id,
            number=number,
            at_ms=began_ms,
            status=delivery.status,
            duration_ms=delivery.duration_ms,
            error=delivery.error,
            next_at_ms=next_at_ms,
            delivered=delivery.is_done,
        )
        try:
            await _patiently(lambda: self._db.write(statements))
        except NothingChangedError:
            # Our lease ended before we could tell: the receiver knows the repeated id.
            _log.warning("a callback was sent by two", extra=_names(row))
            return
        if next_at_ms is not None:
            self._retries.append(next_at_ms)
            self._woken.set()  # the wait that is under way does not know of it

    def _tell(self, row: CallbackRow, delivery: Delivery, *, is_given_up: bool) -> None:
        fields = _names(row) | {"status": delivery.status, "error": delivery.error, "is_given_up": is_given_up}
        if delivery.is_done:
            _log.info("callback delivered", extra=fields)
        else:
            _log.warning("callback attempt failed", extra=fields)
        self._measures.callback_attempts.inc(_outcome(delivery))
        self._measures.callback_s.observe(delivery.duration_ms / 1000)


def _names(row: CallbackRow) -> dict[str, str | int | bool | None]:
    return {"callback_id": row.id, "server_id": row.server_id, "attempt": row.attempts + 1}


def _outcome(delivery: Delivery) -> str:
    if delivery.is_done:
        return "delivered"
    return "no_answer" if delivery.status is None else "refused"


async def _patiently(work: Callable[[], Awaitable[_T]]) -> _T:
    """Do this when the database is there, however long that takes: an attempt that was made must be known."""
    while True:
        try:
            return await work()
        except DatabaseAwayError:
            await asyncio.sleep(AWAY_S)
