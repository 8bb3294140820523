"""Ban addresses after repeated wrong RCON passwords, with the limits of the game. This module does no I/O."""

from __future__ import annotations

from collections import deque

MIN_FAILURES = 5
"""Number of wrong passwords within MIN_FAILURE_TIME_S after which an address is banned (`sv_rcon_minfailures`)."""

MIN_FAILURE_TIME_S = 30.0
"""Time in seconds within which MIN_FAILURES wrong passwords cause a ban (`sv_rcon_minfailuretime`)."""

MAX_FAILURES = 10
"""Total number of wrong passwords after which an address is banned (`sv_rcon_maxfailures`)."""

BAN_S = 60.0
"""Duration of a ban in seconds. In the game it is unlimited by default; here, tests must be able to continue after a
ban."""

MAX_ADDRESSES = 1024
"""Maximum number of addresses with recorded failures. A new address replaces the oldest."""


class BanList:
    """The failures and bans of one server. Times are in seconds of any monotonic clock."""

    def __init__(self, *, ban_s: float = BAN_S) -> None:
        self._ban_s = ban_s
        self._failures: dict[str, deque[float]] = {}
        self._banned_until_s: dict[str, float] = {}

    def is_banned(self, address: str, now_s: float) -> bool:
        """True while an address is banned. An expired ban is removed."""
        until_s = self._banned_until_s.get(address)
        if until_s is None:
            return False
        if now_s < until_s:
            return True
        del self._banned_until_s[address]
        return False

    def note_failure(self, address: str, now_s: float) -> None:
        """Record a wrong password from this address. After too many, ban the address."""
        failures = self._failures.setdefault(address, deque(maxlen=MAX_FAILURES))
        failures.append(now_s)
        is_fast = len(failures) >= MIN_FAILURES and now_s - failures[-MIN_FAILURES] <= MIN_FAILURE_TIME_S
        if is_fast or len(failures) >= MAX_FAILURES:
            del self._failures[address]
            self._banned_until_s[address] = now_s + self._ban_s
        for table in (self._failures, self._banned_until_s):
            if len(table) > MAX_ADDRESSES:
                del table[next(iter(table))]
