"""Run the tests repeatedly with random seeds, for a given time.

First, all in-process tests run once with fixed seeds, and the coverage of the whole package is checked. Then the soak,
law and hypothesis tests run in rounds, part by part, each round with a new seed. No part starts after the given time.
Finally, matches are played at the speed of real games, by default for an hour. No tests run then, because they would
distort the measured timing. The first failure ends the run and prints the command that reproduces it.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import SystemRandom

COVERAGE_REPORT = Path("build/coverage-all.json")
WORKERS = "4"
"""Number of test workers. Most of these tests are CPU-bound; a few wait."""

PARTS = (
    ("tests/unit", "packages", "tests/corpus", "tests/bench"),
    ("tests/contract",),
    ("tests/e2e", "tests/chaos"),
    ("tests/real_time",),
    ("tests/browser",),
    ("tests/deploy",),
)
"""The parts of a round, each a group of test folders. The fastest part comes first."""

LAWS = ("-m", "soak or law or hypothesis")


def pytest_args(*args: str) -> list[str]:
    """Return the arguments of one pytest run."""
    return ["-q", "-n", WORKERS, "--dist", "loadfile", *args]


def run(args: list[str], seed: int | None = None) -> bool:
    """Run tests with a seed, or with the fixed seeds. If a test fails, print how to reproduce it and return False."""
    environment = {"MATCHPOD_SOAK_SEED": str(seed)} if seed is not None else {}
    status = subprocess.run([sys.executable, "-m", "pytest", *args], env={**os.environ, **environment}, check=False)
    if status.returncode != 0:
        setting = "".join(f"{name}={value} " for name, value in environment.items())
        print("\nsoak: failed. To reproduce:", flush=True)
        print(f"  {setting}.venv/bin/pytest {shlex.join(args)}")
        print("Add -k with a test name to run only that test. Add the failing case as an @example or a fixed seed.")
    return status.returncode == 0


def run_all_with_coverage() -> bool:
    """Run all in-process tests once and check the coverage of the whole package."""
    COVERAGE_REPORT.parent.mkdir(exist_ok=True)
    COVERAGE_REPORT.unlink(missing_ok=True)
    args = ["tests/unit", "packages", "tests/contract", "tests/corpus", "tests/golden", "-m", "not soak"]
    args += ["--cov", "--cov-branch", "--cov-report=", f"--cov-report=json:{COVERAGE_REPORT}"]
    if not run(pytest_args(*args)):
        return False
    check = [sys.executable, "scripts/check_coverage.py", str(COVERAGE_REPORT)]
    return subprocess.run(check, check=False).returncode == 0


def play_in_real_time(minutes: float) -> bool:
    """Play matches at the speed of real games. Print each alarm that was shown; return False if an alarm was false."""
    args = ["-m", "tests.real_time", "--minutes", f"{minutes:g}"]
    print(f"soak: {minutes:g} minutes at the speed of real games", flush=True)
    status = subprocess.run([sys.executable, *args], check=False)
    if status.returncode != 0:
        print(f"\nsoak: failed. To reproduce:\n  .venv/bin/python {shlex.join(args)}")
    return status.returncode == 0


def rounds(first_seed: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield number, seed and test folders of each part of each round, endlessly."""
    random, seed = SystemRandom(), first_seed
    for number in count(1):
        for part in PARTS:
            yield number, seed, part
        seed = random.randrange(1, 2**31)


def main() -> int:
    """Run the soak test for the given time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20, help="duration in minutes; default: 20")
    parser.add_argument("--seed", type=int, help="seed of the first round; default: random")
    parser.add_argument(
        "--real-time", type=float, default=60, help="minutes at the speed of real games; default: 60, 0 for none"
    )
    parser.add_argument("--no-coverage", action="store_true", help="skip the first run with coverage")
    args = parser.parse_args()
    started_s = time.monotonic()
    if not args.no_coverage:
        print("soak: all tests once, with coverage", flush=True)
        if not run_all_with_coverage():
            return 1
    first_seed = SystemRandom().randrange(1, 2**31) if args.seed is None else args.seed
    for number, seed, part in rounds(first_seed):
        minutes = (time.monotonic() - started_s) / 60
        if minutes >= args.minutes:
            print(f"soak: passed in {minutes:.1f} minutes; next part: {' '.join(part)} of round {number}", flush=True)
            return 0 if not args.real_time or play_in_real_time(args.real_time) else 1
        print(f"soak: round {number}, seed {seed}, {' '.join(part)}, {minutes:.1f} minutes so far", flush=True)
        if not run(pytest_args(f"--hypothesis-seed={seed}", *part, *LAWS), seed):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
