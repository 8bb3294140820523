"""Find promtool and Prometheus for tests; a test is skipped if they cannot be had.

Installed ones are used. `make soak` unpacks Debian's package into `build/prometheus`, without installing it; other runs
use it once it is there.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.effort import IS_SOAK

FOLDER = Path(__file__).resolve().parents[2] / "build" / "prometheus"
DOWNLOAD_S = 120


def find_program(name: str) -> str:
    """Return the path of `prometheus` or `promtool`."""
    if found := shutil.which(name):
        return found
    program = FOLDER / name
    if not program.is_file():
        if not IS_SOAK:
            pytest.skip(f"{name} is not installed here; `make soak` fetches it.")
        _fetch()
    return str(program)


def _fetch() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if (FOLDER / "promtool").is_file():
            return
        _run(["apt-get", "download", "--quiet", "prometheus"], folder)
        (package,) = Path(folder).glob("*.deb")
        _run(["dpkg", "-x", str(package), folder], folder)
        for name in ("prometheus", "promtool"):
            (Path(folder) / "usr" / "bin" / name).rename(FOLDER / name)


def _run(command: list[str], folder: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=DOWNLOAD_S)
    except (OSError, subprocess.TimeoutExpired) as exc:
        pytest.skip(f"Prometheus cannot be had here: {exc}")
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
        pytest.skip(f"Prometheus cannot be had here: {reason}")
