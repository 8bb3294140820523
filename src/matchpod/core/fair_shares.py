"""Divide a limited number of slots, for callbacks or DNS lookups, among organizations and the hosts of their callbacks.

An organization may occupy at most as many slots as are still free. Each of its hosts may occupy at most as many as the
organization may then still occupy. So a single organization gets half of the slots, and two organizations get a third
each. Some slots always remain free for another organization.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import NamedTuple, TypeVar

_T = TypeVar("_T")


class Receiver(NamedTuple):
    """A callback host of one organization. Organizations with the same host are separate receivers."""

    org_id: str
    host: str


class FairShares:
    """The occupied slots, counted per organization and per host."""

    def __init__(self, places: int, *, per_host: int) -> None:
        """`places` is the number of slots, `per_host` the maximum for one host of an organization."""
        self._per_host = per_host
        self._of_org: Counter[str] = Counter()
        self._of_host: Counter[Receiver] = Counter()
        self._free = places

    @property
    def free(self) -> int:
        """The number of slots that are not occupied."""
        return self._free

    def room(self, receiver: Receiver) -> int:
        """Return how many more slots this receiver may occupy now; zero or negative if it may occupy none."""
        return min(self._per_host, self._left_for(receiver.org_id)) - self._of_host[receiver]

    def hold(self, receiver: Receiver) -> None:
        """Occupy a slot for this receiver, even if the receiver has used up its share."""
        self._free -= 1
        self._of_org[receiver.org_id] += 1
        self._of_host[receiver] += 1

    def release(self, receiver: Receiver) -> None:
        """Free a slot of this receiver."""
        self._free += 1
        _decrement(self._of_org, receiver.org_id)
        _decrement(self._of_host, receiver)

    def full_organizations(self) -> list[str]:
        """Return the organizations that may not occupy another slot for any of their receivers."""
        return [org_id for org_id in self._of_org if self._left_for(org_id) <= 0]

    def full_receivers(self) -> list[Receiver]:
        """Return the receivers that may not occupy another slot, although their organization may."""
        left = {org_id: self._left_for(org_id) for org_id in self._of_org}
        return [host for host, held in self._of_host.items() if held >= min(self._per_host, left[host.org_id]) > 0]

    def choose(self, receivers: Sequence[Receiver], limit: int, *, rank: Callable[[Receiver], int]) -> list[int]:
        """Return the positions of up to `limit` receivers that may occupy a slot now, in the order of their turns.

        Organizations take turns, those with the fewest occupied slots first. Within an organization, receivers are
        ordered by rank, then by the number of slots that they occupy, then by position.
        """
        of_org, of_host = self._of_org.copy(), self._of_host.copy()
        order: list[tuple[int, int, int]] = []
        for position, receiver in enumerate(receivers):
            order.append((rank(receiver), of_host[receiver], position))
            of_host[receiver] += 1
        turns: list[tuple[int, int]] = []
        for _, _, position in sorted(order):
            org_id = receivers[position].org_id
            turns.append((of_org[org_id], position))
            of_org[org_id] += 1
        chosen: list[int] = []
        for _, position in sorted(turns, key=itemgetter(0)):
            if len(chosen) < limit and self.room(receivers[position]) > 0:
                self.hold(receivers[position])
                chosen.append(position)
        for position in chosen:
            self.release(receivers[position])
        return chosen

    def _left_for(self, org_id: str) -> int:
        return self._free - self._of_org[org_id]


def _decrement(held: Counter[_T], key: _T) -> None:
    held[key] -= 1
    if not held[key]:
        del held[key]
