"""Tests of the record of the entry in progress: it outlives the process, and is read only after its death."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from matchpod.adapters.begun_entry import SUFFIX, BegunEntryFile, records_of_dead_processes

DIES_WHILE_APPLYING = """
import os, pathlib, signal, sys
from matchpod.adapters.begun_entry import BegunEntryFile
begun = BegunEntryFile(pathlib.Path(sys.argv[1]))
begun.mark("srv_a_much_longer_name", 123456)
begun.clear()
if len(sys.argv) > 2:
    begun.mark(sys.argv[2], 12)
os.kill(os.getpid(), signal.SIGKILL)
"""


def die(folder: Path, *server_id: str) -> None:
    subprocess.run([sys.executable, "-c", DIES_WHILE_APPLYING, str(folder), *server_id], check=False)


def test_entry_of_a_killed_process_is_known(tmp_path: Path) -> None:
    die(tmp_path, "srv_1")
    assert list(records_of_dead_processes(tmp_path).values()) == [("srv_1", 12)]


def test_process_killed_between_entries_blames_none(tmp_path: Path) -> None:
    die(tmp_path)
    assert list(records_of_dead_processes(tmp_path).values()) == [None]


def test_record_of_a_live_process_is_not_read(tmp_path: Path) -> None:
    begun = BegunEntryFile(tmp_path)
    begun.mark("srv_1", 7)
    assert records_of_dead_processes(tmp_path) == {}
    begun.close()
    assert list(tmp_path.iterdir()) == []


def test_damaged_record_blames_none(tmp_path: Path) -> None:
    (tmp_path / f"1{SUFFIX}").write_bytes(b"srv_1 \x00\xff")
    (tmp_path / f"2{SUFFIX}").write_bytes(b"")
    assert list(records_of_dead_processes(tmp_path).values()) == [None, None]


def test_record_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    begun = BegunEntryFile(tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    begun.close()
