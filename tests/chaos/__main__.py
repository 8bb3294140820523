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
from tests.chaos.restarts import measure_restarts
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
    """Print a line of progress."""
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


async def run_restarts(args: argparse.Namespace, folder: Path) -> bool:
    """Restart replicas under load."""
    return _finish(args, "restarts", await measure_restarts(folder, args.restarts, say))


async def run_handovers(args: argparse.Namespace, folder: Path) -> bool:
    """Restart replicas while matches are played on pods."""
    return _finish(args, "handovers", await measure_handovers(folder, args.restarts, say))


async def run_upgrade(args: argparse.Namespace, folder: Path) -> bool:
    """Replace replicas of the last release by this one, and back, while matches are played."""
    is_clean, lines = await measure_upgrade(folder, args.matches, say)
    if args.write:
        write_section("upgrade", [heading(command_line()), "", *lines])
    return is_clean


async def run_flood(args: argparse.Namespace, folder: Path) -> bool:
    """Measure the service during a flood."""
    return _finish(args, "flood", await measure_flood(folder, args.seconds, say))


async def run_liars(args: argparse.Namespace, folder: Path) -> bool:
    """Measure the service while game servers lie over RCON."""
    return _finish(args, "liars", await measure_liars(folder, args.seconds, say))


async def run_pods(args: argparse.Namespace, folder: Path) -> bool:
    """Play matches on pods of a cluster that fails."""
    seed = _seed(args)
    say(f"seed {seed}")
    return _finish(args, "pods", await play_on_pods(folder, Size(matches=args.matches, pods=args.pods), seed, say))


async def run_stalls(args: argparse.Namespace, folder: Path) -> bool:
    """Stall hosts, refuse consoles and end single servers."""
    for database in _databases(args):
        measured = await measure_stalls(folder / database, database, args.servers, say)
        if not _finish(args, f"stalls-{database}", measured):
            return False
    return True


async def run_killers(args: argparse.Namespace, folder: Path) -> bool:
    """Play matches while an entry of one of them kills every process that applies it."""
    seed = _seed(args)
    say(f"seed {seed}")
    is_clean = True
    for database in _databases(args):
        measured = await measure_killers(folder / database, database, seed, say)
        is_clean &= _finish(args, f"killers-{database}", measured)
    return is_clean


async def run_releases(args: argparse.Namespace, folder: Path) -> bool:
    """Freeze replicas while they release static servers."""
    seed = _seed(args)
    say(f"seed {seed}")
    return _finish(args, "releases", await measure_releases(folder, args.freezes, seed, say))


async def run_replaced(args: argparse.Namespace, folder: Path) -> bool:
    """Let hostile servers post after they were replaced."""
    return _finish(args, "replaced", await measure_replaced(folder, _databases(args), say))


def _seed(args: argparse.Namespace) -> int:
    return args.seed if args.seed is not None else SystemRandom().randrange(1, 2**31)


def _databases(args: argparse.Namespace) -> tuple[str, ...]:
    return DATABASES if args.database == "both" else (args.database,)


def _finish(args: argparse.Namespace, name: str, measured: tuple[bool, list[str]]) -> bool:
    is_clean, lines = measured
    if args.write:
        write_section(name, [heading(command_line()), "", *lines])
    return is_clean


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
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
    restarts = commands.add_parser("restarts", help="rolling restarts of two replicas on PostgreSQL, under load")
    restarts.add_argument("--restarts", type=int, default=20, help="default: 20")
    restarts.set_defaults(run=run_restarts)
    handovers = commands.add_parser("handovers", help="rolling restarts while matches are played on simulated pods")
    handovers.add_argument("--restarts", type=int, default=20, help="default: 20")
    handovers.set_defaults(run=run_handovers)
    upgrade = commands.add_parser("upgrade", help="rolling upgrade from the last release, and back, on PostgreSQL")
    upgrade.add_argument("--matches", type=int, default=20, help="matches at a time; default: 20")
    upgrade.set_defaults(run=run_upgrade)
    flood = commands.add_parser("flood", help="API and log posts while three tokens flood, on SQLite")
    flood.add_argument("--seconds", type=float, default=20, help="length of each measurement; default: 20")
    flood.set_defaults(run=run_flood)
    liars = commands.add_parser("liars", help="API and memory while servers of a static fleet lie over RCON, on SQLite")
    liars.add_argument("--seconds", type=float, default=20, help="length of each measurement; default: 20")
    liars.set_defaults(run=run_liars)
    pods = commands.add_parser("pods", help="matches on simulated pods while their cluster fails, on PostgreSQL")
    pods.add_argument("--matches", type=int, default=Size().matches, help=f"default: {Size().matches}")
    pods.add_argument("--pods", type=int, default=Size().pods, help=f"size of the fleet; default: {Size().pods}")
    pods.add_argument("--seed", type=int, help="seed of the faults; default: random")
    pods.set_defaults(run=run_pods)
    stalls = commands.add_parser("stalls", help="hosts that stall, consoles that refuse, servers that end")
    stalls.add_argument("--database", choices=(*DATABASES, "both"), default="sqlite")
    stalls.add_argument("--servers", type=int, default=20, help="servers on the host that stalls; default: 20")
    stalls.set_defaults(run=run_stalls)
    killers = commands.add_parser("killers", help="an entry that kills every process, beside healthy matches")
    _add_trial_options(killers)
    killers.set_defaults(run=run_killers)
    releases = commands.add_parser("releases", help="replicas frozen while they release servers, on PostgreSQL")
    releases.add_argument("--freezes", type=int, default=4, help="default: 4")
    releases.add_argument("--seed", type=int, help="default: random")
    releases.set_defaults(run=run_releases)
    replaced = commands.add_parser("replaced", help="servers that go on posting after they were replaced")
    replaced.add_argument("--database", choices=(*DATABASES, "both"), default="sqlite")
    replaced.set_defaults(run=run_replaced)
    for command in commands.choices.values():
        command.add_argument("--write", action="store_true", help="write the figures into their page in docs/lab")
    return parser


def _add_trial_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--database", choices=(*DATABASES, "both"), default="sqlite")
    command.add_argument("--seed", type=int, help="default: random")


def command_line() -> str:
    """Return the command that this process was started with."""
    return shlex.join([".venv/bin/python", "-m", "tests.chaos", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
