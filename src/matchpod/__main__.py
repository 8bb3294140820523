"""Run the `matchpod` command.

Two commands do not import the rest: `simulate`, because many simulated servers start at once, and `gameserver`, because
one runs next to every game server.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `matchpod` and of `python -m matchpod`."""
    if sys.argv[1:2] == ["simulate"]:
        from cs2_simulator.wire.command_line import main as simulate

        sys.exit(simulate(sys.argv[2:], program="matchpod simulate"))
    if sys.argv[1:2] == ["gameserver"]:
        from matchpod_gameserver import main as run_gameserver

        sys.exit(run_gameserver(sys.argv[2:], program="matchpod gameserver"))
    from matchpod.cli import create_app

    create_app(*sys.argv[1:2])()


if __name__ == "__main__":
    main()
