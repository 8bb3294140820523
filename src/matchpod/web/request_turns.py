"""Let requests wait for their turn, in one queue per organization, and one queue for all requests without a key.

A turn begins after the sender of the request was identified and the body has arrived, and ends before the response is
sent, so slow clients do not occupy a turn. Log posts, probes and usual polls of a server do not wait for a turn.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from matchpod.core.errors import RateLimitError, UnavailableError
from matchpod.service import fair_turns
from matchpod.service.telemetry.prometheus import Gauge
from matchpod.web.http.asgi import Scope
from matchpod.web.http.responses import CONNECTION, StreamConnection
from matchpod.web.request_bodies import ClientDisconnectedError

NO_KEY: Final = fair_turns.TurnKey("no key")
"""The key of the queue for all requests without a key."""
OPERATORS: Final = "operators"
"""The queue owner for requests of operators in the console, who belong to no organization."""
RETRY_AFTER_S: Final = 1


def queue_of(owner: str, method: str) -> fair_turns.TurnKey:
    return fair_turns.TurnKey(owner) if method in ("GET", "HEAD") else fair_turns.changes_of(owner)


class RequestTurn:
    """The turn of a request. It can begin only once."""

    __slots__ = ("_is_held", "_is_over", "_key", "_scope", "_turns", "_waiting")

    def __init__(self, turns: fair_turns.FairTurns, scope: Scope, waiting: Gauge) -> None:
        """Use `waiting` to count the requests that wait for their turn."""
        self._turns = turns
        self._scope = scope
        self._waiting = waiting
        self._key: fair_turns.TurnKey | None = None
        self._is_held = self._is_over = False

    async def begin(self, key: fair_turns.TurnKey) -> None:
        """Wait until the turn begins. Return at once if it has already begun, or is over.

        Raise RateLimitError or UnavailableError if it cannot begin, ClientDisconnectedError if the client disconnects.
        """
        if self._is_held or self._is_over:
            return
        if not self._turns.begin(key):
            await self._wait(key)
        self._key, self._is_held = key, True

    def end(self) -> None:
        """End the turn. Calling it twice is fine."""
        self._is_over = True
        if self._is_held and self._key is not None:
            self._is_held = False
            self._turns.end(self._key)

    async def parts(self, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the parts of a response. Each part is built in its own turn, in the same queue as the request."""
        key = self._key or NO_KEY
        while (part := await self._turns.run(key, partial(anext, parts, None))) is not None:
            yield part

    async def _wait(self, key: fair_turns.TurnKey) -> None:
        connection: StreamConnection | None = (self._scope.get("extensions") or {}).get(CONNECTION)
        self._waiting.add(1)
        try:
            await self._turns.wait(key, watch_loss=None if connection is None else connection.watch_loss)
        except fair_turns.QueueFullError as exc:
            self._is_over = True
            if key.owner in (NO_KEY.owner, OPERATORS):
                text = "Too many requests without a key wait for an answer. Retry later."
                raise UnavailableError(text, retry_after_s=RETRY_AFTER_S) from exc
            text = f"This organization has {self._turns.limits.waiting:,} waiting requests, the maximum. Retry later."
            raise RateLimitError(text, retry_after_s=RETRY_AFTER_S) from exc
        except fair_turns.WaitedTooLongError as exc:
            self._is_over = True
            text = f"The request has waited {self._turns.limits.wait_s:g} s for its turn. Retry later."
            raise UnavailableError(text, retry_after_s=RETRY_AFTER_S) from exc
        except fair_turns.NotWantedError as exc:
            raise ClientDisconnectedError from exc
        finally:
            self._waiting.add(-1)
