"""Connect to the first of several PostgreSQL hosts that accepts writes: the primary of a failover pair, for example."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import asyncpg  # type: ignore[import-untyped]  # the wheel has no py.typed

HOST_S: Final = 3.0
"""Timeout in seconds for each host except the last, so that a host that is down leaves time for the next hosts."""

_TRY_NEXT: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.TargetServerAttributeNotMatched,
)


def split_hosts(url: str) -> list[str]:
    """Return one URL per host. Several hosts get `target_session_attrs=read-write`, unless the URL sets this option."""
    parts = urlsplit(url)
    login, at, hosts = parts.netloc.rpartition("@")
    if "," not in hosts:
        return [url]
    query = parts.query
    if "target_session_attrs" not in parse_qs(query):
        query += f"{'&' if query else ''}target_session_attrs=read-write"
    return [parts._replace(netloc=f"{login}{at}{host}", query=query).geturl() for host in hosts.split(",")]


async def connect(url: str, *, within_s: float | None = None, **options: Any) -> Any:  # asyncpg has no types
    """Connect to the first host in the URL that accepts the connection; if none does, raise the last host's error.

    `within_s` is the caller's time limit in seconds. It is divided among the hosts, so that each host is tried.
    """
    *others, last = split_hosts(url)
    host_s = HOST_S if within_s is None else min(HOST_S, within_s / (len(others) + 1))
    for other in others:
        try:
            async with asyncio.timeout(host_s):
                return await asyncpg.connect(other, **options)
        except _TRY_NEXT:
            continue
    return await asyncpg.connect(last, **options)
