"""Send log posts as soon as there are lines, with a minimum interval between posts.

A game server retries in every tick. Here, retries have a minimum interval in real time, which limits the load while a
receiver is down. `LogStream` decides what to send.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from cs2_simulator.log_stream import ACKNOWLEDGED, LogReceiver, LogRequest, LogStream
from cs2_simulator.outside import FetchResult

POST_INTERVAL_S = 0.1
"""Minimum interval in seconds (real time) between two posts to the same listener."""

POSTS_PER_S = 600
"""Maximum number of posts per second from one process. At 0.2 ms each, they take an eighth of a slow core."""

RETRIES_PER_S = 200
"""Maximum number of retries per second from one process. It is lower than for new posts: retries are large, and useless
while a receiver is down."""

TICK_WAIT_S = 0.02
"""Seconds until the next check if the tick of the waiting lines has not ended. A tick takes 16 ms."""


def post_interval_s(servers: int) -> float:
    """Return the minimum interval between posts, given the number of servers in the process."""
    return max(POST_INTERVAL_S, servers / POSTS_PER_S)


def retry_interval_s(servers: int) -> float:
    """Return the minimum interval after a post that was not acknowledged."""
    return max(POST_INTERVAL_S, servers / RETRIES_PER_S)


class PostClient(Protocol):
    """Sends posts."""

    async def post_raw(self, url: str, head: bytes, body: bytes) -> FetchResult:
        """POST a body with exactly these header lines."""


class LossyClient:
    """Loses every post: immediately, like a refused connection, or after the timeout of the game."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s

    async def post_raw(self, url: str, head: bytes, body: bytes) -> FetchResult:
        await asyncio.sleep(self._wait_s)
        return FetchResult(None, reason="lost")


class LogSender:
    def __init__(
        self,
        stream: LogStream,
        client: PostClient,
        *,
        wake_at: Callable[[float], None],
        is_lockstep: Callable[[], bool] = lambda: False,
        interval_s: float = POST_INTERVAL_S,
        retry_s: float = POST_INTERVAL_S,
    ) -> None:
        """After a response, `wake_at` is called with the time of the next `send_due`, if lines wait or in lockstep."""
        self._stream = stream
        self._client = client
        self._wake_at = wake_at
        self._is_lockstep = is_lockstep
        self._interval_s = interval_s
        self._retry_s = retry_s
        self._posts: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    def send_due(self, now_s: float) -> float | None:
        """Send all posts that are due. Return the time of the next call, or None if no lines are waiting.

        `now_s` is the time of the event loop. The agenda of the stream must have been advanced to the current time.
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
            due_s = max(listener.not_before_s, now_s + TICK_WAIT_S)
            next_s = due_s if next_s is None else min(next_s, due_s)
        return next_s

    async def finish(self, timeout_s: float) -> None:
        """Send the remaining lines, for at most `timeout_s` seconds."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + timeout_s
        while (now_s := loop.time()) < until_s:
            next_s = self.send_due(now_s)
            if self._posts:
                left_s = until_s - now_s
                await asyncio.wait(tuple(self._posts), timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            elif next_s is not None:
                await asyncio.sleep(min(next_s, until_s) - now_s)
            else:
                return

    def stop(self) -> None:
        """Stop sending and cancel posts in flight."""
        self._is_stopped = True
        for post in tuple(self._posts):
            post.cancel()

    def _post(self, listener: LogReceiver, request: LogRequest) -> None:
        task = asyncio.get_running_loop().create_task(self._send(listener, request))
        self._posts.add(task)
        task.add_done_callback(self._posts.discard)

    async def _send(self, listener: LogReceiver, request: LogRequest) -> None:
        fetched = await self._client.post_raw(request.url, request.head, request.body)
        if self._is_stopped:
            return
        if fetched.status != ACKNOWLEDGED:
            listener.not_before_s += (
                self._retry_s if self._is_lockstep() else max(0.0, self._retry_s - self._interval_s)
            )
        self._stream.handle_response(listener, fetched.status)
        if self._is_lockstep() or self._stream.has_lines_for(listener):
            self._wake_at(listener.not_before_s)
