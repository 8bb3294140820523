"""Resolve host names in threads: one lookup per name at a time, and a fair share of the threads per organization.

A lookup cannot be cancelled. If its name server does not answer, it occupies its thread for longer than an attempt
lasts. Later attempts for the same name then wait for the same lookup. Daemon threads are used, because an executor
would delay the exit of the process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from socket import SOCK_STREAM, gaierror, getaddrinfo
from typing import Final

from matchpod.core.fair_shares import FairShares, Receiver

MAX_LOOKUPS: Final = 2_048
"""Maximum number of threads (40 KB each) for hanging lookups. An organization gets half, enough for 1,000 names."""


class LookupFailedError(Exception):
    """A name could not be resolved; the message says why."""


class HostLookups:
    def __init__(self, limit: int = MAX_LOOKUPS) -> None:
        self._shares = FairShares(limit, per_host=1)
        self._running: dict[str, asyncio.Future[Sequence[str] | OSError]] = {}
        self._finished = asyncio.Event()

    async def addresses(self, host: str, *, org_id: str) -> Sequence[str]:
        """Return the addresses of a host, at least one. LookupFailedError if it has no address."""
        if _is_address(host):
            return [host]
        receiver = Receiver(org_id, host)
        while host not in self._running and self._shares.room(receiver) <= 0:
            await self._finished.wait()
        running = self._running[host] if host in self._running else self._start(receiver)
        result = await asyncio.shield(running)  # other attempts may wait for it, even if this attempt times out
        if isinstance(result, OSError) or not result:
            raise LookupFailedError("the host name was not found")
        return result

    def _start(self, receiver: Receiver) -> asyncio.Future[Sequence[str] | OSError]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sequence[str] | OSError] = loop.create_future()

        def finish(result: Sequence[str] | OSError) -> None:
            del self._running[receiver.host]
            self._shares.release(receiver)
            future.set_result(result)
            self._finished.set()
            self._finished.clear()

        def resolve() -> None:
            result = _resolve(receiver.host)
            with suppress(RuntimeError):  # the loop was closed in the meantime
                loop.call_soon_threadsafe(finish, result)

        try:
            threading.Thread(target=resolve, name="callback-lookup", daemon=True).start()
        except RuntimeError as exc:
            raise LookupFailedError("no thread to resolve the host name") from exc
        self._running[receiver.host] = future
        self._shares.hold(receiver)
        return future


def _resolve(host: str) -> Sequence[str] | OSError:
    try:
        return list(dict.fromkeys(str(entry[4][0]) for entry in getaddrinfo(host, None, type=SOCK_STREAM)))
    except (OSError, UnicodeError) as exc:
        return exc if isinstance(exc, OSError) else gaierror(str(exc))


def _is_address(host: str) -> bool:
    """True for an address in its usual notation. Unusual notations, such as `127.1`, are left to the resolver."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return "%" not in host
