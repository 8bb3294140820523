"""Resolve host names in threads: one lookup at a time per name, and a fair share of the threads per organization.

A lookup cannot be cancelled. If the name server does not answer, the lookup occupies its thread for longer than the
timeout of an attempt. Later attempts for this name wait for the same lookup. The threads are daemon threads, because an
executor would delay the exit of the process.
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
"""Maximum number of threads (40 KB each), in case lookups hang. An organization gets at most half of them,
enough for 1,000 names."""


class LookupFailedError(Exception):
    """A host name could not be resolved; the message says why."""


class HostLookups:
    def __init__(self, limit: int = MAX_LOOKUPS) -> None:
        self._shares = FairShares(limit, per_host=1)
        self._running: dict[str, asyncio.Future[Sequence[str] | OSError]] = {}
        self._finished = asyncio.Event()

    async def addresses(self, host: str, *, org_id: str) -> Sequence[str]:
        """Return the addresses of a host, at least one. Raise LookupFailedError if it has none."""
        if _is_address(host):
            return [host]
        receiver = Receiver(org_id, host)
        while host not in self._running and self._shares.room(receiver) <= 0:
            await self._finished.wait()
        running = self._running[host] if host in self._running else self._start(receiver)
        result = await asyncio.shield(running)  # a timeout here does not cancel the lookup for other attempts
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
    """True for an IP address in its usual notation. Unusual notations, such as `127.1`, are left to the resolver."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return "%" not in host
