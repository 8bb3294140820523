"""Decide which running servers without a match are released, and which only an operator may release.

A database without the match of a running server may be the wrong database: empty, mistyped or restored. So a server of
another installation is never released. Our own server is released if its match has ended, or if it has been unknown
for minutes. Many unknown servers are released only if an operator confirms it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

UNKNOWN_MS: Final = 180_000
"""Minimum time in ms that a server must have been running, and unknown to this process, before it is released."""

MAX_UNKNOWN: Final = 3
"""Maximum number of unknown servers that are considered leftovers. With more, the database is probably wrong."""


class RunningServer(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of a running server on which its release depends."""

    server_id: str
    is_own: bool | None
    """Whether this installation started it; None if that is not recorded."""
    age_ms: int


class KnownMatches(msgspec.Struct, frozen=True, kw_only=True):
    """What the database has about the matches of the servers that run in a region."""

    open: Collection[str]
    ended: Collection[str]
    """Ids of running servers whose match has ended and is already marked as released."""
    newest: str
    """The newest server id in the database. A server with a newer id was started after this database was copied."""
    withheld: Mapping[str, bool] = {}
    """Servers that earlier sweeps withheld, and for each whether an operator has confirmed its release."""


class SweepPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep does with the servers of a region that have no open match."""

    release: tuple[str, ...] = ()
    withhold: tuple[str, ...] = ()
    """Servers that only an operator may release."""
    foreign: tuple[str, ...] = ()
    """Servers of other installations."""
    settled: tuple[str, ...] = ()
    """Servers that earlier sweeps withheld, and that are now gone or belong to a known match."""


class OrphanWatch:
    """Tracks, from sweep to sweep, the servers of a region that have no match."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}

    def plan(self, running: Sequence[RunningServer], known: KnownMatches, now_ms: int) -> SweepPlan:
        """Plan a sweep. A process's first sweep releases only servers with an ended match or a confirmed release."""
        ended = [found.server_id for found in running if found.is_own is not False and found.server_id in known.ended]
        matches = {*known.open, *known.ended}
        strange = [server for server in running if server.server_id not in matches]
        unknown = {server.server_id: server for server in strange if server.is_own}
        self._since = {server_id: self._since.get(server_id, now_ms) for server_id in unknown}
        confirmed = [server_id for server_id in unknown if known.withheld.get(server_id)]
        ripe = [server.server_id for server in unknown.values() if self._is_ripe(server, now_ms)]
        rest = [server_id for server_id in ripe if server_id not in confirmed]
        own = {server.server_id for server in running if server.is_own}
        is_suspicious = len(unknown) > MAX_UNKNOWN or len(unknown) == len(own)
        withheld = [found for found in rest if is_suspicious or found in known.withheld or found > known.newest]
        released = {*ended, *confirmed, *rest} - set(withheld)
        return SweepPlan(
            release=tuple(sorted(released)),
            withhold=tuple(sorted(withheld)),
            foreign=tuple(sorted({server.server_id for server in strange if not server.is_own})),
            settled=tuple(sorted(known.withheld.keys() - unknown.keys())),
        )

    def _is_ripe(self, server: RunningServer, now_ms: int) -> bool:
        return now_ms - self._since[server.server_id] >= UNKNOWN_MS and server.age_ms >= UNKNOWN_MS
