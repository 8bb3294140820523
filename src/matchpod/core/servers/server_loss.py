"""Decide when the server of a running match is lost. Pure: everything is computed from what was last observed.

The table of cases is in docs/server-states.md. A loss must be certain: a server whose console refuses connections, or
whose host stalls, may be alive again a second later.
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
"""A server is quiet after this long without a sign of life. In play it posts its log more often than that."""

SILENCE_MS: Final = 30_000
"""Default time for which the console of a server must not have answered until the server is lost."""

TOGETHER_FACTOR: Final = 3
"""Servers that fell silent together are lost after this many times as long: the cause is their host, the network or
this service, and stalls of a host usually end within a minute."""

NO_POSTS_MS: Final = 180_000
"""A server that answers is lost if no log post arrives within this time after its log address was registered again."""

MAX_SHARED: Final = 100
"""Silent servers of a region that a process reports to others: as many as they follow on their wall, and about 9 KB per
heartbeat when a whole region is silent."""


class FleetReport(StrEnum):
    """What a fleet knows about a server."""

    ALIVE = "alive"
    """Its process or pod exists."""
    GONE = "gone"
    """Its process has ended, or its pod is deleted, being deleted or unhealthy; it does not come back."""
    UNKNOWN = "unknown"
    """The fleet cannot see it, or cannot be asked at present."""


class ServerHealth(StrEnum):
    """What to do about a server."""

    ALIVE = "alive"
    WAIT = "wait"
    LOST = "lost"


class LossLimits(msgspec.Struct, frozen=True):
    """How long servers may be silent before they are lost."""

    silence_ms: int = SILENCE_MS
    """How long a server may stall at any time: it counts from the first unanswered question, not from the last sign of
    life, since a quiet server gives none until it is asked."""

    @property
    def ask_ms(self) -> int:
        """The longest time without a sign of life after which a server is asked."""
        return self.silence_ms // 3

    @property
    def together_ms(self) -> int:
        """The limit for servers that fell silent together."""
        return self.silence_ms * TOGETHER_FACTOR

    @property
    def window_ms(self) -> int:
        """How far apart the last signs of life of servers that fall silent for one cause may be.

        A server in play posts every second. One in a long pause is asked only before the end of this time, so its last
        sign of life may be nearly that much older. Two servers that are lost for different causes within this time only
        get more time.
        """
        return self.silence_ms


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """What was observed of a server."""

    fleet: FleetReport
    silent_ms: int
    """Since its last sign of life: a log post, or an answer of its console."""
    unanswered_ms: int = 0
    """Since its console was first asked after that, and refused the connection, rejected the password or did not
    answer; 0 if it was not."""
    load_ms: int = 0
    """How long a map load may take, if a map may be loading; else 0."""
    together: int = 1
    """How many servers of its host or region fell silent together, including this one."""
    no_posts_ms: int | None = None
    """How long it has answered without a log post since its log address was registered again; None if it was not."""


class Judgment(msgspec.Struct, frozen=True):
    """What to do about a server, and why, as part of a sentence."""

    health: ServerHealth
    why: str = ""


class Silence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A silent server: it has posted no log for some time, and its console was asked and did not answer.

    People are warned of these servers only. A log without lines is no silence: real servers log nothing for tens of
    seconds, and a server that waits for players logs nothing at all until it is asked.
    """

    region: str
    host: str
    since_ms: int
    is_loading: bool = False
    """A map may be loading: the server cannot answer, and people are not warned yet."""

    def is_near(self, other: Silence) -> bool:
        """True if both servers may have fallen silent for the same cause."""
        return self.region == other.region or self.host == other.host

    def shifted(self, by_ms: int) -> Silence:
        """Convert the silence to another clock."""
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
    """Return the keys of the servers that fell silent together with a server: on its host or in its region."""
    return [
        key
        for key, other in others.items()
        if other.is_near(silence) and abs(other.since_ms - silence.since_ms) <= limits.window_ms
    ]


def newest_of_each_region(silences: Mapping[str, Silence]) -> dict[str, Silence]:
    """Return at most MAX_SHARED silences per region: the newest, since a fault that is going on concerns others too."""
    found: dict[str, Silence] = {}
    counts = Counter[str]()
    for key, silence in sorted(silences.items(), key=lambda item: item[1].since_ms, reverse=True):
        counts[silence.region] += 1
        if counts[silence.region] <= MAX_SHARED:
            found[key] = silence
    return found


def silence_notice(silences: Sequence[Silence], limits: LossLimits, *, is_together: bool) -> str | None:
    """Describe in two sentences what is observed of the silent servers of a region; None if there are none.

    `is_together`: some of them fell silent together with others.
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
