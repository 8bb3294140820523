"""The code of the last release, from the history of this repository: upgrades are tried with both versions.

It runs in the environment of this checkout, which must have all its dependencies.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = "0.3.0"
COMMIT = "ec90fc1971e99766a72916004e89ebe35e725186"
SKIPPED = f"the commit of version {VERSION} is not in this checkout: fetch the whole history to try an upgrade"


class NoHistoryError(Exception):
    """The checkout has no git history, or not all of it."""


def extract(folder: Path) -> dict[str, str]:
    """Write the code of the last release into a folder; return the variables with which Python runs it."""
    command = ("git", "-C", str(ROOT), "archive", COMMIT, "src", "packages")
    try:
        done = subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as exc:
        raise NoHistoryError(SKIPPED) from exc
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    sources = (folder / "src", *sorted(folder.glob("packages/*/src")))
    return {"PYTHONPATH": ":".join(map(str, sources))}
