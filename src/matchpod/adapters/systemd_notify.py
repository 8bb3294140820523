"""Report to systemd that the service is ready, alive or stopping, as described in sd_notify(3).

This works in a unit with `Type=notify`, which sets NOTIFY_SOCKET. `WatchdogSec=` also sets WATCHDOG_USEC and
WATCHDOG_PID.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import MutableMapping
from typing import Final

BEATS: Final = 3
"""Number of reports per watchdog timeout, so that a single late report does no harm."""

_VARIABLES: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
_log = logging.getLogger(__name__)


class SystemdNotifier:
    """Sends reports to systemd, or does nothing if its variables are not set.

    The variables are removed from the environment, because child processes must not report.
    """

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        path, timeout_us, pid = (environment.pop(name, "") for name in _VARIABLES)
        # A name that begins with @ is in the abstract namespace, not in the file system.
        self._address = f"\0{path[1:]}" if path.startswith("@") else path
        is_for_us = pid in ("", str(os.getpid())) and timeout_us.isdigit()
        self.watchdog_s: Final = int(timeout_us) / 1_000_000 if path and is_for_us else 0.0
        """The watchdog timeout; 0 if there is no watchdog."""
        self._has_failed = False

    def ready(self, status: str) -> None:
        """Report that the service has started."""
        self._send(f"READY=1\nSTATUS={status}")

    def stopping(self) -> None:
        """Report that the service has begun to stop."""
        self._send("STOPPING=1\nSTATUS=stopping")

    async def run_watchdog(self) -> None:
        """Report, until cancelled, that the event loop makes progress; without that, systemd restarts the process."""
        while True:
            self._send("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_s / BEATS)

    def _send(self, message: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)  # noqa: FBT003 - no keyword arguments
                sender.connect(self._address)
                sender.send(message.encode())
        except OSError as exc:
            if not self._has_failed:
                _log.warning("systemd not notified", extra={"reason": exc.strerror or str(exc)})
            self._has_failed = True
