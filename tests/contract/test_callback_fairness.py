"""Receivers that accept connections and never answer do not delay callbacks to other receivers, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from matchpod.adapters.callback_sender import HttpCallbackSender
from matchpod.adapters.clock import SystemClock
from matchpod.adapters.vault import KeyFileVault
from matchpod.core.requests.callback_query import CallbackState
from matchpod.ports import Database
from matchpod.service.access.webhook_signature import new_secret
from matchpod.service.callbacks.dispatcher import CallbackDispatcher
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.storage import organizations, outbox, rows
from matchpod.storage.organizations import Organization
from matchpod.storage.outbox import CallbackRow
from tests.contract import databases
from tests.waiting import until

harness = databases.sqlite_harness

HANGING = 300
GOOD = 20
PATIENCE_S = 60.0
VAULT = KeyFileVault(b"k" * 32)


class Receiver(asyncio.Protocol):
    """Accepts a connection, reads, and never answers."""

    def __init__(self, connected: set[asyncio.Transport]) -> None:
        self._connected = connected

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._connected.add(transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._connected.discard(self.transport)


class GoodReceiver(Receiver):
    """Answers 200 as soon as a request begins."""

    def data_received(self, _: bytes) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


@asynccontextmanager
async def listening(protocol: type[Receiver], count: int) -> AsyncIterator[list[str]]:
    """Listen on a number of ports; yield a URL for each. All connections are closed at the end."""
    loop, connected = asyncio.get_running_loop(), set[asyncio.Transport]()

    def accept() -> Receiver:
        return protocol(connected)

    servers = [await loop.create_server(accept, "127.0.0.1", 0, backlog=HANGING) for _ in range(count)]
    try:
        yield [f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/" for server in servers]
    finally:
        for server in servers:
            server.close()
        # They would see that the other side has closed them, but on a slow machine the loop ends before that.
        for transport in connected:
            transport.abort()
        await until(lambda: not connected)


@asynccontextmanager
async def dispatching(db: Database) -> AsyncIterator[CallbackDispatcher]:
    sender = HttpCallbackSender()
    dispatcher = CallbackDispatcher(
        db=db,
        clock=SystemClock(),
        vault=VAULT,
        sender=sender,
        private_callbacks=PrivateCallbacks(db=db, by_settings=True, is_explicit=True),
        metrics=Metrics(Registry()),
        owner="me",
        version="1",
    )
    task = asyncio.create_task(dispatcher.run())
    try:
        yield dispatcher
    finally:
        await dispatcher.drain(0)
        await task
        await sender.close()


def callback(name: str, *, org_id: str, url: str) -> CallbackRow:
    return CallbackRow(
        id=name, server_id=name, org_id=org_id, host=outbox.host_of(url), url=url, body=b"{}",
        created_at_ms=SystemClock().now_ms(), next_at_ms=SystemClock().now_ms(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("orgs", "hosts"), [(1, 1), (1, HANGING), (30, 30)], ids=["one host", "many hosts", "many organizations"]
)
async def test_hanging_receivers_do_not_delay_others(db: Database, orgs: int, hosts: int) -> None:
    secret = VAULT.seal(new_secret(bytes(32)))
    for number in range(orgs + 1):
        organization = Organization(id=f"org_{number}", name=f"{number}", webhook_secret=secret, created_at_ms=1)
        await organizations.create(db, organization)
    async with listening(Receiver, hosts) as hanging, listening(GoodReceiver, 1) as (good,):
        callbacks = [
            callback(f"hanging_{number}", org_id=f"org_{number % orgs}", url=hanging[number % hosts])
            for number in range(HANGING)
        ]
        await db.write([rows.insert("callbacks", row) for row in callbacks])
        async with dispatching(db) as dispatcher, asyncio.timeout(PATIENCE_S):
            for number in range(GOOD):
                # Half of them are from an organization with hanging receivers.
                row = callback(f"good_{number}", org_id=("org_0", f"org_{orgs}")[number % 2], url=good)
                await db.write([rows.insert("callbacks", row)])
                dispatcher.wake()
            delivered: list[CallbackRow] = []
            while len(delivered) < GOOD:
                await asyncio.sleep(0.05)
                delivered = await outbox.list_callbacks(db, org_id=None, state=CallbackState.DELIVERED, limit=GOOD)
            # No attempt to reach a hanging receiver has timed out, so no good callback can have waited for one.
            waiting = await outbox.list_callbacks(db, org_id=None, state=CallbackState.WAITING, limit=HANGING)
            assert {row.attempts for row in waiting} == {0}
            assert len(waiting) == HANGING
