"""Be process 1 of a container: start the service as a child, forward signals to it and reap orphans.

The system gives process 1 all processes whose parent has ended, such as helpers that the start script of a game server
has left, and ignores signals without a handler, such as the one that ends a hanging service. So the service is a child:
it reaps its own children, whose exit codes it needs, and this process reaps the rest.
"""

from __future__ import annotations

import os
import signal
from typing import Final

_FORWARDED: Final = frozenset(
    {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
)


def fork_service() -> None:
    """Return in a new child process; the calling process stays behind, and exits with the exit code of the child.

    Call it before any thread is started and before much is imported: what this process has in memory stays there.
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
        elif received.si_code <= 0:  # a signal of a terminal (above 0) has reached the child too
            os.kill(child, received.si_signo)


def _reap(child: int) -> int | None:
    """Reap all children that have ended; return the exit code of this one, with 128 + N after signal N."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return 128 - code if code < 0 else code
        if pid == 0:
            return None
