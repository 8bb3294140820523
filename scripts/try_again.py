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
    """Return the tests that failed, from the cache folders of pytest runs; none if a run failed in another way.

    The file `exit` in a folder has the exit code of the run: 1 if tests failed, and nothing else.
    """
    failed: list[str] = []
    for cache in caches:
        code, names = cache / "exit", cache / "v" / "cache" / "lastfailed"
        if not names.is_file() or not code.is_file() or code.read_text("utf-8").strip() != "1":
            return []
        failed += json.loads(names.read_text("utf-8"))
    return failed


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
