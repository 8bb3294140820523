"""One process a data folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from matchpod.adapters.folder_lock import LOCK_FILE, FolderLock, FolderTakenError

HOLD = """
import sys, time
from pathlib import Path
from matchpod.adapters.folder_lock import FolderLock
lock = FolderLock.take(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def test_a_taken_folder_names_its_holder(tmp_path: Path) -> None:
    lock = FolderLock.take(tmp_path)
    with pytest.raises(FolderTakenError, match=f"process {os.getpid()} is already using") as caught:
        FolderLock.take(tmp_path)
    assert caught.value.pid == os.getpid()
    lock.release()


def test_a_released_folder_can_be_taken_again(tmp_path: Path) -> None:
    lock = FolderLock.take(tmp_path)
    lock.release()
    lock.release()
    FolderLock.take(tmp_path).release()


def test_the_lock_of_a_killed_process_is_gone(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(FolderTakenError) as caught:
            FolderLock.take(tmp_path)
        assert caught.value.pid == holder.pid
        holder.send_signal(signal.SIGKILL)
    lock = FolderLock.take(tmp_path)
    assert (tmp_path / LOCK_FILE).read_text() == f"{os.getpid()}\n"
    lock.release()


def test_a_child_does_not_hold_the_lock(tmp_path: Path) -> None:
    lock = FolderLock.take(tmp_path)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with child:
        lock.release()
        FolderLock.take(tmp_path).release()
        child.kill()


def test_a_holder_without_a_number_is_another_process(tmp_path: Path) -> None:
    lock = FolderLock.take(tmp_path)
    (tmp_path / LOCK_FILE).write_text("")
    with pytest.raises(FolderTakenError, match="another process is already using"):
        FolderLock.take(tmp_path)
    lock.release()


def test_a_folder_that_does_not_exist_is_the_system_s_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FolderLock.take(tmp_path / "none")


def test_a_full_disk_leaves_no_lock_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space"):
            FolderLock.take(tmp_path)
    FolderLock.take(tmp_path).release()
