"""Define the options of an Agones fleet, and validate their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from matchpod.adapters.kubernetes.server_watch import RELIST_S

FLEET_LABEL = "agones.dev/fleet"
"""The label that Agones gives to the game servers of a Fleet."""

ADDRESS_TYPES = ("ExternalIP", "ExternalDNS", "InternalIP")
"""Types of node addresses, the preferred type first."""

MIN_SECRET_BYTES = 16
"""Minimum size of the fleet secret, from which the passwords of all waiting servers are derived."""

RETRY_S = 10.0
"""How long an allocation is retried while servers are ready."""

SETTLE_S = 2.0
"""How long to search for the server of an allocation without an answer, which may still take effect."""

CONSOLE_S = 30.0
"""How long the console of an allocated server may take to answer."""

RELEASE_S = 20.0
"""How long the deletion of a server is retried."""

GONE_POLL_S = 1.5
"""Seconds between two reads of a server that the watch does not show, while the cluster answers."""

FRESH_S = 2.0
"""How long after its allocation a server counts as allocated, even if a read (which may be stale) says otherwise."""

MISSING_FLEET_POLL_S = 5.0
"""Seconds between two checks of the Fleet while it does not exist, or while a right is missing."""

CHECK_S = 5.0
"""How long a cluster may take to answer the check before the service starts without it."""

TURN_S = 5.0
"""How long an allocation waits for trials of the secret on other servers. A wrong password is rejected sooner."""

READ_S = 5.0
"""Seconds between two reads of the secret and, while the fleet is stopped, between two trials on a waiting server."""

_LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_OBJECT_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


class AgonesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The game servers of a fleet, their addresses and ports, and timeouts."""

    fleet: str
    """The name of the Fleet."""
    region: str
    read_secret: Callable[[], bytes]
    """Returns the secret from which the passwords of servers without a match are derived, or raises ValueError."""
    read_previous_secret: Callable[[], bytes | None] = lambda: None
    """Returns the secret that servers may still have during a rotation, None if there is none, or raises ValueError."""
    owner: str
    """Identifies the installation in a shared namespace. It uses no servers with another owner or region."""
    selector: Mapping[str, str] = {}
    """Labels of the game servers; the label of the Fleet if empty."""
    address_types: tuple[str, ...] = ADDRESS_TYPES
    """Types of addresses for players, the preferred type first."""
    console_address_types: tuple[str, ...] = ()
    """Types of addresses for consoles; if empty, the types for players."""
    port_name: str = "game"
    console_port_name: str = ""
    """The name of the port for consoles; if empty, `port_name`."""
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
        """Return the secret, and the previous secret if there is one; ValueError if a secret cannot be used."""
        # In this order, the old secret is read twice, and not missed, if both files are replaced between the reads.
        current, previous = self.read_secret(), self.read_previous_secret()
        return (current,) if previous is None or previous == current else (current, previous)


def is_label_value(text: str) -> bool:
    """True if a text is a valid label value in Kubernetes, and is not empty."""
    return _LABEL_VALUE.fullmatch(text) is not None


def is_object_name(text: str) -> bool:
    return _OBJECT_NAME.fullmatch(text) is not None


def read_fleet_secret(file: Path) -> bytes:
    """Return the secret in a file, stripped of white space; ValueError if it cannot be used."""
    return _checked_secret(file, _read_secret(file))


def read_previous_fleet_secret(file: Path | None) -> bytes | None:
    """Return the previous secret in a file; None if the file is missing or empty because there is no rotation."""
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
