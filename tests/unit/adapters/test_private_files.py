"""Others have no access to the data folder, whatever the umask is and whatever earlier versions left there."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from matchpod.adapters.private_files import (
    SharedFolderError,
    create_folder,
    is_open_to_others,
    make_data_folder,
    open_private,
)


@pytest.fixture
def _no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("_no_umask")
def test_new_folders_and_files_are_for_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "data"
    assert make_data_folder(folder) == []
    create_folder(folder / "fleets" / "eu")
    os.close(open_private(folder / "file", os.O_WRONLY))
    assert {mode(path) for path in (tmp_path / "a").rglob("*") if path.is_dir()} | {mode(tmp_path / "a")} == {0o700}
    assert mode(folder / "file") == 0o600


def test_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "data"):
        with pytest.raises(OSError, match=r"File exists|Not a directory"):
            make_data_folder(folder)


@pytest.mark.usefixtures("_no_umask")
def test_data_folder_of_an_earlier_version_is_corrected_once(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "fleets" / "eu").mkdir(parents=True)
    own = ["matchpod.sqlite3", "matchpod.sqlite3-wal", "matchpod.lock", "secret.key", "fleets/eu/srv_1.log"]
    for name in [*own, "backup.tar", "matchpod.toml"]:
        (folder / name).touch()
    (folder / "matchpod.sqlite3-shm").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").touch()
    changed = make_data_folder(folder)
    assert set(changed) == {folder, folder / "fleets", folder / "fleets" / "eu", *(folder / name for name in own)}
    assert {mode(path) for path in changed if path.is_dir()} == {0o700}
    assert {mode(path) for path in changed if path.is_file()} == {0o600}
    assert mode(tmp_path / "elsewhere") == mode(folder / "backup.tar") == mode(folder / "matchpod.toml") == 0o666, (
        "not ours, and out of reach"
    )
    assert make_data_folder(folder) == []


def test_empty_folder_that_others_can_read_is_corrected(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert make_data_folder(tmp_path) == [tmp_path]
    assert mode(tmp_path) == 0o700


@pytest.mark.parametrize(
    ("bits", "name", "message"),
    [
        (0o755, "report.doc", "contains files that are not Matchpod's.* or run: chmod 700 /"),
        (0o1777, "matchpod.sqlite3", "is a folder for all users; use a new folder for Matchpod only$"),
    ],
)
def test_folder_that_others_use_is_not_changed(tmp_path: Path, bits: int, name: str, message: str) -> None:
    (tmp_path / name).touch(0o644)
    tmp_path.chmod(bits)
    with pytest.raises(SharedFolderError, match=f"^{message}"):
        make_data_folder(tmp_path)
    assert mode(tmp_path) == bits
    assert mode(tmp_path / name) & 0o044


def test_folder_of_another_user_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "matchpod.sqlite3").touch()
    tmp_path.chmod(0o750)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(SharedFolderError, match=r"^belongs to another user \(uid \d+\), and other users can access it"):
        make_data_folder(tmp_path)
    assert mode(tmp_path) == 0o750


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that all users can enter, unlike pytest's temporary folders."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize(
    ("mode", "is_open"), [(0o644, True), (0o604, True), (0o602, True), (0o640, False), (0o600, False), (0o661, False)]
)
def test_file_is_open_if_all_users_can_read_or_change_it(open_folder: Path, mode: int, *, is_open: bool) -> None:
    file = open_folder / "file"
    file.touch()
    file.chmod(mode)
    assert is_open_to_others(file) is is_open
    link = open_folder / "link"
    link.symlink_to(file)
    assert is_open_to_others(link) is is_open


def test_file_in_a_closed_folder_is_not_open(open_folder: Path) -> None:
    file = open_folder / "closed" / "inner" / "file"
    file.parent.mkdir(parents=True)
    file.touch()
    file.chmod(0o644)
    for folder in (file.parent, file.parent.parent):
        folder.chmod(0o755)
    assert is_open_to_others(file)
    (open_folder / "closed").chmod(0o700)
    assert not is_open_to_others(file)
    assert not is_open_to_others(open_folder / "none")
