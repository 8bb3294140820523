"""Send thousands of events to webhooks whose receivers fail half of the time, hang or are slow.

`.venv/bin/python -m tests.bench.webhooks --events 10000` checks that every event arrives at every receiver at least once,
that its number restores the order of each match, and shows how long callbacks and the webhook of another organization
take meanwhile, compared with the same without the flood. Pauses between attempts are shorter than in the service.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from enum import Enum, auto
from statistics import median, quantiles
from time import monotonic
from typing import NamedTuple

import msgspec

from matchpod.adapters.callback_sender import HttpCallbackSender
from matchpod.adapters.clock import SystemClock
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.core.iso_dates import iso_time
from matchpod.core.views.organization_event_shapes import MatchPausedEvent
from matchpod.core.views.timeline_items import PausedItem
from matchpod.ports import Database
from matchpod.service.access.audit import Audit
from matchpod.service.access.webhook_signature import new_secret
from matchpod.service.callbacks.dispatcher import CallbackDispatcher
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.reading.history import History
from matchpod.service.regions.regions import Regions
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.service.webhooks.bodies import Bodies
from matchpod.service.webhooks.dispatcher import WebhookDispatcher
from matchpod.service.webhooks.feed import EventFeed
from matchpod.service.webhooks.management import Webhooks
from matchpod.storage import organization_events, organizations, outbox, servers
from matchpod.storage.organizations import Organization
from matchpod.storage.outbox import CallbackRow
from matchpod.storage.rows import insert
from matchpod.storage.webhook_deliveries import DeliveryRow
from tests.bench.checkouts import bench_folder
from tests.chaos.http_messages import read_request
from tests.migrated import create_migrated
from tests.server_rows import server_row
from tests.vaults import VAULT

MATCHES = 100
BATCH = 50
"""Events that happen at once."""
PAUSE_MS = 300
"""Pause between two attempts; in the service they grow to hours."""
MAX_ATTEMPTS = 50
HANG_S = 2.0
"""When an attempt that hangs ends; in the service after 10 s."""
SLOW_S = 0.5
CALLBACK_EVERY_S = 0.1
FLOODED, OTHER = "org_1", "org_2"
_MAP_ID = "3f1c0a52-6c1e-5b7a-9d3e-0123456789ab"


class Behavior(Enum):
    """What a receiver does."""

    GOOD = auto()
    FAILS = auto()
    """Answers 500 to half of the requests."""
    HANGS = auto()
    """Does not answer a quarter of them."""
    SLOW = auto()


class Arrival(NamedTuple):
    """A request that was answered with 200."""

    at_s: float
    delivery: str
    sequence: int
    server_id: str


class Receiver:
    """An HTTP server on loopback."""

    def __init__(self, behavior: Behavior) -> None:
        self.behavior = behavior
        self.arrivals: list[Arrival] = []
        self._random = random.Random(behavior.name)
        self.url = ""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=1024)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/in"
        try:
            yield
        finally:
            server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await read_request(reader)
            if request is None:
                return
            chance = self._random.random()
            if self.behavior is Behavior.HANGS and chance < 0.25:
                await reader.read()
                return
            if self.behavior is Behavior.SLOW:
                await asyncio.sleep(SLOW_S)
            is_good = self.behavior is not Behavior.FAILS or chance < 0.5
            if is_good:
                body, delivery = json.loads(request.body), request.headers["webhook-id"]
                self.arrivals.append(Arrival(monotonic(), delivery, body.get("sequence", 0), str(body.get("serverId"))))
            writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % (200 if is_good else 500))
            await writer.drain()
        except (OSError, EOFError):
            pass
        finally:
            writer.close()


class Impatient(WebhookDispatcher):
    """A dispatcher with shorter pauses between attempts."""

    def retry_at_ms(self, row: DeliveryRow, number: int) -> int | None:
        return self._clock.now_ms() + PAUSE_MS if number < MAX_ATTEMPTS else None


class Delays(NamedTuple):
    """From the creation of something until its receiver got it, in seconds."""

    callbacks: list[float]
    of_other: list[float]


class Report(NamedTuple):
    """What was seen."""

    missing: dict[str, int]
    """Events that did not arrive, by receiver."""
    repeated: dict[str, int]
    unordered: int
    """Matches whose order the numbers do not restore."""
    took_s: float
    alone: Delays
    flooded: Delays


class Flood:
    """A database, receivers, and what delivers to them."""

    def __init__(self, db: Database) -> None:
        self._db, self._clock, self._metrics = db, SystemClock(), Metrics(Registry())
        self._private = PrivateCallbacks(db=db, by_settings=True, is_explicit=True)
        self.receivers = {behavior: Receiver(behavior) for behavior in Behavior}
        self.other, self.callbacks = Receiver(Behavior.GOOD), Receiver(Behavior.GOOD)
        self._happened: dict[str, list[int]] = defaultdict(list)
        """The numbers of the events of each match, as they happened."""
        self._created_s: dict[str, float] = {}
        self._other_s: list[float] = []
        self._callbacks = 0

    async def run(self, events: int) -> Report:
        """Send this many events to all receivers."""
        await self._set_up()
        sender, own = HttpCallbackSender(), HttpCallbackSender(total_s=HANG_S)
        callbacks = CallbackDispatcher(
            db=self._db, clock=self._clock, vault=VAULT, sender=sender, private_callbacks=self._private,
            metrics=self._metrics, owner="bench", version="1",
        )  # fmt: skip
        webhooks = Impatient(
            db=self._db, clock=self._clock, vault=VAULT, sender=own, private_callbacks=self._private,
            metrics=self._metrics, owner="bench", version="1",
        )  # fmt: skip
        remote = RemoteMatches(db=self._db, regions=Regions([], self._db), turns=FoldTurns())
        history = History(db=self._db, live=LocalMatches(), remote=remote)
        feed = EventFeed(
            db=self._db, clock=self._clock, bodies=Bodies(db=self._db, history=history), metrics=self._metrics,
            owner="bench", wake=webhooks.wake,
        )  # fmt: skip
        async with asyncio.TaskGroup() as group:
            jobs = [group.create_task(job) for job in (callbacks.run(), webhooks.run(), feed.run())]
            alone = await self._measure(asyncio.sleep(max(2.0, events / 1_000)), callbacks)
            began_s = monotonic()
            flooded = await self._measure(self._flood(events), callbacks)
            took_s = monotonic() - began_s
            for job in jobs:
                job.cancel()
            await asyncio.gather(sender.close(), own.close())
        return self._report(took_s, alone, flooded)

    async def _set_up(self) -> None:
        management = Webhooks(
            db=self._db, clock=self._clock, vault=VAULT, audit=Audit(db=self._db, clock=self._clock),
            private_callbacks=self._private, max_webhooks=len(Behavior),
        )  # fmt: skip
        for org_id, receivers in ((FLOODED, list(self.receivers.values())), (OTHER, [self.other])):
            secret = VAULT.seal(new_secret(bytes(32)))
            await organizations.create(
                self._db, Organization(id=org_id, name=org_id, webhook_secret=secret, created_at_ms=1)
            )
            who = Principal(org_id=org_id, key_id="bench", role=Role.OWNER, scopes=frozenset(Scope))
            for receiver in receivers:
                await management.create(who, msgspec.json.encode({"url": receiver.url, "events": ["*"]}))
        for number in range(MATCHES):
            await servers.create(self._db, server_row(f"srv_{number}", org_id=FLOODED), idempotency=None)
        await servers.create(self._db, server_row("srv_other", org_id=OTHER), idempotency=None)

    async def _flood(self, events: int) -> None:
        for start in range(0, events, BATCH):
            names = [f"srv_{number % MATCHES}" for number in range(start, min(events, start + BATCH))]
            first = await organization_events.newest(self._db, FLOODED) + 1
            await self._append(FLOODED, names)
            for number, name in enumerate(names):
                self._happened[name].append(first + number)
            await asyncio.sleep(0.05)
        wanted = set(range(1, events + 1))
        while any(wanted - {one.sequence for one in receiver.arrivals} for receiver in self.receivers.values()):
            await asyncio.sleep(0.2)

    async def _append(self, org_id: str, names: Sequence[str]) -> None:
        at = iso_time(self._clock.now_ms())
        item = PausedItem(seq=1, timestamp=at, round_number=3, by="mp_pause_match")
        lines = [
            msgspec.json.encode(
                MatchPausedEvent(server_id=name, external_match_id=None, at=at, map_id=_MAP_ID, map_number=1, item=item)
            )
            for name in names
        ]
        await self._db.write(organization_events.append(org_id, lines, at_ms=self._clock.now_ms()))

    async def _measure(self, work: Coroutine[None, None, None], dispatcher: CallbackDispatcher) -> Delays:
        """Do some work; send callbacks and events of the other organization meanwhile, and return how long they took."""
        seen = len(self.callbacks.arrivals), len(self.other.arrivals)
        begun = len(self._created_s), len(self._other_s)
        task = asyncio.create_task(work)
        while not task.done():
            await self._call_back(dispatcher)
            self._other_s.append(monotonic())
            await self._append(OTHER, ["srv_other"])
            await asyncio.wait({task}, timeout=CALLBACK_EVERY_S)
        await task
        sent = len(self._created_s) - begun[0], len(self._other_s) - begun[1]
        while len(self.callbacks.arrivals) < seen[0] + sent[0] or len(self.other.arrivals) < seen[1] + sent[1]:
            await asyncio.sleep(0.05)
        calls = [one.at_s - self._created_s[one.delivery] for one in self.callbacks.arrivals[seen[0] :]]
        others = [one.at_s - self._other_s[one.sequence - 1] for one in self.other.arrivals[seen[1] :]]
        return Delays(calls, others)

    async def _call_back(self, dispatcher: CallbackDispatcher) -> None:
        self._callbacks += 1
        name = f"msg_{self._callbacks}"
        now_ms = self._clock.now_ms()
        row = CallbackRow(
            id=name, server_id=f"srv_ended_{self._callbacks}", org_id=(FLOODED, OTHER)[self._callbacks % 2],
            host=outbox.host_of(self.callbacks.url), url=self.callbacks.url, body=b"{}", created_at_ms=now_ms,
            next_at_ms=now_ms,
        )  # fmt: skip
        self._created_s[name] = monotonic()
        await self._db.write([insert("callbacks", row)])
        dispatcher.wake()

    def _report(self, took_s: float, alone: Delays, flooded: Delays) -> Report:
        happened = {sequence for numbers in self._happened.values() for sequence in numbers}
        missing, repeated, unordered = {}, {}, 0
        for behavior, receiver in self.receivers.items():
            ids = Counter(one.delivery for one in receiver.arrivals)
            missing[behavior.name] = len(happened - {one.sequence for one in receiver.arrivals})
            repeated[behavior.name] = sum(ids.values()) - len(ids)
            of_match: dict[str, set[int]] = defaultdict(set)
            for one in receiver.arrivals:
                of_match[one.server_id].add(one.sequence)
            unordered += sum(sorted(of_match[name]) != numbers for name, numbers in self._happened.items())
        return Report(missing, repeated, unordered, took_s, alone, flooded)


async def flood(db: Database, events: int) -> Report:
    """Flood the receivers of an organization with events, on an empty database."""
    world = Flood(db)
    async with world.other.listening(), world.callbacks.listening():
        first, second, third, fourth = world.receivers.values()
        async with first.listening(), second.listening(), third.listening(), fourth.listening():
            return await world.run(events)


def _words(delays: Sequence[float]) -> str:
    last = quantiles(delays, n=100)[98]
    return f"median {median(delays):.3f} s, 99 % {last:.3f} s, longest {max(delays):.3f} s of {len(delays)}"


async def _main(events: int) -> None:
    with bench_folder() as folder:
        path = folder / "bench.sqlite3"
        create_migrated(path)
        db = await SqliteDatabase.open(path)
        try:
            report = await flood(db, events)
        finally:
            await db.close()
    print(f"{events:,} events to {len(Behavior)} receivers in {report.took_s:.0f} s")
    print(f"missing: {report.missing}, repeated: {report.repeated}, matches out of order: {report.unordered}")
    for name, delays in (("alone", report.alone), ("during the flood", report.flooded)):
        print(f"callbacks {name}: {_words(delays.callbacks)}")
        print(f"webhook of another organization {name}: {_words(delays.of_other)}")


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # one for each attempt that fails
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    asyncio.run(_main(parser.parse_args().events))
