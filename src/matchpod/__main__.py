"""What does `matchpod` run? The command line, but a simulated server without the weight of it: many start at once."""

from __future__ import annotations

import sys


def main() -> None:
    """The `matchpod` command, also as `python -m matchpod`."""
    if sys.argv[1:2] == ["simulate"]:
        from matchpod.simulator.wire.command_line import main as simulate

        sys.exit(simulate(sys.argv[2:]))
    from matchpod.cli import app

    app()


if __name__ == "__main__":
    main()
