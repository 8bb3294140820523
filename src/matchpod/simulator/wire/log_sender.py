"""When are log posts made? As soon as lines are there, but never faster than the interval, answered or not.

A game server tries again in each tick; here a pause of real time keeps a receiver that is down from eating the
machine. The stream knows what to send, the client how.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from matchpod.simulator.log_stream import ACKNOWLEDGED, Listener, LogRequest, LogStream
from matchpod.simulator.wire.http_client import HttpClient

POST_INTERVAL_S = 0.1
"""The shortest real time from one post to the next for one listener."""

POSTS_PER_S = 600
"""Posts that one process makes in a second: at 0.2 ms each an eighth of a slow core."""

RETRIES_PER_S = 200
"""The same for posts after one that was not acknowledged: they are the largest, and for nothing while one is down."""

SOON_S = 0.02
"""When to look again for lines whose tick is not over: a tick takes 16 ms."""


def post_interval_s(servers: int) -> float:
    """The interval that suits so many servers in one process."""
    return max(POST_INTERVAL_S, servers / POSTS_PER_S)


def retry_interval_s(servers: int) -> float:
    """The interval after a post that was not acknowledged."""
    return max(POST_INTERVAL_S, servers / RETRIES_PER_S)


class LogSender:
    """Makes the log posts of one server."""

    def __init__(
        self,
        stream: LogStream,
        client: HttpClient,
        *,
        wake_at: Callable[[float], None],
        is_lockstep: Callable[[], bool] = lambda: False,
        interval_s: float = POST_INTERVAL_S,
        retry_s: float = POST_INTERVAL_S,
    ) -> None:
        """`wake_at` is told when to look again if lines wait, or time does, when a post is answered."""
        self._stream = stream
        self._client = client
        self._wake_at = wake_at
        self._is_lockstep = is_lockstep
        self._interval_s = interval_s
        self._retry_s = retry_s
        self._posts: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    def look(self, now_s: float) -> float | None:
        """Send what can be sent; answers when there may be more to send, None when nothing waits.

        `now_s` is the time of the event loop. The agenda of the stream has been moved to the present.
        """
        if self._is_stopped:
            return None
        next_s: float | None = None
        for listener in self._stream.idle_listeners:
            if not self._stream.has_lines_for(listener):
                continue
            if listener.not_before_s <= now_s:
                request = self._stream.next_request(listener)
                if request is not None:
                    listener.not_before_s = now_s + (0 if self._is_lockstep() else self._interval_s)
                    self._post(listener, request)
                    continue
            due_s = max(listener.not_before_s, now_s + SOON_S)
            next_s = due_s if next_s is None else min(next_s, due_s)
        return next_s

    async def finish(self, timeout_s: float) -> None:
        """Send what is left, as far as that goes within this time."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + timeout_s
        while (now_s := loop.time()) < until_s:
            next_s = self.look(now_s)
            if self._posts:
                left_s = until_s - now_s
                await asyncio.wait(tuple(self._posts), timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            elif next_s is not None:
                await asyncio.sleep(min(next_s, until_s) - now_s)
            else:
                return

    def stop(self) -> None:
        """Send no more; posts under way are cut off."""
        self._is_stopped = True
        for post in tuple(self._posts):
            post.cancel()

    def _post(self, listener: Listener, request: LogRequest) -> None:
        task = asyncio.get_running_loop().create_task(self._send(listener, request))
        self._posts.add(task)
        task.add_done_callback(self._posts.discard)

    async def _send(self, listener: Listener, request: LogRequest) -> None:
        fetched = await self._client.post_as_given(request.url, request.head, request.body)
        if self._is_stopped:
            return
        if fetched.status != ACKNOWLEDGED:
            listener.not_before_s += (
                self._retry_s if self._is_lockstep() else max(0.0, self._retry_s - self._interval_s)
            )
        self._stream.answered(listener, fetched.status)
        if self._is_lockstep() or self._stream.has_lines_for(listener):
            self._wake_at(listener.not_before_s)
