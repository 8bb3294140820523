"""Run the `matchpod` command; `simulate` does not import the rest, because many simulated servers start at once."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `matchpod` and of `python -m matchpod`."""
    if sys.argv[1:2] == ["simulate"]:
        from matchpod.simulator.wire.command_line import main as simulate

        sys.exit(simulate(sys.argv[2:]))
    from matchpod.cli import create_app

    create_app(*sys.argv[1:2])()


if __name__ == "__main__":
    main()
