"""Decide when a server that asked its clients to wait (Retry-After) gets requests again. Pure: times are arguments.

A server that is still starting also sends Retry-After, often with more time than it needs. Readiness probes distinguish
the two cases. If the server is ready but busy, it gets no requests for the whole wait. If a probe fails and a later
probe succeeds, the server was starting, and gets requests at once.
"""

from __future__ import annotations

from matchpod.adapters.kubernetes.api_errors import SERVICE_UNAVAILABLE, ApiError

MIN_WAIT_S = 0.5
"""Minimum wait in seconds after a Retry-After, so that a request is not retried at once."""

PROBE_S = 1.0
"""Interval in seconds between readiness probes."""


class BusyServer:
    """The wait that a server last asked for, and whether the server is only starting."""

    def __init__(self) -> None:
        self._error: ApiError | None = None
        self._until_s = 0.0
        self._probe_at_s = 0.0
        self._is_up = False
        self._was_down = False

    def note(self, error: ApiError, now_s: float) -> None:
        """Start a wait if this answer has a Retry-After."""
        if error.retry_after_s is None:
            return
        if now_s >= self._until_s:
            # The wait ends early only if a probe finds the server not ready, and a later probe finds it ready.
            self._is_up, self._was_down, self._probe_at_s = error.status != SERVICE_UNAVAILABLE, False, now_s
        self._error = error
        self._until_s = now_s + max(MIN_WAIT_S, error.retry_after_s)

    def wait_s(self, now_s: float) -> float:
        """Return how many seconds to wait before the next request to this server."""
        return max(0.0, self._until_s - now_s)

    def answer(self, now_s: float) -> ApiError:
        """Return the answer that asked for the wait, with the remaining time as its Retry-After."""
        assert self._error is not None
        error = self._error
        return ApiError(error.status, error.reason, error.message, retry_after_s=self.wait_s(now_s))

    def is_probe_due(self, now_s: float) -> bool:
        """True if a readiness probe must be sent now. The next probe is due PROBE_S later."""
        if self._is_up or now_s < self._probe_at_s or not self.wait_s(now_s):
            return False
        self._probe_at_s = now_s + PROBE_S
        return True

    def probed(self, *, is_ready: bool) -> None:
        """Record the result of a readiness probe. If the server has just become ready, the wait ends."""
        if not is_ready:
            self._was_down = True
        elif self._was_down:
            self._until_s = 0.0
        else:
            self._is_up = True
