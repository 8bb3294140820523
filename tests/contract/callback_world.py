"""A database with callbacks, fake receivers, and dispatchers that deliver the callbacks to them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec

from matchpod.adapters.vault import KeyFileVault
from matchpod.core.requests.callback_query import CallbackState
from matchpod.ports import CallbackRequest, Database, DatabaseUnavailableError, Delivery, Row, Statement, Value
from matchpod.service.access.webhook_signature import new_secret
from matchpod.service.callbacks.dispatcher import RETRY_AFTER_MS, CallbackDispatcher
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.callbacks.queue_dispatcher import DispatchLimits
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.service.webhooks.dispatcher import WebhookDispatcher
from matchpod.storage import organizations, outbox
from matchpod.storage.organizations import Organization
from matchpod.storage.outbox import CallbackRow
from matchpod.storage.rows import insert
from tests.clocks import ManualClock
from tests.contract import databases
from tests.waiting import until

BEGAN_MS = 1_800_000_000_000
SECRET = new_secret(bytes(range(32)))
VAULT = KeyFileVault(b"k" * 32)
GOOD = "https://good.example/over"
SLOW = "https://slow.example/over"
LATER = "https://later.example/over"
"""A receiver whose callback shows that a dispatcher has polled."""
TIMEOUT_S = 120.0


class Receivers:
    """Fake receivers: they answer 200 unless configured otherwise, and only after their gate, if any, is open."""

    def __init__(self) -> None:
        self.capacity = 1_000
        self.requests: list[CallbackRequest] = []
        self.answers: dict[str, list[Delivery]] = {}
        self.gates: dict[str, asyncio.Event] = {}

    def fail(self, *statuses: int | None, url: str = GOOD) -> None:
        self.answers[url] = [Delivery(status=s, duration_ms=30, error=None if s else "refused") for s in statuses]

    def block(self, url: str) -> asyncio.Event:
        self.gates[url] = asyncio.Event()
        return self.gates[url]

    async def send(self, request: CallbackRequest) -> Delivery:
        if request.url != LATER:
            self.requests.append(request)
        if request.url in self.gates:
            await self.gates[request.url].wait()
        answers = self.answers.get(request.url)
        return answers.pop(0) if answers else Delivery(status=200, duration_ms=30)

    async def close(self) -> None:
        pass

    @property
    def attempts(self) -> list[str]:
        return [request.headers["X-Matchpod-Attempt"] for request in self.requests]


class FlakyDatabase(databases.DelegatingDatabase):
    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.is_unavailable = False
        self.failures = 0

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        self._check()
        return await super().read(sql, params)

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self._check()
        return await super().write(statements)

    def _check(self) -> None:
        if self.is_unavailable:
            self.failures += 1
            raise DatabaseUnavailableError("unavailable")


class World:
    def __init__(self, db: Database) -> None:
        self.db = db
        self.clock = ManualClock(BEGAN_MS)
        self.receivers = Receivers()
        self.metrics = Metrics(Registry())
        self.private_callbacks = PrivateCallbacks(db=db, by_settings=False, is_explicit=False)
        self.wall_s: float | None = None
        self._polls = itertools.count(1)

    def dispatcher(
        self, owner: str = "me", db: Database | None = None, *, retry_after_ms: int = RETRY_AFTER_MS, **limits: float
    ) -> CallbackDispatcher:
        return CallbackDispatcher(
            db=db or self.db, clock=self.clock, vault=VAULT, sender=self.receivers, metrics=self.metrics,
            private_callbacks=self.private_callbacks,
            owner=owner, version="1.2",
            wall_s=lambda: self.clock.at_ms / 1000 if self.wall_s is None else self.wall_s,
            retry_after_ms=retry_after_ms, limits=msgspec.convert(limits, DispatchLimits),
        )  # fmt: skip

    async def add(
        self, *names: str, url: str = GOOD, auth: str | None = None, org_id: str = "org_1", due_in_ms: int = 0
    ) -> None:
        for known in ("org_1", "org_2", "org_3"):
            if await organizations.get(self.db, known) is None:
                sealed = VAULT.seal(SECRET)
                await organizations.create(
                    self.db, Organization(id=known, name=known, webhook_secret=sealed, created_at_ms=1)
                )
        for name in names:
            row = CallbackRow(
                id=name, server_id=f"srv_{name}", org_id=org_id, host=outbox.host_of(url), url=url,
                auth=VAULT.seal(auth) if auth else None, body=b'{"of":"%b"}' % name.encode(),
                created_at_ms=self.clock.at_ms, next_at_ms=self.clock.at_ms + due_in_ms,
            )  # fmt: skip
            await self.db.write([insert("callbacks", row)])

    async def row(self, name: str = "cb_1") -> CallbackRow:
        rows = await outbox.list_callbacks(self.db, org_id=None, state=None, limit=1000)
        return next(row for row in rows if row.id == name)

    def retry(self, dispatcher: CallbackDispatcher) -> None:
        """Let the time pass after which a failed attempt is repeated."""
        self.clock.at_ms += RETRY_AFTER_MS
        dispatcher.wake()

    async def poll(self, dispatcher: CallbackDispatcher) -> None:
        """Let the dispatcher poll: a callback of another organization is sent after all that are due."""
        name = f"later_{next(self._polls)}"
        await self.add(name, url=LATER, org_id="org_3")
        dispatcher.wake()
        await self.until_attempts(1, name)

    async def until_attempts(self, number: int, name: str = "cb_1") -> None:
        async def are_recorded() -> bool:
            return (await self.row(name)).attempts == number

        await until(are_recorded)

    async def state(self, name: str = "cb_1") -> CallbackState:
        for state in CallbackState:
            rows = await outbox.list_callbacks(self.db, org_id=None, state=state, limit=1000)
            if any(row.id == name for row in rows):
                return state
        raise AssertionError(f"{name} has no state")


@asynccontextmanager
async def running(*dispatchers: CallbackDispatcher | WebhookDispatcher) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one.run()) for one in dispatchers]
    try:
        yield
    finally:
        await asyncio.gather(*(one.drain(0) for one in dispatchers))
        await asyncio.gather(*tasks)
