"""Know which servers of this process are silent, so that a stall of a host is not taken for many dead servers.

The liveness probes report here. A replica knows the servers of its own matches only.
"""

from __future__ import annotations

from collections.abc import Mapping

from matchpod.core.servers.server_loss import LossLimits, Silence, find_together, silence_notice


class SilentServers:
    """The servers of which neither log nor console is heard."""

    def __init__(self, limits: LossLimits | None = None) -> None:
        self.limits = limits or LossLimits()
        self._silences: dict[str, Silence] = {}
        self._together: dict[str, int] = {}

    def report(self, server_id: str, silence: Silence) -> int:
        """Record a silent server; return how many have fallen silent together, including this one.

        The number never falls during a silence: of a host that recovers, the last server must not be lost because the
        others are back.
        """
        others = {key: one for key, one in self._silences.items() if key != server_id}
        together = [server_id, *find_together(silence, others, self.limits)]
        self._silences[server_id] = silence
        for key in together:
            self._together[key] = max(self._together.get(key, 1), len(together))
        return self._together[server_id]

    def has_near(self, silence: Silence) -> bool:
        """True if a server of the same host or region is silent."""
        return any(one.is_near(silence) for one in self._silences.values())

    def forget(self, server_id: str) -> None:
        """Record that a server gave a sign of life, or is no longer probed."""
        self._silences.pop(server_id, None)
        self._together.pop(server_id, None)

    def since_ms(self, server_id: str) -> int | None:
        """Since when a server is silent; None if it is not, or another process probes it."""
        found = self._silences.get(server_id)
        return None if found is None else found.since_ms

    def count(self, region: str) -> int:
        """The number of silent servers of a region."""
        return len(self._of(region))

    def notice(self, region: str) -> str | None:
        """What is observed of the silent servers of a region, in a sentence; None if there are none."""
        found = self._of(region)
        is_together = any(self._together[key] > 1 for key in found)
        return silence_notice(tuple(found.values()), self.limits, is_together=is_together)

    def _of(self, region: str) -> Mapping[str, Silence]:
        return {key: one for key, one in self._silences.items() if one.region == region}
