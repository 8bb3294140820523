"""Process records are stored, read and validated, and reused process ids are detected."""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path

import msgspec
import pytest

from matchpod.adapters.fleets.process_record import (
    KEPT_LOG_BYTES,
    MAX_LOG_BYTES,
    ProcessId,
    ProcessRecord,
    RecordFolder,
    identify,
    is_running,
)

RECORD = ProcessRecord(server_id="srv_1", slot="27015", process=ProcessId(12, 345, "a boot"))


def test_record_is_written_read_back_and_removed(tmp_path: Path) -> None:
    folder = RecordFolder(tmp_path / "fleet")
    assert folder.read("srv_1") is None
    assert folder.records() == []
    folder.write(RECORD)
    written = msgspec.structs.replace(RECORD, folder=str(tmp_path / "fleet"))
    assert folder.read("srv_1") == written
    assert folder.records() == [written]
    folder.remove("srv_1")
    folder.remove("srv_1")
    assert folder.records() == []


def test_records_and_output_are_for_their_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = RecordFolder(tmp_path / "fleets" / "eu")
        folder.write(RECORD)
        os.close(folder.open_log("srv_1"))
    finally:
        os.umask(before)
    paths = [tmp_path / "fleets", *(tmp_path / "fleets").rglob("*")]
    assert [path.name for path in paths if path.stat().st_mode & 0o077] == []
    assert len(paths) == 4


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"server_id": 1}', b"\xff"])
def test_damaged_record_counts_as_missing(tmp_path: Path, damage: bytes) -> None:
    folder = RecordFolder(tmp_path)
    (tmp_path / "srv_1.json").write_bytes(damage)
    assert folder.read("srv_1") is None
    assert folder.records() == []


@pytest.mark.parametrize("server_id", ["", "../srv", "a/b", "a.b", "x" * 101])
def test_server_id_that_is_not_a_safe_file_name_is_rejected(tmp_path: Path, server_id: str) -> None:
    with pytest.raises(ValueError):
        RecordFolder(tmp_path).read(server_id)


def test_process_is_identified_by_more_than_its_pid() -> None:
    ours = identify(os.getpid())
    assert ours is not None
    assert is_running(ours)
    assert not is_running(msgspec.structs.replace(ours, start_ticks=ours.start_ticks + 1))
    assert not is_running(msgspec.structs.replace(ours, boot_id="another boot"))


def test_unreadable_process_state_raises_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RecordFolder(tmp_path)
    ours = identify(os.getpid())
    assert ours is not None
    folder.write(ProcessRecord(server_id="srv_1", slot="27015", process=ours))

    def fail(*_: object, **__: object) -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Path, "read_text", fail)
    for read in (partial(identify, ours.pid), partial(is_running, ours), partial(folder.processes, "srv_1")):
        with pytest.raises(OSError, match="Too many"):
            read()
    monkeypatch.undo()
    monkeypatch.setattr(Path, "read_bytes", fail)  # of the search for marked processes
    with pytest.raises(OSError, match="Too many"):
        folder.processes("srv_2")


def test_unused_pid_identifies_no_process() -> None:
    assert identify(2**22 + 1) is None


def test_long_output_is_truncated_to_its_end(tmp_path: Path) -> None:
    folder = RecordFolder(tmp_path)
    folder.shorten_log("srv_1")
    with os.fdopen(folder.open_log("srv_1"), "ab") as server_output:
        server_output.write(b"-" * MAX_LOG_BYTES + b"end")
        server_output.flush()
        folder.shorten_log("srv_1")
        server_output.write(b" and more")
    assert (tmp_path / "srv_1.log").stat().st_size == KEPT_LOG_BYTES + len(b" and more")
    assert folder.log_tail("srv_1", 12) == b"end and more"


def test_output_of_normal_length_is_not_truncated(tmp_path: Path) -> None:
    folder = RecordFolder(tmp_path)
    (tmp_path / "srv_1.log").write_bytes(b"-" * MAX_LOG_BYTES)
    folder.shorten_log("srv_1")
    assert (tmp_path / "srv_1.log").stat().st_size == MAX_LOG_BYTES
    assert folder.log_tail("srv_2", 10) == b""
