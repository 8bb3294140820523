"""Decide when a server that asked its clients to wait (Retry-After) gets requests again. Pure: times are arguments.

A server that is starting also asks for a wait, which is often longer than its start. Readiness probes distinguish the
two cases: a server that is ready but busy gets no requests for the whole wait; a server that becomes ready gets
requests at once.
"""

from __future__ import annotations

from matchpod.adapters.kubernetes.api_errors import SERVICE_UNAVAILABLE, ApiError

MIN_WAIT_S = 0.5
"""Minimum wait after a Retry-After, so that a request is not retried at once."""

PROBE_S = 1.0
"""Seconds between two readiness probes."""


class BusyServer:
    """The last Retry-After of a server, and whether the server is only starting."""

    def __init__(self) -> None:
        self._error: ApiError | None = None
        self._until_s = 0.0
        self._probe_at_s = 0.0
        self._is_up = False
        self._was_down = False

    def note(self, error: ApiError, now_s: float) -> None:
        """Record an answer that may ask for a wait."""
        if error.retry_after_s is None:
            return
        if now_s >= self._until_s:
            # The wait is shortened only if a probe has shown that the server was not ready.
            self._is_up, self._was_down, self._probe_at_s = error.status != SERVICE_UNAVAILABLE, False, now_s
        self._error = error
        self._until_s = now_s + max(MIN_WAIT_S, error.retry_after_s)

    def wait_s(self, now_s: float) -> float:
        """Return how many seconds to wait before the next request to this server."""
        return max(0.0, self._until_s - now_s)

    def answer(self, now_s: float) -> ApiError:
        """Return the server's last answer, with the remaining wait."""
        assert self._error is not None
        error = self._error
        return ApiError(error.status, error.reason, error.message, retry_after_s=self.wait_s(now_s))

    def is_probe_due(self, now_s: float) -> bool:
        """True if a readiness probe is due now; the next probe is then due after PROBE_S."""
        if self._is_up or now_s < self._probe_at_s or not self.wait_s(now_s):
            return False
        self._probe_at_s = now_s + PROBE_S
        return True

    def probed(self, *, is_ready: bool) -> None:
        """Record the result of a readiness probe. A server that has just become ready gets requests again."""
        if not is_ready:
            self._was_down = True
        elif self._was_down:
            self._until_s = 0.0
        else:
            self._is_up = True
