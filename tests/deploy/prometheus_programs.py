"""Find promtool and Prometheus for tests; a test is skipped if they cannot be had.

Installed ones are used. `make soak` unpacks Debian's packages into `build/prometheus`, without installing them; other
runs use them once they are there. `promtool-3` is that of Prometheus 3.5, from a later release of Debian: its ranges do
not contain their first moment.
"""

from __future__ import annotations

import fcntl
import lzma
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import httpx
import pytest

from tests.effort import IS_SOAK

FOLDER = Path(__file__).resolve().parents[2] / "build" / "prometheus"
DEBIAN = "http://deb.debian.org/debian"
LATER = f"{DEBIAN}/dists/forky/main"
DOWNLOAD_S = 120
PROMTOOLS = ("promtool", "promtool-3")


def find_program(name: str) -> str:
    """Return the path of `prometheus`, `promtool` or `promtool-3`."""
    if found := shutil.which(name):
        return found
    program = FOLDER / name
    if not program.is_file():
        if not IS_SOAK:
            pytest.skip(f"{name} is not installed here; `make soak` fetches it.")
        _fetch(name)
    return str(program)


def _fetch(name: str) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if (FOLDER / name).is_file():
            return
        if name == "promtool-3":
            _download_later_promtool(Path(folder))
        else:
            _run(["apt-get", "download", "--quiet", "prometheus"], folder)
        (package,) = Path(folder).glob("*.deb")
        _run(["dpkg", "-x", str(package), folder], folder)
        for program in [name] if name == "promtool-3" else ["prometheus", "promtool"]:
            (Path(folder) / "usr" / "bin" / program.removesuffix("-3")).rename(FOLDER / program)


def _download_later_promtool(folder: Path) -> None:
    architecture = _run(["dpkg", "--print-architecture"], str(folder)).strip()
    try:
        with httpx.Client(timeout=DOWNLOAD_S) as client:
            packages = client.get(f"{LATER}/binary-{architecture}/Packages.xz").raise_for_status().content
            (path,) = re.findall(
                r"^Filename: (\S+/promtool_\S+\.deb)$", lzma.decompress(packages).decode(), re.MULTILINE
            )
            (folder / "promtool.deb").write_bytes(client.get(f"{DEBIAN}/{path}").raise_for_status().content)
    except httpx.HTTPError as exc:
        pytest.skip(f"Prometheus 3 cannot be had here: {exc}")


def _run(command: list[str], folder: str) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=DOWNLOAD_S)
    except (OSError, subprocess.TimeoutExpired) as exc:
        pytest.skip(f"Prometheus cannot be had here: {exc}")
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
        pytest.skip(f"Prometheus cannot be had here: {reason}")
    return done.stdout
