"""The values that observers record during a round, and that the judge decides on."""

from __future__ import annotations

from typing import Any

import msgspec


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to deliver a callback, as the receiver saw it."""

    at_s: float
    id: str
    body: bytes
    is_accepted: bool
    """True if the receiver sent a complete response with a 2xx status."""
    is_signed: bool


class Answer(msgspec.Struct, frozen=True):
    """An answer of the API; status 0 if there was none."""

    at_s: float
    status: int
    json: Any = None


class Death(msgspec.Struct, frozen=True):
    """A time at which a replica was killed, frozen or restarted, until it worked again."""

    from_s: float
    until_s: float


class MatchSeen(msgspec.Struct, kw_only=True):
    """All that was seen of one match."""

    server_id: str | None = None
    server_ids: set[str] = msgspec.field(default_factory=set)
    """Every server id that a request to create it was answered with: at most one."""
    creates: list[Answer] = msgspec.field(default_factory=list)
    cancels: list[Answer] = msgspec.field(default_factory=list)
    deliveries: list[Delivery] = msgspec.field(default_factory=list)
    final: Answer | None = None
    """`GET /api/v1/matches/{externalMatchId}` at the end."""
    server: Answer | None = None
    """`GET /api/v1/servers/{id}` at the end."""


class Leftovers(msgspec.Struct, frozen=True, kw_only=True):
    """What is left after all matches have ended: everything should be empty."""

    processes: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
    leases: tuple[str, ...] = ()
    open_servers: tuple[str, ...] = ()
    due_callbacks: tuple[str, ...] = ()
    snapshots: tuple[str, ...] = ()
    static_servers: tuple[str, ...] = ()
    """What matches left on static servers."""
    unknown_servers: tuple[str, ...] = ()
    """Servers in the database that no request created."""
    exit_codes: tuple[str, ...] = ()
    """Replicas that did not exit with 0 when they were stopped at the end."""

    def items(self) -> list[str]:
        """Return everything that is left, as text."""
        return [f"{name}: {one}" for name in self.__struct_fields__ for one in getattr(self, name)]


class Observations(msgspec.Struct, kw_only=True):
    """All that was seen in one round."""

    matches: dict[str, MatchSeen]
    deaths: list[Death] = msgspec.field(default_factory=list)
    leftovers: Leftovers = Leftovers()
    injected: list[str] = msgspec.field(default_factory=list)
    """Faults that were injected, by name; a fault whose moment never came is not."""
    skipped: list[str] = msgspec.field(default_factory=list)
    errors: list[str] = msgspec.field(default_factory=list)
    """Error messages in the logs of the service that no fault explains."""
    set_aside: dict[str, list[int]] = msgspec.field(default_factory=dict)
    """The entries of each match that were set aside."""
    bugs: dict[str, int] = msgspec.field(default_factory=dict)
    """The entry of each match that cannot be applied."""
    bug_deaths: int = 0
    """How many processes died of a bug."""
    is_stuck: bool = False
    """True if the round did not become quiet in time."""
    stray_paths: list[str] = msgspec.field(default_factory=list)
    """Paths of callbacks that no match has."""
    stolen_share: float = 0.0
    """The largest share of the CPU that the host took for ten seconds."""
