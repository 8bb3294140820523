"""Backups: one file with the state of one moment, written completely or not at all."""

from __future__ import annotations

import io
import sqlite3
import tarfile
import threading
from contextlib import closing
from pathlib import Path

import pytest

from matchpod.adapters.backup_file import BackupError, BackupInputError, restore_backup, write_backup
from matchpod.adapters.database_place import PLACE_FILE

DATABASE, KEY = "matchpod.sqlite3", "secret.key"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder: a database in WAL mode, and a key."""
    made = tmp_path / "data"
    made.mkdir()
    with closing(sqlite3.connect(made / DATABASE)) as db, db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE pairs (one INTEGER, other INTEGER)")
    (made / KEY).write_bytes(b"k" * 32)
    return made


def back_up(folder: Path, target: Path, *, may_replace: bool = False) -> None:
    write_backup(folder / DATABASE, folder / KEY, target, mark=lambda _: [], may_replace=may_replace)


def restored(source: Path) -> Path:
    folder = source.with_name(f"{source.name}-restored")
    folder.mkdir()
    restore_backup(source, folder / DATABASE, folder / KEY)
    return folder


def test_database_and_key_are_restored_for_their_owner_only(folder: Path, tmp_path: Path) -> None:
    back_up(folder, tmp_path / "file")
    found = restored(tmp_path / "file")
    assert (found / KEY).read_bytes() == b"k" * 32
    assert {path.name for path in found.iterdir()} == {DATABASE, KEY, PLACE_FILE}
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "file", *found.iterdir())} == {0o600}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_backup_of_a_database_in_use_is_the_state_of_one_moment(folder: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(folder / DATABASE)) as db, db:
        db.executemany("INSERT INTO pairs VALUES (?, ?)", [(0, 0)] * 20_000)
    writing, stop = threading.Event(), threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(folder / DATABASE, timeout=60)) as db:
            number = 0
            while not stop.is_set():
                number += 1
                with db:
                    db.execute("UPDATE pairs SET one = ?", (number,))
                    db.execute("UPDATE pairs SET other = ?", (number,))
                writing.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert writing.wait(60)
        parts: list[float] = []
        target = tmp_path / "file"
        write_backup(folder / DATABASE, None, target, mark=lambda _: [], on_progress=parts.append, step_pages=5)
    finally:
        stop.set()
        thread.join()
    assert parts == sorted(parts), "no commit of the service starts the copy again"
    assert (len(parts) > 3, parts[-1]) == (True, 1.0)
    with closing(sqlite3.connect(restored(tmp_path / "file") / DATABASE)) as db:
        ((count, least, most, differing),) = db.execute(
            "SELECT COUNT(*), MIN(one), MAX(one), SUM(one <> other) FROM pairs"
        )
    assert (count, least == most, differing) == (20_000, True, 0)


def test_existing_file_is_replaced_only_on_request(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("before")
    with pytest.raises(BackupInputError, match=r"exists\. Use --force"):
        back_up(folder, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "before"
    back_up(folder, tmp_path / "file", may_replace=True)
    assert (restored(tmp_path / "file") / DATABASE).exists()


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("none/file", "There is no folder"),
        ("data", "is a folder"),
        (f"data/{DATABASE}", "belongs to the service"),
        (f"data/{KEY}", "belongs to the service"),
    ],
)
def test_target_that_cannot_be_used_is_rejected(folder: Path, tmp_path: Path, name: str, fault: str) -> None:
    before = (folder / DATABASE).read_bytes()
    with pytest.raises(BackupInputError, match=fault):
        back_up(folder, tmp_path / name, may_replace=True)
    assert (folder / DATABASE).read_bytes() == before


def test_full_disk_is_reported_and_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "file").write_text("before")
    monkeypatch.setattr(tarfile.TarFile, "addfile", fail)
    with pytest.raises(BackupError, match=r"file cannot be written: No space left on device\.$"):
        back_up(folder, tmp_path / "file", may_replace=True)
    assert (tmp_path / "file").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "file"]


def test_file_that_is_not_a_database_is_reported(folder: Path, tmp_path: Path) -> None:
    (folder / DATABASE).write_bytes(b"no database" * 1000)
    with pytest.raises(BackupError, match="file is not a database"):
        back_up(folder, tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_backup_is_restored_only_into_an_empty_folder(folder: Path, tmp_path: Path) -> None:
    back_up(folder, tmp_path / "file")
    with pytest.raises(BackupInputError, match="is not empty"):
        restore_backup(tmp_path / "file", folder / DATABASE, folder / KEY)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "matchpod.toml").write_text("port = 1")
    restore_backup(tmp_path / "file", tmp_path / "new" / DATABASE, tmp_path / "new" / KEY)
    assert (tmp_path / "new" / "matchpod.toml").read_text() == "port = 1"


@pytest.mark.parametrize("size", [0, 5, 1000, 4000, 9000])
def test_truncated_backup_restores_nothing(folder: Path, tmp_path: Path, size: int) -> None:
    back_up(folder, tmp_path / "file")
    (tmp_path / "part").write_bytes((tmp_path / "file").read_bytes()[:size])
    with pytest.raises(BackupError, match="part"):
        restored(tmp_path / "part")
    assert list((tmp_path / "part-restored").iterdir()) == []


def test_damaged_database_is_not_restored(folder: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(folder / DATABASE)) as db, db:
        db.executemany("INSERT INTO pairs VALUES (?, ?)", [(0, 0)] * 5_000)
    back_up(folder, tmp_path / "file")
    content = bytearray((tmp_path / "file").read_bytes())
    begin = content.index(b"SQLite format 3") + 2 * 4096
    content[begin : begin + 20_000] = b"\xff" * 20_000
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(BackupError, match=r"damaged|malformed"):
        restored(tmp_path / "file")
    assert list((tmp_path / "file-restored").iterdir()) == []


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "fleets/evil", "matchpod.toml"])
def test_only_known_files_are_restored(folder: Path, tmp_path: Path, name: str) -> None:
    back_up(folder, tmp_path / "file")
    with tarfile.open(tmp_path / "file", "a") as tar:
        tar.addfile(tarfile.TarInfo(name), io.BytesIO())
        link = tarfile.TarInfo(KEY)
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    found = restored(tmp_path / "file")
    assert {path.name for path in found.iterdir()} == {DATABASE, KEY, PLACE_FILE}
    assert (found / KEY).read_bytes() == b"k" * 32
    assert not (tmp_path / "evil").exists()


def test_other_tar_files_are_rejected(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "file", "w") as tar:
        tar.addfile(tarfile.TarInfo("photo.jpg"), io.BytesIO())
    with pytest.raises(BackupInputError, match="is not a backup of Matchpod"):
        restored(tmp_path / "file")
