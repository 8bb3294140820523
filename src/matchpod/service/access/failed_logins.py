"""Limit failed log-ins per address, and report them at a bounded rate in the log, the audit log and the metrics.

Keys and links are too long to be guessed; the reports show that guessing is attempted, and the limit stops it. Only
failures are limited: a valid key works even if other log-ins from the same address, such as that of a proxy, fail.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import Final

from matchpod.core.errors import UnavailableError
from matchpod.core.requests.text_rules import printable
from matchpod.service.access.audit import Action, Audit
from matchpod.service.access.rate_limit import RateLimiter
from matchpod.service.telemetry.prometheus import Counter

MAX_ADDRESSES: Final = 10_000
"""Maximum number of addresses whose failures are counted; they take about a megabyte. If there are more, the address
whose last failure is oldest is dropped."""
FORGET_S: Final = 3600.0
"""Time in seconds without a failure after which the failure count of an address restarts at zero."""
REPORTS_PER_MINUTE: Final = 30
"""Maximum number of reports per minute for all addresses together. Attackers may have millions of addresses, and audit
entries are kept for a year."""
UNKNOWN: Final = "unknown"
"""The actor in the audit entry of a failed log-in, unless a known key was used."""

_ANY: Final = "any"
_log = logging.getLogger(__name__)

Address = Callable[[], str | None]
"""A function that returns the client address of a request, or None if unknown. It is called only if a log-in fails."""


class LogInKind(StrEnum):
    """The kind of credential that was used to log in."""

    API_KEY = "API key"
    CONSOLE_KEY = "key in the console"
    CONSOLE_LINK = "link to the console"


class FailedLogIns:
    """Counts and limits failed log-ins, in the memory of this process. `per_minute` is None for no limit."""

    def __init__(
        self,
        *,
        audit: Audit,
        per_minute: int | None = None,
        counter: Counter | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._audit = audit
        self._counter = counter
        self._monotonic = monotonic
        if counter is not None:
            counter.preset(LogInKind)
        self._limiter = (
            None
            if per_minute is None
            else RateLimiter(per_minute, monotonic, owner="your address", unit="failed log-ins")
        )
        self._reports = RateLimiter(REPORTS_PER_MINUTE, monotonic, owner="this process", unit="reports")
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    async def check(self, address: str | None, kind: LogInKind) -> None:
        """Raise RateLimitError, and count the log-in as failed, if too many log-ins from the address have failed."""
        if self._limiter is not None and address is not None and not self._limiter.has(address):
            await self.add(address, kind)

    async def add(
        self, address: str | None, kind: LogInKind, *, org_id: str | None = None, key_id: str | None = None
    ) -> None:
        """Count a failure, and report the first, tenth, hundredth, … failure of a known address.

        Raise RateLimitError if there were too many failures. Pass `org_id` and `key_id` if the key exists, but is
        revoked or has expired.
        """
        if self._counter is not None:
            self._counter.inc(kind)
        if address is None:
            return
        count = self._count(address)
        if _is_power_of_ten(count) and self._reports.has(_ANY):
            self._reports.acquire(_ANY)
            await self._report(address, kind, count, org_id=org_id, key_id=key_id)
        if self._limiter is not None:
            self._limiter.acquire(address)

    async def _report(
        self, address: str, kind: LogInKind, count: int, *, org_id: str | None, key_id: str | None
    ) -> None:
        origin = printable(address)
        _log.warning("log-in failed", extra={"address": origin, "with": kind.value, "key_id": key_id, "count": count})
        detail = f"with an {kind}" if kind is LogInKind.API_KEY else f"with a {kind}"
        times = "" if count == 1 else f", {count} times"
        with suppress(UnavailableError):  # the failure is already in the log; do not fail the request
            await self._audit.record(
                Action.LOG_IN_FAILED,
                org_id=org_id,
                actor=key_id or UNKNOWN,
                target=key_id or "",
                detail=f"{detail} from {origin}{times}",
            )

    def _count(self, address: str) -> int:
        now_s = self._monotonic()
        count, last_s = self._failures.pop(address, (0, now_s))
        count = 1 if now_s - last_s >= FORGET_S else count + 1
        self._failures[address] = (count, now_s)
        if len(self._failures) > MAX_ADDRESSES:
            self._failures.popitem(last=False)
        return count


def _is_power_of_ten(number: int) -> bool:
    return str(number).rstrip("0") == "1"
