"""Decide when a server that asked its clients to wait (Retry-After) gets requests again. Pure: times are arguments.

A server that is starting also answers so, for longer than its start takes. Its readiness is what tells the two apart:
one that is ready and busy is left alone as long as it wants; one that becomes ready gets requests at once.
"""

from __future__ import annotations

from matchpod.adapters.kubernetes.api_errors import SERVICE_UNAVAILABLE, ApiError

MIN_WAIT_S = 0.5
"""Shortest wait that counts: a request is not repeated at once."""

PROBE_S = 1.0
"""Pause between two questions whether a server is ready."""


class BusyServer:
    """What one server asked for last, and whether it is only starting."""

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
            # It must be seen not to be ready: one that is ready means what it says.
            self._is_up, self._was_down, self._probe_at_s = error.status != SERVICE_UNAVAILABLE, False, now_s
        self._error = error
        self._until_s = now_s + max(MIN_WAIT_S, error.retry_after_s)

    def wait_s(self, now_s: float) -> float:
        """Return how long it must get no request."""
        return max(0.0, self._until_s - now_s)

    def answer(self, now_s: float) -> ApiError:
        """Return its last answer, with the time that is left."""
        assert self._error is not None
        error = self._error
        return ApiError(error.status, error.reason, error.message, retry_after_s=self.wait_s(now_s))

    def is_probe_due(self, now_s: float) -> bool:
        """True if it should be asked now whether it is ready; the next question is due after a pause."""
        if self._is_up or now_s < self._probe_at_s or not self.wait_s(now_s):
            return False
        self._probe_at_s = now_s + PROBE_S
        return True

    def probed(self, *, is_ready: bool) -> None:
        """Record its readiness: if it has just become ready, it gets requests again."""
        if not is_ready:
            self._was_down = True
        elif self._was_down:
            self._until_s = 0.0
        else:
            self._is_up = True
