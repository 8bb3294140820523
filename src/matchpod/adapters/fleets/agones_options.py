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
"""Types of node addresses, in the order of preference."""

MIN_SECRET_BYTES = 16
"""Minimum length in bytes of the fleet secret. The passwords of all waiting servers are derived from it."""

RETRY_S = 10.0
"""Time limit in seconds for repeated allocation attempts while the Fleet has ready servers."""

SETTLE_S = 2.0
"""Time limit in seconds for finding the server of an unanswered allocation call, which may take effect late."""

CONSOLE_S = 30.0
"""Timeout in seconds for setting the password on the console of an allocated server."""

RELEASE_S = 20.0
"""Time limit in seconds for repeated deletions of a server."""

GONE_POLL_S = 1.5
"""Interval in seconds at which a server that the watch does not report is read from the cluster."""

FRESH_S = 2.0
"""Time in seconds after its allocation in which a server counts as allocated, even if a (stale) read says otherwise."""

MISSING_FLEET_POLL_S = 5.0
"""Interval in seconds at which the Fleet is checked while it does not exist, or while a right is missing."""

CHECK_S = 5.0
"""Timeout in seconds for the check of a cluster at startup. After it, the service starts without the cluster."""

TURN_S = 5.0
"""Maximum time in seconds for which an allocation waits for trials of the secret on other servers. A server takes less
time than that to reject a password."""

READ_S = 5.0
"""Interval in seconds at which the secret is read again and, while the fleet is stopped, tried on a waiting server."""

_LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_OBJECT_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


class AgonesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which game servers a fleet uses, how they are reached, and the timeouts."""

    fleet: str
    """The name of the Fleet."""
    region: str
    read_secret: Callable[[], bytes]
    """Returns the secret that the first passwords of servers are derived from, or raises ValueError."""
    read_previous_secret: Callable[[], bytes | None] = lambda: None
    """Returns the secret that servers may still use during a rotation; None if there is none. May raise ValueError."""
    owner: str
    """The id of the installation. Other installations may use the same namespace; their servers are not used."""
    selector: Mapping[str, str] = {}
    """Labels that select the game servers; if empty, the label of the Fleet selects them."""
    address_types: tuple[str, ...] = ADDRESS_TYPES
    """Types of the addresses that players connect to, in the order of preference."""
    console_address_types: tuple[str, ...] = ()
    """Types of the addresses that consoles are reached at; if empty, the types for players."""
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
        """Return the secret and, if there is one, the previous secret; raise ValueError if a secret cannot be used."""
        # The previous secret is read last: if both files are replaced in between, the old secret is still read.
        current, previous = self.read_secret(), self.read_previous_secret()
        return (current,) if previous is None or previous == current else (current, previous)


def is_label_value(text: str) -> bool:
    """True if a text is not empty, and valid as the value of a label in Kubernetes."""
    return _LABEL_VALUE.fullmatch(text) is not None


def is_object_name(text: str) -> bool:
    return _OBJECT_NAME.fullmatch(text) is not None


def read_fleet_secret(file: Path) -> bytes:
    """Return the secret in a file, without surrounding white space; raise ValueError if it cannot be used."""
    return _checked_secret(file, _read_secret(file))


def read_previous_fleet_secret(file: Path | None) -> bytes | None:
    """Return the previous secret; None if no file is configured, or if the file is missing or empty (no rotation)."""
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
