"""Run the `matchpod` command.

Two commands do not import the rest: `simulate`, because many simulated servers start at once, and `gameserver`, because
one runs next to every game server.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> None:
    """Entry point of `matchpod` and of `python -m matchpod`, with the arguments of the process unless given."""
    if args is None:
        args = sys.argv[1:]
    if args[:1] == ["simulate"]:
        from cs2_simulator.wire.command_line import main as simulate

        sys.exit(simulate(args[1:], program="matchpod simulate"))
    if args[:1] == ["gameserver"]:
        from matchpod_gameserver import main as run_gameserver

        sys.exit(run_gameserver(args[1:], program="matchpod gameserver"))
    if args[:1] == ["serve"] and os.getpid() == 1:
        from matchpod.adapters.init_process import fork_service

        fork_service()
    from matchpod.cli import create_app

    create_app(*args[:1])(args)


if __name__ == "__main__":
    main()
