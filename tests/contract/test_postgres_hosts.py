"""Of several PostgreSQL hosts, those that are down or silent are skipped."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit

import pytest

from matchpod.adapters.postgres import PostgresDatabase
from matchpod.ports import DatabaseUnavailableError, Statement
from tests.contract import databases

postgres_url = databases.postgres_url


@asynccontextmanager
async def forwarded(url: str) -> AsyncIterator[int]:
    """Forward a port of loopback to the socket file of a server; it can be stopped, and its connections with it."""
    folder = parse_qs(urlsplit(url).query)["host"][0]
    tasks: set[asyncio.Task[None]] = set()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.5432")
        for pair in ((reader, inner_writer), (inner_reader, writer)):
            tasks.add(asyncio.create_task(copy(*pair)))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def url_of(url: str, *ports: int) -> str:
    """Return the URL of the same database, at these ports of loopback."""
    parts = urlsplit(url)
    schema, user = parse_qs(parts.query)["search_path"][0], parts.username or "postgres"
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    return f"postgresql://{user}@{hosts}{parts.path}?sslmode=disable&search_path={schema}"


async def test_hosts_that_refuse_or_are_silent_are_skipped(postgres_url: str) -> None:
    with socket.socket() as closed, socket.create_server(("127.0.0.1", 0)) as silent:
        closed.bind(("127.0.0.1", 0))
        async with forwarded(postgres_url) as port:
            ports = closed.getsockname()[1], silent.getsockname()[1], port
            db = await PostgresDatabase.open(url_of(postgres_url, *ports), databases.PATIENT)
            await db.write([Statement("CREATE TABLE seen (at BIGINT)")])
            await db.close()


async def test_other_host_is_used_when_the_first_is_gone(postgres_url: str) -> None:
    async with forwarded(postgres_url) as second:
        async with forwarded(postgres_url) as first:
            db = await PostgresDatabase.open(url_of(postgres_url, first, second), databases.PATIENT)
            await db.write([Statement("CREATE TABLE seen (at BIGINT)")])
        async with asyncio.timeout(60):
            while True:
                with suppress(DatabaseUnavailableError):
                    assert await db.read("SELECT at FROM seen") == []
                    break
        await db.close()


async def test_urgent_transactions_skip_a_silent_host_within_their_time(postgres_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with forwarded(postgres_url) as port:
            db = await PostgresDatabase.open(url_of(postgres_url, silent.getsockname()[1], port), databases.PATIENT)
            await db.write([Statement("CREATE TABLE seen (at BIGINT)")])
            async with asyncio.timeout(60):
                while not await db.read("SELECT at FROM seen"):
                    with suppress(DatabaseUnavailableError):
                        await db.write([Statement("INSERT INTO seen VALUES (1)", is_urgent=True)])
            await db.close()


async def test_error_is_that_of_a_database_that_is_unavailable(postgres_url: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(DatabaseUnavailableError):
            await PostgresDatabase.open(url_of(postgres_url, port, port))
