"""Hold log posts that arrive too early, until the posts before them have arrived.

A server sends one post at a time, but a proxy may forward posts out of order. A post whose offset is ahead of the bytes
read so far is held for a short time. After that, the missing bytes count as lost. Posts without offsets are never held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from cs2_protocol.log_batches import LogCursor, LogPost, NewLines

HOLD_MS: Final = 1_500
"""Maximum time in milliseconds for which a post is held, by our clock. Proxies delay posts by at most a second. While a
post is held, the live view lags behind."""

MAX_HELD_BYTES: Final = 256 * 1024
"""Maximum number of bytes held. It is about what a server sends in a minute. Held posts are stored in snapshots, and
all of them are read in one step."""

MAX_HELD_POSTS: Final = 128
"""Maximum number of held posts. All of them are examined for each incoming post."""


class HeldPosts(msgspec.Struct):
    """Posts that arrived out of order, held until the posts before them arrive."""

    posts: list[LogPost] = []

    @property
    def since_ms(self) -> int | None:
        """Time when the first held post was received; None if no post is held."""
        return min((post.received_ms for post in self.posts), default=None)

    @property
    def until_ms(self) -> int | None:
        """Deadline for the missing posts; None if no post is held."""
        since_ms = self.since_ms
        return None if since_ms is None else since_ms + HOLD_MS

    def pop(self, cursor: LogCursor, now_ms: int | None) -> LogPost | None:
        """Remove and return the next post to read; None if all posts must wait.

        If `now_ms` is None, no post waits any longer.
        """
        found = next((post for post in self.posts if not cursor.is_ahead(post)), None)
        if found is not None and cursor.begins_load(found):
            found = min((post for post in self.posts if _is_before(post, found)), key=_order, default=found)
        if found is None and self.posts and self._is_wait_over(now_ms):
            found = min(self.posts, key=_order)
        if found is not None:
            self.posts.remove(found)
        return found

    def _is_wait_over(self, now_ms: int | None) -> bool:
        # A clock that was set back must not prolong the wait.
        is_late = now_ms is None or any(abs(now_ms - post.received_ms) >= HOLD_MS for post in self.posts)
        held_bytes = sum(len(post.body) for post in self.posts)
        return is_late or len(self.posts) > MAX_HELD_POSTS or held_bytes > MAX_HELD_BYTES


def read_in_order(posts: Iterable[LogPost]) -> Iterator[NewLines]:
    """Yield the new lines of each post of one server; posts that arrived out of order are sorted first."""
    cursor, held = LogCursor(), HeldPosts()
    for post in posts:
        held.posts.append(post)
        yield from _read_held(cursor, held, post.received_ms)
    yield from _read_held(cursor, held, None)


def _read_held(cursor: LogCursor, held: HeldPosts, now_ms: int | None) -> Iterator[NewLines]:
    while (post := held.pop(cursor, now_ms)) is not None:
        yield cursor.read(post)


def _is_before(post: LogPost, load: LogPost) -> bool:
    """True if a post was, or may have been, sent before `load`, the first post of a map load.

    Such a post must be read before `load`: after it, the post would be dropped as late.
    """
    return post is not load and (post.sent_ms is None or load.sent_ms is None or post.sent_ms < load.sent_ms)


def _order(post: LogPost) -> tuple[int, int]:
    return post.sent_ms or 0, post.begin or 0
