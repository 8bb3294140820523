"""Run chaos and measure its figures: `python -m tests.chaos matches|restarts|flood|receivers`.

The exit code is 0 if nothing was violated, 1 if something was, and 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

from tests.chaos.report import session_lines, write_section
from tests.chaos.session import MIXES, run_session

DATABASES = ("sqlite", "postgres")


def main() -> int:
    """Run a command and return its exit code."""
    args = _parser().parse_args()
    folder = Path(tempfile.mkdtemp(prefix="matchpod-chaos-"))
    try:
        is_clean = asyncio.run(args.run(args, folder))
    except BaseException:
        say(f"kept: {folder}")
        raise
    if is_clean:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        say(f"failed; kept: {folder}")
    return 0 if is_clean else 1


def say(text: str) -> None:
    """Print a line of progress."""
    print(text, flush=True)


async def run_matches(args: argparse.Namespace, folder: Path) -> bool:
    """Run rounds of matches and faults on each database."""
    seed = args.seed if args.seed is not None else SystemRandom().randrange(1, 2**31)
    databases = DATABASES if args.database == "both" else (args.database,)
    for database in databases:
        totals = await run_session(
            folder,
            database,
            seed=seed,
            minutes=args.minutes / len(databases),
            mix=MIXES[database],
            report=say,
        )
        if totals.violations:
            return False
        if args.write:
            command = f"make chaos MINUTES={args.minutes:g} DATABASE={args.database} SEED={seed}"
            write_section(database, session_lines(totals, command))
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    matches = commands.add_parser("matches", help="rounds of matches with kills and other faults")
    matches.add_argument("--minutes", type=float, default=0, help="how long; default: one round per database")
    matches.add_argument("--database", choices=(*DATABASES, "both"), default="sqlite")
    matches.add_argument("--seed", type=int, help="seed of the first round; default: random")
    matches.set_defaults(run=run_matches)
    for command in commands.choices.values():
        command.add_argument("--write", action="store_true", help="write the figures into docs/reliability.md")
    return parser


def command_line() -> str:
    """Return the command that this process was started with."""
    return shlex.join([".venv/bin/python", "-m", "tests.chaos", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
