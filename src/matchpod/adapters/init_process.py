"""Run as process 1 of a container: start the service as a child, forward signals to it and reap orphans.

Orphaned processes, such as those that the start script of a game server leaves behind, become children of process 1.
Process 1 also ignores signals without a handler, even a signal that should end a hanging service. So the service runs
as a child process. It reaps its own children, because it needs their exit codes, and process 1 reaps all orphans.
"""

from __future__ import annotations

import os
import signal
from typing import Final

_FORWARDED: Final = frozenset(
    {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
)


def fork_service() -> None:
    """Fork. Return only in the child; the parent waits for the child, and exits with its exit code.

    Call it before any thread is started, and before many modules are imported, because the waiting parent keeps their
    memory.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *_FORWARDED})
    child = os.fork()
    if child:
        os._exit(_wait_for(child))
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait_for(child: int) -> int:
    while True:
        received = signal.sigwaitinfo({signal.SIGCHLD, *_FORWARDED})
        if received.si_signo == signal.SIGCHLD:
            code = _reap(child)
            if code is not None:
                return code
        elif received.si_code <= 0:  # above 0: from the terminal, which has already signalled the child
            os.kill(child, received.si_signo)


def _reap(child: int) -> int | None:
    """Reap all children that have ended. If `child` has ended, return its exit code (128 + N if signal N killed it)."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return 128 - code if code < 0 else code
        if pid == 0:
            return None
