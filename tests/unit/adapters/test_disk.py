from __future__ import annotations

import shutil
from pathlib import Path

from matchpod.adapters.disk import free_bytes


def test_free_space_of_a_folder_that_does_not_exist_yet_is_that_of_its_parent(tmp_path: Path) -> None:
    expected = shutil.disk_usage(tmp_path).free
    for folder in (tmp_path, tmp_path / "fleets" / "eu"):
        assert abs(free_bytes(folder) - expected) < expected / 2 + 1, "other programs write to the disk too"
