"""Run the `matchpod` command.

`simulate` starts without importing the other commands, because many simulated servers are started at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> None:
    """Run a command; the entry point of `matchpod`. Without `args`, use the arguments of the process."""
    if args is None:
        args = sys.argv[1:]
    if args[:1] == ["simulate"]:
        from cs2_simulator.wire.command_line import main as simulate

        sys.exit(simulate(args[1:], program="matchpod simulate"))
    if args[:1] == ["serve"] and os.getpid() == 1:
        from matchpod.adapters.init_process import fork_service

        fork_service()
    from matchpod.cli import create_app

    create_app(*args[:1])(args)


if __name__ == "__main__":
    main()
