"""Run copies of a database beside their original while matches are played: each match still has one callback.

SQLite is copied with `matchpod backup` and `matchpod restore`, PostgreSQL with `pg_dump` and `pg_restore`. The leases in
a copy have expired, so a copy that drove matches would do it at once.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # the wheel has no py.typed
import msgspec

from tests.chaos.cluster import PATIENT_SPEED, Cluster
from tests.chaos.plan import SANDBOX, GameSpec
from tests.chaos.receivers import Receivers
from tests.chaos.stores import PostgresServer, PostgresStore, SqliteStore, Store
from tests.e2e.service.running_service import RunningService, free_port_range, region

SPEED = 20
COPIES = 3
COPY_EVERY_S = 4.0
END_S = 600.0
QUIET_S = 5.0
"""Time for callbacks that must not come."""
EXPIRE = "UPDATE servers SET lease_until_ms = 0 WHERE lease_owner IS NOT NULL"


class Seen(msgspec.Struct):
    """What was observed on one database."""

    callbacks: Counter[str]
    processes: int
    """Game servers that copies started."""
    warned: int
    """Copies that said that they serve reads only."""


async def measure_copies(folder: Path, matches: int, say: Callable[[str], None]) -> tuple[bool, list[str]]:
    """Play matches on both databases, with copies beside them; return whether all went well, and the figures."""
    seen = {"SQLite": await _play(folder / "sqlite", SqliteStore(folder / "sqlite" / "data"), matches)}
    server = PostgresServer(folder / "postgres-server")
    try:
        seen["PostgreSQL"] = await _play(folder / "postgres", await server.create_store(), matches)
    finally:
        server.close()
    lines = [
        "| database | matches | copies beside it | callbacks | matches with one callback | servers of copies |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    is_clean = True
    for name, one in seen.items():
        single = sum(count == 1 for count in one.callbacks.values())
        is_clean &= single == matches == one.callbacks.total() and one.processes == 0 and one.warned == COPIES
        lines.append(f"| {name} | {matches} | {one.warned} | {one.callbacks.total()} | {single} | {one.processes} |")
        say(lines[-1])
    return is_clean, lines


async def _play(folder: Path, store: Store, matches: int) -> Seen:
    folder.mkdir(parents=True)
    regions = region(SANDBOX, free_port_range(matches), speed=PATIENT_SPEED)
    async with AsyncExitStack() as stack:
        receivers = await stack.enter_async_context(Receivers())
        cluster = await stack.enter_async_context(Cluster(folder, store, regions=regions))
        for number in range(matches):
            body = GameSpec("duel", number).body(speed=SPEED, is_lockstep=False)
            body |= {"region": SANDBOX, "callbackUrl": receivers.url(str(number))}
            created = await cluster.call("POST", "/api/v1/matches", body)
            assert created.status == 201, created
        copies = []
        for number in range(COPIES):
            await asyncio.sleep(COPY_EVERY_S)
            copied = await _copy(cluster.replicas[0].service, store, folder / f"copy{number}", regions)
            await asyncio.to_thread(stack.enter_context, copied)
            copies.append(copied)
        deadline_s = time.monotonic() + END_S
        while not all(receivers.at(str(number)) for number in range(matches)) and time.monotonic() < deadline_s:
            await asyncio.sleep(0.5)
        await asyncio.sleep(QUIET_S)
        return Seen(
            callbacks=Counter({str(number): len(receivers.at(str(number))) for number in range(matches)}),
            processes=sum(len(one.server_processes()) for one in copies),
            warned=sum("warnings" in one.call("GET", "/readyz").json for one in copies),
        )


async def _copy(original: RunningService, store: Store, folder: Path, regions: str) -> RunningService:
    """Copy the database of a running service; return a service for the copy, not started yet."""
    url = await _copy_postgres(store, folder) if isinstance(store, PostgresStore) else None
    copied = RunningService(folder, regions=regions, database_url=url, key=original.key)
    if url is None:
        for service, command in ((original, "backup"), (copied, "restore")):
            done = await asyncio.to_thread(service.run, command, str(folder / "backup.tar"))
            assert done.returncode == 0, done.stderr
        with closing(sqlite3.connect(copied.data_dir / "matchpod.sqlite3")) as db, db:
            db.execute(EXPIRE)
    return copied


async def _copy_postgres(store: PostgresStore, folder: Path) -> str:
    folder.mkdir()
    name, schema = f"copy_{uuid.uuid4().hex}", store.url.rpartition("=")[2]
    target = store.server.url.replace("/postgres?", f"/{name}?")
    connection = await asyncpg.connect(store.server.url)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    dump = str(folder / "dump")
    await store.server.run("pg_dump", "--format=custom", f"--schema={schema}", f"--file={dump}", store.server.url)
    await store.server.run("pg_restore", f"--dbname={target}", dump)
    url = f"{target}&search_path={schema}"
    connection = await asyncpg.connect(url)
    await connection.execute(EXPIRE)
    await connection.close()
    return url
