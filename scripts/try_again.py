"""Run failed tests again, without other tests. A test that passes this time is flaky ("unsteady"), and must be fixed.

This is only for CI, because its machines may be slow and shared. A single failure is accepted only if
tests/unsteady.txt lists the test with the known facts about the cause. Otherwise a race that fails in one of ten runs
would never be fixed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "unsteady.txt"

MAX_TESTS = 3
"""Maximum number of failed tests that are run again: more failures are not chance. It is also the maximum number
of listed tests: the tests of a longer list would never be fixed."""


def read_list(text: str) -> dict[str, str]:
    """Return the listed tests, each with what is known about the cause."""
    rows = [line.partition(" # ") for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {name.strip(): cause.strip() for name, _, cause in rows}


def list_faults(listed: Mapping[str, str], root: Path) -> list[str]:
    """Return the errors in the list: too many tests, an unknown test, or a test without a cause."""
    faults = [f"at most {MAX_TESTS} tests may be listed: fix one"] if len(listed) > MAX_TESTS else []
    for name, cause in listed.items():
        file, _, test = name.partition("::")
        path = root / file
        if not path.is_file() or f"def {test.partition('[')[0]}(" not in path.read_text("utf-8"):
            faults.append(f"{name}: there is no such test")
        if not cause:
            faults.append(f"{name}: say what is known of the cause")
    return faults


def failed_tests(cache: Path) -> list[str]:
    """Return the failed tests from the cache folder of a pytest run, or an empty list if the run itself failed.

    The file `exit` in the folder has the exit code of the run. It is 1 if tests failed, and another code for other
    failures.
    """
    code, names = cache / "exit", cache / "v" / "cache" / "lastfailed"
    if not names.is_file() or not code.is_file() or code.read_text("utf-8").strip() != "1":
        return []
    return list(json.loads(names.read_text("utf-8")))


def try_again(pytest: Sequence[str], cache: Path, listed: Mapping[str, str]) -> int:
    """Run the failed tests with the command `pytest`. Return 0 if all of them are listed and pass."""
    failed = failed_tests(cache)
    if not 0 < len(failed) <= MAX_TESTS:
        return 1
    print(f"{len(failed)} tests failed; running them again, alone", flush=True)
    if subprocess.run([*pytest, *failed], check=False).returncode != 0:
        return 1
    unlisted = [name for name in failed if name not in listed]
    for name in failed:
        print(f"unsteady: {name} # {listed.get(name, 'not listed')}")
    for name in unlisted:
        print(f"passes alone. Fix it, or commit this line in tests/unsteady.txt:\n{name} # what is known of the cause")
    return 1 if unlisted else 0


def main(arguments: Sequence[str]) -> int:
    """Check the list, or run the failed tests from this cache folder again."""
    listed = read_list(LIST.read_text("utf-8"))
    if list(arguments) != ["--check"]:
        return try_again([".venv/bin/pytest", "--quiet", "-n", "0"], Path(*arguments), listed)
    faults = list_faults(listed, ROOT)
    for fault in faults:
        print(f"tests/unsteady.txt: {fault}")
    print(f"unsteady tests: {len(listed)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
