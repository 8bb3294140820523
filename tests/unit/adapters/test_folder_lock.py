"""Only one process at a time uses a data folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from matchpod.adapters.folder_lock import LOCK_FILE, FolderInUseError, FolderLock

HOLDER_SCRIPT = """
import sys, time
from pathlib import Path
from matchpod.adapters.folder_lock import FolderLock
lock = FolderLock.acquire(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def test_error_about_a_locked_folder_names_its_holder(tmp_path: Path) -> None:
    lock = FolderLock.acquire(tmp_path)
    with pytest.raises(FolderInUseError, match=f"process {os.getpid()} is already using") as caught:
        FolderLock.acquire(tmp_path)
    assert caught.value.pid == os.getpid()
    lock.release()
    lock.release()
    FolderLock.acquire(tmp_path).release()


def test_lock_of_a_killed_process_is_released(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER_SCRIPT, str(tmp_path)], stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(FolderInUseError) as caught:
            FolderLock.acquire(tmp_path)
        assert caught.value.pid == holder.pid
        holder.send_signal(signal.SIGKILL)
    lock = FolderLock.acquire(tmp_path)
    assert (tmp_path / LOCK_FILE).read_text() == f"{os.getpid()}\n"
    lock.release()


def test_child_process_does_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = FolderLock.acquire(tmp_path)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with child:
        lock.release()
        FolderLock.acquire(tmp_path).release()
        child.kill()


def test_holder_that_has_not_written_its_pid_is_called_another_process(tmp_path: Path) -> None:
    lock = FolderLock.acquire(tmp_path)
    (tmp_path / LOCK_FILE).write_text("")
    with pytest.raises(FolderInUseError, match="another process is already using"):
        FolderLock.acquire(tmp_path)
    lock.release()


def test_missing_folder_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FolderLock.acquire(tmp_path / "none")


def test_full_disk_leaves_no_lock_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space"):
            FolderLock.acquire(tmp_path)
    FolderLock.acquire(tmp_path).release()
