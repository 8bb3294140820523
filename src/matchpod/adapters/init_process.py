"""Run as process 1 of a container: start the service as a child, forward signals to it and reap orphans.

Orphaned processes become children of process 1, for example those that the start script of a game server has left. And
process 1 ignores signals without a handler, even one that should end a hanging service. So the service is a child
process: it reaps its own children, whose exit codes it needs, and process 1 reaps all orphans.
"""

from __future__ import annotations

import os
import signal
from typing import Final

_FORWARDED: Final = frozenset(
    {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
)


def fork_service() -> None:
    """Return in a new child process; the calling process waits for the child, and exits with its exit code.

    Call it before any thread is started, and before many modules are imported, because the waiting process keeps its
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
        elif received.si_code <= 0:  # a signal from the terminal (above 0) has already reached the child
            os.kill(child, received.si_signo)


def _reap(child: int) -> int | None:
    """Reap all children that have ended; return the exit code of `child` (128 + N after signal N) if it has ended."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return 128 - code if code < 0 else code
        if pid == 0:
            return None
