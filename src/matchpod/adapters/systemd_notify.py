"""Report to systemd that the service is ready, alive or stopping, as described in sd_notify(3).

The unit needs `Type=notify`: systemd then sets NOTIFY_SOCKET. With `WatchdogSec=`, it also sets WATCHDOG_USEC and
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
"""Number of reports per watchdog timeout, so that one late report does not cause a restart."""

_VARIABLES: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
_log = logging.getLogger(__name__)


class SystemdNotifier:
    """Sends reports to systemd, or does nothing if systemd has not set its variables.

    The variables are removed from the environment, because child processes must not send reports.
    """

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        path, timeout_us, pid = (environment.pop(name, "") for name in _VARIABLES)
        # A path that begins with @ is a socket name in the abstract namespace, not in the file system.
        self._address = f"\0{path[1:]}" if path.startswith("@") else path
        is_for_us = pid in ("", str(os.getpid())) and timeout_us.isdigit()
        self.watchdog_s: Final = int(timeout_us) / 1_000_000 if path and is_for_us else 0.0
        """The watchdog timeout in seconds; 0 if there is no watchdog."""
        self._has_failed = False

    def ready(self, status: str) -> None:
        """Report that the service is ready."""
        self._send(f"READY=1\nSTATUS={status}")

    def stopping(self) -> None:
        """Report that the service is stopping."""
        self._send("STOPPING=1\nSTATUS=stopping")

    async def run_watchdog(self) -> None:
        """Until cancelled, report that the event loop makes progress; without reports, systemd restarts the process."""
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
