"""Run the tests with random seeds, in real time and in large numbers, for as long as told.

First all tests once, with the coverage of everything; then, until the time is over, rounds of those that try laws, each
round with another seed. Ends at the first failure with the command that repeats it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from random import SystemRandom

COVERAGE_REPORT = Path("build/coverage-all.json")
WORKERS = "4"
"""Most of these tests compute; a few wait."""


def pytest_words(seed: int, *words: str) -> list[str]:
    """The command of one run; without workers, what it finds is repeated in order."""
    common = ["-q", "-n", WORKERS, "--dist", "loadfile", f"--hypothesis-seed={seed}"]
    return [sys.executable, "-m", "pytest", *common, *words]


def run(seed: int, *words: str) -> bool:
    """Run tests with this seed; on a failure print how to repeat them."""
    command = pytest_words(seed, *words)
    status = subprocess.run(command, env={**os.environ, "MATCHPOD_SOAK_SEED": str(seed)}, check=False).returncode
    if status != 0:
        shown = " ".join(f"'{word}'" if " " in word else word for word in command[3:])
        print(f"\nsoak: failed with seed {seed}. To repeat it:", flush=True)
        print(f"  MATCHPOD_SOAK_SEED={seed} .venv/bin/pytest {shown}")
        print("Add -k with the name of a test to repeat it alone. Keep what was found as an @example or a fixed seed.")
    return status == 0


def measure_everything(seed: int) -> bool:
    """All tests that run in this process, once, and the coverage of the whole package."""
    COVERAGE_REPORT.parent.mkdir(exist_ok=True)
    COVERAGE_REPORT.unlink(missing_ok=True)
    words = ["tests/unit", "tests/contract", "tests/corpus", "tests/golden", "-m", "not soak"]
    words += ["--cov", "--cov-branch", "--cov-report=", f"--cov-report=json:{COVERAGE_REPORT}"]
    if not run(seed, *words):
        return False
    check = [sys.executable, "scripts/check_coverage.py", str(COVERAGE_REPORT)]
    return subprocess.run(check, check=False).returncode == 0


def main() -> int:
    """Soak for the given time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20, help="how long to go on; default: 20")
    parser.add_argument("--seed", type=int, help="the seed of the first round; default: a random one")
    parser.add_argument("--no-coverage", action="store_true", help="begin with the rounds of laws")
    asked = parser.parse_args()
    began, chance = time.monotonic(), SystemRandom()
    seed = chance.randrange(1, 2**31) if asked.seed is None else asked.seed
    if not asked.no_coverage:
        print(f"soak: everything once, with coverage, seed {seed}", flush=True)
        if not measure_everything(seed):
            return 1
    number = 0
    while number == 0 or time.monotonic() - began < asked.minutes * 60:
        number += 1
        print(f"soak: round {number}, seed {seed}, {(time.monotonic() - began) / 60:.1f} minutes so far", flush=True)
        if not run(seed, "tests", "-m", "soak or law or hypothesis"):
            return 1
        seed = chance.randrange(1, 2**31)
    print(f"soak: {number} rounds passed in {(time.monotonic() - began) / 60:.1f} minutes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
