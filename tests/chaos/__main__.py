"""Run chaos and measure its figures: matches, faults, floods, lies and restarts; see `--help`.

The exit code is 0 if nothing was violated, 1 if something was, and 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from random import SystemRandom

import msgspec

from tests.chaos.flood import measure_flood
from tests.chaos.handovers import measure_handovers
from tests.chaos.killers import measure_killers
from tests.chaos.liars import measure_liars
from tests.chaos.plan import FaultKind, Mix
from tests.chaos.pods import Size, play_on_pods
from tests.chaos.releases import measure_releases
from tests.chaos.replaced import measure_replaced
from tests.chaos.report import heading, session_lines, write_section
from tests.chaos.session import MIXES, run_session
from tests.chaos.stalls import measure_stalls
from tests.chaos.upgrade import measure_upgrade

DATABASES = ("sqlite", "postgres")


def main() -> int:
    """Run a command and return its exit code."""
    args = _parser().parse_args()
    folder = Path(tempfile.mkdtemp(prefix="matchpod-chaos-"))
    try:
        is_clean = asyncio.run(_run(args, folder))
    except BaseException:
        say(f"kept: {folder}")
        raise
    if is_clean:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        say(f"failed; kept: {folder}")
    return 0 if is_clean else 1


async def _run(args: argparse.Namespace, folder: Path) -> bool:
    """Run the command; SIGTERM ends it like Ctrl-C, so that no process is left."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    is_clean: bool = await args.run(args, folder)
    return is_clean


def say(text: str) -> None:
    print(text, flush=True)


async def run_matches(args: argparse.Namespace, folder: Path) -> bool:
    """Run rounds of matches and faults on each database."""
    seed, databases = _seed(args), _databases(args)
    for database in databases:
        mixes = [_changed(mix, args) for mix in MIXES[database] if args.mix in (mix.name, None)]
        totals = await run_session(
            folder,
            database,
            seed=seed,
            minutes=args.minutes / len(databases),
            mixes=mixes,
            report=say,
        )
        if totals.violations:
            return False
        if args.write:
            command = f"make chaos MINUTES={args.minutes:g} DATABASE={args.database} SEED={seed}"
            write_section(database, session_lines(totals, command))
    return True


def _changed(mix: Mix, args: argparse.Namespace) -> Mix:
    return msgspec.structs.replace(
        mix,
        matches=args.matches or mix.matches,
        kills=mix.kills if args.kills is None else args.kills,
        faults=mix.faults if args.faults is None else tuple(map(FaultKind, filter(None, args.faults.split(",")))),
    )


class Trial(msgspec.Struct, frozen=True):
    """A command that measures single figures, which have a section of their own."""

    about: str
    measure: Callable[[argparse.Namespace, Path, str], Awaitable[tuple[bool, list[str]]]]
    options: Mapping[str, float | None] = {}
    """Its options and their defaults; without a seed a random one is taken."""
    is_of_database: bool = False
    """True if there is a section for each database."""


TRIALS = {
    "handovers": Trial(
        "rolling restarts of two replicas on PostgreSQL, under load and while matches are played on simulated pods",
        lambda given, folder, _: measure_handovers(folder, given.restarts, say),
        {"restarts": 20},
    ),
    "upgrade": Trial(
        "rolling upgrade from the last release, and back, on PostgreSQL",
        lambda given, folder, _: measure_upgrade(folder, given.matches, say),
        {"matches": 20},
    ),
    "flood": Trial(
        "API and log posts while three tokens flood, on SQLite",
        lambda given, folder, _: measure_flood(folder, given.seconds, say),
        {"seconds": 20.0},
    ),
    "liars": Trial(
        "API and memory while servers of a static fleet lie over RCON, on SQLite",
        lambda given, folder, _: measure_liars(folder, given.seconds, say),
        {"seconds": 20.0},
    ),
    "pods": Trial(
        "matches on simulated pods while their cluster fails, on PostgreSQL",
        lambda given, folder, _: play_on_pods(folder, Size(matches=given.matches, pods=given.pods), given.seed, say),
        {"matches": Size().matches, "pods": Size().pods, "seed": None},
    ),
    "stalls": Trial(
        "hosts that stall, consoles that refuse, servers that end",
        lambda given, folder, database: measure_stalls(folder / database, database, given.servers, say),
        {"servers": 20},
        is_of_database=True,
    ),
    "killers": Trial(
        "an entry that kills every process, beside healthy matches",
        lambda given, folder, database: measure_killers(folder / database, database, given.seed, say),
        {"seed": None},
        is_of_database=True,
    ),
    "releases": Trial(
        "replicas frozen while they release servers, on PostgreSQL",
        lambda given, folder, _: measure_releases(folder, given.freezes, given.seed, say),
        {"freezes": 4, "seed": None},
    ),
    "replaced": Trial(
        "servers that go on posting after they were replaced",
        lambda given, folder, _: measure_replaced(folder, _databases(given), say),
    ),
}


async def run_trial(args: argparse.Namespace, folder: Path) -> bool:
    """Run one of the trials."""
    trial, is_clean = TRIALS[args.command], True
    if "seed" in trial.options:
        args.seed = _seed(args)
        say(f"seed {args.seed}")
    for database in _databases(args) if trial.is_of_database else ("",):
        is_trial_clean, lines = await trial.measure(args, folder, database)
        if args.write:
            write_section(f"{args.command}-{database}".rstrip("-"), [heading(command_line()), "", *lines])
        is_clean &= is_trial_clean
    return is_clean


def _seed(args: argparse.Namespace) -> int:
    return args.seed if args.seed is not None else SystemRandom().randrange(1, 2**31)


def _databases(args: argparse.Namespace) -> tuple[str, ...]:
    return DATABASES if args.database == "both" else (args.database,)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command", metavar="command")
    matches = commands.add_parser("matches", help="rounds of matches with kills and other faults")
    matches.add_argument(
        "--minutes", type=float, default=0, help="how long; default: one round of each mix per database"
    )
    matches.add_argument("--mix", choices=[mix.name for mix in MIXES["sqlite"]], help="only rounds of this mix")
    matches.add_argument("--database", choices=(*DATABASES, "both"), default="sqlite")
    matches.add_argument("--seed", type=int, help="seed of the first round; default: random")
    matches.add_argument("--matches", type=int, help="matches per round")
    matches.add_argument("--kills", type=int, help="kills per round")
    names = ",".join(FaultKind)
    matches.add_argument("--faults", help=f"other faults per round, separated by commas, of: {names}")
    matches.set_defaults(run=run_matches)
    for name, trial in TRIALS.items():
        command = commands.add_parser(name, help=trial.about)
        for option, default in trial.options.items():
            about = "default: random" if default is None else f"default: {default:g}"
            command.add_argument(f"--{option}", type=type(default or 0), default=default, help=about)
        if trial.is_of_database or name == "replaced":
            command.add_argument("--database", choices=(*DATABASES, "both"), default="sqlite")
        command.set_defaults(run=run_trial)
    for command in commands.choices.values():
        command.add_argument("--write", action="store_true", help="write the figures into their page in docs/lab")
    return parser


def command_line() -> str:
    """Return the command that this process was started with."""
    return shlex.join([".venv/bin/python", "-m", "tests.chaos", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
