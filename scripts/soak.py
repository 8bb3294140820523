"""Run the tests with random seeds, in real time and in large numbers, for as long as told.

First everything once with fixed seeds, for the coverage of the whole package. Then rounds of the tests that try laws,
part by part, each round with another seed. No part begins after the time is over; the first failure ends the run with
the command that repeats it.
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
"""Most of these tests compute; a few wait."""

PARTS = (("tests/unit", "tests/corpus"), ("tests/contract",), ("tests/e2e",))
"""A round is tried in these parts, the quick ones first."""

LAWS = ("-m", "soak or law or hypothesis")


def pytest_words(*words: str) -> list[str]:
    """The words of one pytest run."""
    return ["-q", "-n", WORKERS, "--dist", "loadfile", *words]


def run(words: list[str], seed: int | None = None) -> bool:
    """Run tests, with a seed or with the fixed ones; on a failure print how to repeat them."""
    environment = {"MATCHPOD_SOAK_SEED": str(seed)} if seed is not None else {}
    status = subprocess.run([sys.executable, "-m", "pytest", *words], env={**os.environ, **environment}, check=False)
    if status.returncode != 0:
        setting = "".join(f"{name}={value} " for name, value in environment.items())
        print("\nsoak: failed. To repeat it:", flush=True)
        print(f"  {setting}.venv/bin/pytest {shlex.join(words)}")
        print("Add -k with the name of a test to repeat it alone. Keep what was found as an @example or a fixed seed.")
    return status.returncode == 0


def measure_everything() -> bool:
    """All tests that run in this process, once, and the coverage of the whole package."""
    COVERAGE_REPORT.parent.mkdir(exist_ok=True)
    COVERAGE_REPORT.unlink(missing_ok=True)
    words = ["tests/unit", "tests/contract", "tests/corpus", "tests/golden", "-m", "not soak"]
    words += ["--cov", "--cov-branch", "--cov-report=", f"--cov-report=json:{COVERAGE_REPORT}"]
    if not run(pytest_words(*words)):
        return False
    check = [sys.executable, "scripts/check_coverage.py", str(COVERAGE_REPORT)]
    return subprocess.run(check, check=False).returncode == 0


def rounds(first_seed: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Number, seed and folders of each part of each round, without end."""
    chance, seed = SystemRandom(), first_seed
    for number in count(1):
        for part in PARTS:
            yield number, seed, part
        seed = chance.randrange(1, 2**31)


def main() -> int:
    """Soak for the given time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20, help="how long to go on; default: 20")
    parser.add_argument("--seed", type=int, help="the seed of the first round; default: a random one")
    parser.add_argument("--no-coverage", action="store_true", help="begin with the rounds of laws")
    asked = parser.parse_args()
    began = time.monotonic()
    if not asked.no_coverage:
        print("soak: everything once, with coverage", flush=True)
        if not measure_everything():
            return 1
    first_seed = SystemRandom().randrange(1, 2**31) if asked.seed is None else asked.seed
    for number, seed, part in rounds(first_seed):
        minutes = (time.monotonic() - began) / 60
        if minutes >= asked.minutes:
            print(f"soak: passed in {minutes:.1f} minutes; next would be {' '.join(part)} of round {number}")
            return 0
        print(f"soak: round {number}, seed {seed}, {' '.join(part)}, {minutes:.1f} minutes so far", flush=True)
        if not run(pytest_words(f"--hypothesis-seed={seed}", *part, *LAWS), seed):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
