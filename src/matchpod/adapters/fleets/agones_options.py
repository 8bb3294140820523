"""Options of a fleet in Agones, and the rules for their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from matchpod.adapters.kubernetes.server_watch import RELIST_S

FLEET_LABEL = "agones.dev/fleet"
"""Label that Agones gives to the game servers of a Fleet."""

ADDRESS_TYPES = ("ExternalIP", "ExternalDNS", "InternalIP")
"""Types of node addresses, the preferred one first."""

MIN_SECRET_BYTES = 16
"""Shortest fleet secret: the passwords of all waiting servers follow from it."""

RETRY_S = 10.0
"""How long an allocation is repeated while servers are ready."""

SETTLE_S = 2.0
"""How long to look for the server of an allocation that failed without an answer; it may still be on its way."""

CONSOLE_S = 30.0
"""How long the console of an allocated server may take to answer."""

RELEASE_S = 20.0
"""How long the deletion of a server is repeated."""

GONE_POLL_S = 1.5
"""How often a server that the watch does not show is asked for, while the cluster answers."""

FRESH_S = 2.0
"""How long after its allocation a server counts as allocated, whatever is read: that may be older."""

MISSING_FLEET_POLL_S = 5.0
"""How often to check whether the Fleet exists while it does not, or while a right is missing."""

CHECK_S = 5.0
"""How long a cluster may take to answer the check before the service starts without it."""

TURN_S = 5.0
"""How long an allocation waits for the outcome of others. A wrong password is rejected sooner."""

READ_S = 5.0
"""How often the secret is read and, while the fleet is stopped, a waiting server is tried."""

_LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_OBJECT_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


class AgonesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which game servers belong to a fleet, how they are reached, and how long things may take."""

    fleet: str
    """Name of the Fleet."""
    region: str
    read_secret: Callable[[], bytes]
    """Returns the secret from which the passwords of servers without a match are derived, or raises a ValueError."""
    read_previous_secret: Callable[[], bytes | None] = lambda: None
    """Returns the secret that servers may still have during a rotation, None if there is none, or raises ValueError."""
    owner: str
    """Tells installations that share a namespace apart: none touches servers with another owner or region."""
    selector: Mapping[str, str] = {}
    """Labels of the game servers; those of the Fleet if empty."""
    address_types: tuple[str, ...] = ADDRESS_TYPES
    """Types of addresses for players, the preferred one first."""
    console_address_types: tuple[str, ...] = ()
    """Types of addresses for consoles; as for players if empty."""
    port_name: str = "game"
    console_port_name: str = ""
    """Name of the port for consoles; that of the game if empty."""
    retry_s: float = RETRY_S
    settle_s: float = SETTLE_S
    console_s: float = CONSOLE_S
    release_s: float = RELEASE_S
    gone_poll_s: float = GONE_POLL_S
    fresh_s: float = FRESH_S
    missing_fleet_poll_s: float = MISSING_FLEET_POLL_S
    check_s: float = CHECK_S
    turn_s: float = TURN_S
    read_s: float = READ_S
    relist_s: float = RELIST_S

    def __post_init__(self) -> None:
        """Raise ValueError for a value that Kubernetes would reject."""
        if not is_object_name(self.fleet):
            raise ValueError(f"`{self.fleet}` is not a valid name of a Fleet")
        for name, value in (("region", self.region), ("owner", self.owner)):
            if not is_label_value(value):
                raise ValueError(f"the {name} `{value}` is not a valid value of a label in Kubernetes")

    @property
    def server_labels(self) -> Mapping[str, str]:
        """The labels that select the game servers of the fleet."""
        return self.selector or {FLEET_LABEL: self.fleet}

    def read_secrets(self) -> tuple[bytes, ...]:
        """Return the secret, and the previous one if there is one; ValueError says what is wrong."""
        # In this order: if both files are replaced in between, the old secret is read twice, not missed.
        current, previous = self.read_secret(), self.read_previous_secret()
        return (current,) if previous is None or previous == current else (current, previous)


def is_label_value(text: str) -> bool:
    """True if a text may be the value of a label, and is not empty."""
    return _LABEL_VALUE.fullmatch(text) is not None


def is_object_name(text: str) -> bool:
    return _OBJECT_NAME.fullmatch(text) is not None


def read_fleet_secret(file: Path) -> bytes:
    """Return the secret in a file, without white space around it; ValueError says what is wrong."""
    return _checked_secret(file, _read_secret(file))


def read_previous_fleet_secret(file: Path | None) -> bytes | None:
    """Return the previous secret in a file; None if the file is missing or empty, as when no rotation is under way."""
    if file is None:
        return None
    try:
        secret = _read_secret(file)
    except ValueError as exc:
        if isinstance(exc.__cause__, FileNotFoundError):
            return None
        raise
    return _checked_secret(file, secret) if secret else None


def _read_secret(file: Path) -> bytes:
    try:
        return file.read_bytes().strip()
    except OSError as exc:
        raise ValueError(f"The fleet secret {file} cannot be read: {exc.strerror}.") from exc


def _checked_secret(file: Path, secret: bytes) -> bytes:
    if len(secret) < MIN_SECRET_BYTES:
        length = f"it has {len(secret)} bytes, at least {MIN_SECRET_BYTES} are needed"
        raise ValueError(f"The fleet secret {file} cannot be used: {length}.")
    return secret
