"""Track silent servers, to show warnings, and to distinguish a stalled host from many servers that died.

Liveness probes report silent servers of this process's matches here. The heartbeat exchanges them with other processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from matchpod.core.servers import server_loss


class SilentServers:
    """The silent servers of all processes that share a database."""

    def __init__(self, limits: server_loss.LossLimits | None = None) -> None:
        self.limits = limits or server_loss.LossLimits()
        self._silences: dict[str, server_loss.Silence] = {}
        self._together: dict[str, int] = {}
        self._remote: Mapping[str, server_loss.Silence] = {}
        """Silent servers that other processes have reported, with times by this process's clock."""

    def report(self, server_id: str, silence: server_loss.Silence) -> int:
        """Record a silent server. Return how many servers, including this server, have fallen silent together.

        The number never decreases while the server is silent. Otherwise, when a host recovers, its last silent server
        would be considered lost because the other servers are no longer silent.
        """
        self._silences[server_id] = silence
        together = server_loss.find_together(silence, {**self._remote, **self._silences}, self.limits)
        for key in together:
            if key in self._silences:
                self._together[key] = max(self._together.get(key, 1), len(together))
        return self._together[server_id]

    def shared(self, now_ms: int) -> dict[str, server_loss.Silence]:
        """Return the silent servers to be reported to other processes, with times relative to `now_ms`."""
        return {
            key: silence.shifted(-now_ms) for key, silence in server_loss.newest_of_each_region(self._silences).items()
        }

    def set_remote(self, silences: Mapping[str, server_loss.Silence], now_ms: int) -> None:
        """Record the silent servers of other processes, with times relative to `now_ms`."""
        self._remote = {key: silence.shifted(now_ms) for key, silence in silences.items()}
        if self._remote:
            for server_id, silence in self._silences.items():
                if self._together[server_id] == 1:  # numbers above 1 are only shown; the next report updates them
                    self.report(server_id, silence)

    def has_near(self, silence: server_loss.Silence) -> bool:
        """True if a server of the same host or region is silent."""
        return any(known.is_near(silence) for known in chain(self._silences.values(), self._remote.values()))

    def forget(self, server_id: str) -> None:
        """Record that a server is no longer silent, or no longer probed."""
        self._silences.pop(server_id, None)
        self._together.pop(server_id, None)

    def since_ms(self, server_id: str) -> int | None:
        """Return since when a server of any process is silent; None if it is not silent, or is loading a map."""
        found = self._silences.get(server_id) or self._remote.get(server_id)
        return None if found is None or found.is_loading else found.since_ms

    def count(self, region: str) -> int:
        """Return the number of silent servers in a region, among the servers that this process probes."""
        return sum(silence.region == region and not silence.is_loading for silence in self._silences.values())

    def notice(self, region: str) -> str | None:
        """Return a sentence about the silent servers of a region; None if there are none."""
        every = {**self._remote, **self._silences}
        found = {key: silence for key, silence in every.items() if silence.region == region and not silence.is_loading}
        is_together = any(
            self._together.get(key, 1) > 1 or len(server_loss.find_together(silence, every, self.limits)) > 1
            for key, silence in found.items()
        )
        return server_loss.silence_notice(tuple(found.values()), self.limits, is_together=is_together)
