"""Files of other projects are what their packages contain."""

from __future__ import annotations

import hashlib
import re
from importlib import resources


def test_files_have_the_checksums_in_the_table() -> None:
    folder = resources.files("matchpod.console") / "assets"
    rows = re.findall(r"^\| (\S+\.js) \|.*\| ([0-9a-f]{64}) \|$", (folder / "VENDORED.md").read_text(), re.MULTILINE)
    vendored = {one.name for one in folder.iterdir() if one.name.endswith(".min.js")}
    assert {name for name, _ in rows} == vendored
    for name, digest in rows:
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name
