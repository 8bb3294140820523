"""Decide when the server of a running match is lost, from the last observations of the server.

The table of cases is in docs/server-states.md. A server whose console refuses connections, or whose host stalls, may
respond again a second later, so a server is only lost once this is certain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from matchpod.core.iso_dates import iso_time

QUIET_MS: Final = 4_000
"""Time in ms without a sign of life after which a server is quiet. During play, servers post their logs at shorter
intervals."""

SILENCE_MS: Final = 30_000
"""Default timeout in ms for a server's console: if it has not answered for this time, the server is lost."""

TOGETHER_FACTOR: Final = 3
"""Multiplier of the timeout for servers that fell silent together. Their common cause is the host, the network or this
service, and a host usually stalls for less than a minute."""

NO_POSTS_MS: Final = 180_000
"""Timeout in ms for log posts. A server whose console answers is lost if no post arrives within this time after its log
address was registered again."""

MAX_SHARED: Final = 100
"""Maximum number of silent servers per region that a process reports to other processes: the number of matches that
the console's wall shows. If a whole region is silent, the report needs about 9 KB per heartbeat."""


class FleetReport(StrEnum):
    """The state of a server according to its fleet."""

    ALIVE = "alive"
    """The process or pod of the server exists."""
    GONE = "gone"
    """Its process has ended, or its pod is deleted, being deleted or unhealthy. The server will not return."""
    UNKNOWN = "unknown"
    """The fleet does not know the server, or is unavailable."""


class ServerHealth(StrEnum):
    """Whether a server is alive, is lost, or may still answer."""

    ALIVE = "alive"
    WAIT = "wait"
    LOST = "lost"


class LossLimits(msgspec.Struct, frozen=True):
    """The time limits after which silent servers are lost."""

    silence_ms: int = SILENCE_MS
    """Timeout in ms for a stalled server. It begins with the first unanswered console query, not with the last sign of
    life, because a quiet server gives no sign of life until it is queried."""

    @property
    def ask_ms(self) -> int:
        """Maximum time without a sign of life before the console of a server is queried."""
        return self.silence_ms // 3

    @property
    def together_ms(self) -> int:
        """The timeout for servers that fell silent together."""
        return self.silence_ms * TOGETHER_FACTOR

    @property
    def window_ms(self) -> int:
        """Maximum difference between the last signs of life of servers that fell silent for the same cause.

        A server in play posts every second. A server in a long pause is queried only before the end of this time, so
        its last sign of life may be older by almost this time. Two servers that fell silent for different causes within
        this time only get the longer timeout.
        """
        return self.silence_ms


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """The observations from which the health of a server is judged."""

    fleet: FleetReport
    silent_ms: int
    """Time since its last sign of life: a log post, or an answer of its console."""
    unanswered_ms: int = 0
    """Time since the first console query after the last sign of life, if the console refused the connection, rejected
    the password or did not answer; 0 if it was not queried."""
    load_ms: int = 0
    """Maximum duration of a map load, if a map may be loading; otherwise 0."""
    together: int = 1
    """Number of servers on its host or in its region that fell silent together, including this server."""
    no_posts_ms: int | None = None
    """Time since its log address was registered again, if the server has answered but has sent no log post since; None
    if the address was not registered again."""


class Judgment(msgspec.Struct, frozen=True):
    """The decision about a server, and its reason as part of a sentence."""

    health: ServerHealth
    why: str = ""


class Silence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A silent server: it has posted no log for some time, and its console was queried and did not answer.

    Warnings are shown for silent servers only. A quiet log alone is not silence: real servers log nothing for tens of
    seconds, and a server that waits for players logs nothing until it is queried.
    """

    region: str
    host: str
    since_ms: int
    is_loading: bool = False
    """True if a map may be loading. A server cannot answer during a load, so no warning is shown yet."""

    def is_near(self, other: Silence) -> bool:
        """True if both servers may have fallen silent for the same cause."""
        return self.region == other.region or self.host == other.host

    def shifted(self, by_ms: int) -> Silence:
        """Return this silence with its time converted to a clock that is ahead by `by_ms`."""
        return replace(self, since_ms=self.since_ms + by_ms)


def judge_server(signs: Signs, limits: LossLimits) -> Judgment:
    """Decide whether a server is alive or lost, or whether to wait."""
    if signs.fleet is FleetReport.GONE:
        return Judgment(ServerHealth.LOST, "its fleet reports that it is gone")
    if signs.no_posts_ms is not None and signs.no_posts_ms >= NO_POSTS_MS:
        return Judgment(ServerHealth.LOST, "its log posts do not arrive")
    if signs.silent_ms < QUIET_MS:
        return Judgment(ServerHealth.ALIVE)
    limit_ms = max(limits.together_ms if signs.together > 1 else limits.silence_ms, signs.load_ms)
    others = f", together with {_others(signs.together - 1)}" if signs.together > 1 else ""
    why = f"no sign of life for {signs.silent_ms // 1000} s{others}"
    return Judgment(ServerHealth.LOST if signs.unanswered_ms >= limit_ms else ServerHealth.WAIT, why)


def find_together(silence: Silence, others: Mapping[str, Silence], limits: LossLimits) -> list[str]:
    """Return the keys of the servers that fell silent together with a server, on its host or in its region."""
    return [
        key
        for key, other in others.items()
        if other.is_near(silence) and abs(other.since_ms - silence.since_ms) <= limits.window_ms
    ]


def newest_of_each_region(silences: Mapping[str, Silence]) -> dict[str, Silence]:
    """Return the newest silences per region, at most MAX_SHARED, which other processes compare with their silences."""
    found: dict[str, Silence] = {}
    counts = Counter[str]()
    for key, silence in sorted(silences.items(), key=lambda item: item[1].since_ms, reverse=True):
        counts[silence.region] += 1
        if counts[silence.region] <= MAX_SHARED:
            found[key] = silence
    return found


def silence_notice(silences: Sequence[Silence], limits: LossLimits, *, is_together: bool) -> str | None:
    """Describe the silent servers of a region in two sentences; None if there are none.

    `is_together` is True if some of these servers fell silent together with other servers.
    """
    if not silences:
        return None
    servers = "1 server has" if len(silences) == 1 else f"{len(silences)} servers have"
    seen = f"{servers} given no sign of life since {iso_time(min(silence.since_ms for silence in silences))}"
    if is_together:
        cause = "several fell silent together, so the cause may be a host, the network or this service"
        return f"{seen}: {cause}. A match is given up after {limits.together_ms // 1000} s without an answer."
    return f"{seen}. A match is given up after {limits.silence_ms // 1000} s without an answer."


def _others(count: int) -> str:
    return "1 other" if count == 1 else f"{count} others"
