"""Detect from inside a pod whether its game server is used, and whether its match must be ended.

The service has changed the RCON password, so this program cannot query the game. But the kernel shows whether a client
is connected to the RCON port (the service is, while it drives a match) and how many UDP packets arrive (a player sends
dozens per second). So a match with players continues even if the service is gone for good.
"""

from __future__ import annotations

import os

PLAYER_PACKETS_S = 20.0  # threshold: a player sends 64 packets per second; Steam and server browsers send far fewer
LOOK_S = 5.0  # interval between observations
_ESTABLISHED = "01"


class Usage:
    """Decides when a match must be ended. Times are in seconds; 0 means no limit."""

    def __init__(self, max_life_s: float, idle_s: float, look_s: float = LOOK_S) -> None:
        self._max_life_s, self._idle_limit_s, self._look_s = max_life_s, idle_s, look_s
        self._seen_s = self._life_s = self._idle_s = 0.0
        self._was_allocated = False

    def observe(self, now_s: float, *, is_allocated: bool, is_used: bool) -> str | None:
        """Return the reason why the game must be ended, or None. Servers without a match are left to Agones.

        If this program was suspended, at most two intervals are counted, since nothing was observed for the rest of the
        time.
        """
        passed_s = min(now_s - self._seen_s, 2 * self._look_s) if self._was_allocated else 0.0
        self._seen_s, self._was_allocated = now_s, is_allocated
        self._life_s = self._life_s + passed_s if is_allocated else 0.0
        self._idle_s = self._idle_s + passed_s if is_allocated and not is_used else 0.0
        if 0 < self._max_life_s <= self._life_s:
            return f"the match is older than --max-life, {self._max_life_s:g} s"
        if 0 < self._idle_limit_s <= self._idle_s:
            return f"the server has a match, but no player or console connection for {self._idle_limit_s:g} s"
        return None


def count_connections(table: str, port: int) -> int:
    """Count the open connections to a port, from the text of /proc/net/tcp or /proc/net/tcp6."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return sum(row[3] == _ESTABLISHED and int(row[1].rpartition(":")[2], 16) == port for row in rows if len(row) > 3)


def count_packets(table: str, table6: str = "") -> int:
    """Count the UDP packets that programs have received, from the texts of /proc/net/snmp and /proc/net/snmp6."""
    names, values = (line.split()[1:] for line in table.splitlines() if line.startswith("Udp:"))
    of_ipv6 = [line.split()[1] for line in table6.splitlines() if line.startswith("Udp6InDatagrams")]
    return int(dict(zip(names, values))["InDatagrams"]) + sum(map(int, of_ipv6))


class Traffic:
    """Traffic of this pod that shows whether the game is used."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._before: tuple[float, int] | None = None

    def is_used(self, now_s: float) -> bool:
        """True if an RCON client is connected or players send packets, or if this is unknown."""
        try:
            packets = count_packets(_read("snmp"), _read("snmp6"))
            consoles = count_connections(_read("tcp"), self._port) + count_connections(_read("tcp6"), self._port)
        except (OSError, ValueError, LookupError):
            return True
        before, self._before = self._before, (now_s, packets)
        if before is None or consoles:
            return True
        return packets - before[1] >= PLAYER_PACKETS_S * (now_s - before[0])


def _read(name: str) -> str:
    path = f"/proc/net/{name}"
    if name.endswith("6") and not os.path.exists(path):
        return ""  # a kernel without IPv6
    with open(path, encoding="ascii") as file:
        return file.read()
