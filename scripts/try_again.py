"""Run tests that failed beside all others again, alone; those that pass now are reported as unsteady.

For CI only, whose machines may be slow and shared: many tests start processes and wait for them, while others use all
cores. A fault fails again. An unsteady test must be mended like any other, but a change need not wait for it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MAX_TESTS = 3
"""If more tests have failed, it is no accident."""


def failed_tests(caches: Sequence[Path]) -> list[str]:
    """Return the tests that failed, from the cache folders of pytest runs."""
    files = [cache / "v" / "cache" / "lastfailed" for cache in caches]
    return sorted(name for file in files if file.is_file() for name in json.loads(file.read_text("utf-8")))


def main(pytest: Sequence[str], caches: Sequence[Path]) -> int:
    """Run the failed tests with this command; return 0 if all of them pass."""
    failed = failed_tests(caches)
    if not 0 < len(failed) <= MAX_TESTS:
        return 1
    print(f"{len(failed)} tests failed beside the others; trying them again, alone", flush=True)
    status = subprocess.run([*pytest, *failed], check=False).returncode
    for name in failed if status == 0 else ():
        print(f"unsteady, mend it: {name}")
    return min(status, 1)


if __name__ == "__main__":
    sys.exit(main([".venv/bin/pytest", "--quiet", "-n", "0"], [Path(argument) for argument in sys.argv[1:]]))
