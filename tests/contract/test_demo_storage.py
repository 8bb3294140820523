"""Demos are stored whole or kept apart, in a folder and in a bucket of an S3 server (moto's, a stand-in)."""

from __future__ import annotations

import asyncio
import os
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest

from matchpod.adapters.demo_storage import folder as folder_module
from matchpod.adapters.demo_storage import s3 as s3_module
from matchpod.adapters.demo_storage.folder import FolderStorage
from matchpod.adapters.demo_storage.s3 import S3Storage
from matchpod.ports import DemoStorage, StorageError, StorageFullError
from tests.s3_server import BUCKET, CREDENTIALS, s3_server

KEY = "org_1/srv_1/abc-map.dem"
FAR_MS = 4_000_000_000_000


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
def s3(s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> S3Storage:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return S3Storage(BUCKET, f"/{tmp_path.name}/", endpoint=s3_url, region="us-east-1", spool=tmp_path / "parts")


@pytest.fixture(params=["folder", "s3"])
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DemoStorage]:
    opened: DemoStorage = (
        FolderStorage(tmp_path / "demos") if request.param == "folder" else request.getfixturevalue("s3")
    )
    assert await opened.check() is None
    yield opened
    await opened.close()


async def content(storage: DemoStorage, start: int = 0, size: int | None = None) -> bytes | None:
    """Return what callers download; None if there is nothing."""
    pieces = storage.read(KEY, start, 10 if size is None else size)
    if pieces is not None:
        try:
            return b"".join([piece async for piece in pieces])
        except FileNotFoundError:
            return None
    url = await storage.link(KEY, file_name="map.dem", expires_s=60)
    assert url is not None
    wanted = {} if size is None else {"Range": f"bytes={start}-{start + size - 1}"}

    def download() -> bytes | None:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=wanted)) as answer:
                body: bytes = answer.read()
                return body
        except urllib.error.HTTPError as exc:
            with exc:
                if exc.code in (403, 404):  # services differ about what may be known of a file that is missing
                    return None
            raise

    return await asyncio.to_thread(download)


async def test_file_is_available_once_it_is_committed(storage: DemoStorage) -> None:
    writer = await storage.create(KEY)
    await writer.write(b"01234")
    await writer.write(b"56789")
    assert await content(storage) is None
    await writer.commit()
    assert await content(storage) == b"0123456789"
    assert await content(storage, 3, 4) == b"3456"
    await storage.delete(KEY)
    await storage.delete(KEY)
    assert await content(storage) is None


async def test_cut_file_is_kept_apart(storage: DemoStorage) -> None:
    writer = await storage.create(KEY)
    await writer.write(b"01234")
    assert await writer.keep_cut()
    assert await content(storage) is None
    kept = storage.read(f"{KEY}.part", 0, 5)
    if kept is None:
        assert await storage.link(f"{KEY}.part", file_name="x", expires_s=9)
    else:
        assert b"".join([piece async for piece in kept]) == b"01234"
    await storage.delete(KEY)
    if (gone := storage.read(f"{KEY}.part", 0, 5)) is not None:
        with pytest.raises(FileNotFoundError):
            await anext(gone)


async def test_discarded_file_leaves_nothing(storage: DemoStorage, tmp_path: Path) -> None:
    writer = await storage.create(KEY)
    await writer.write(b"01234")
    await writer.discard()
    assert await content(storage) is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert await storage.clean_up(FAR_MS) == 0


async def test_cancelled_write_is_over_before_its_file_is_closed(storage: DemoStorage) -> None:
    writer = await storage.create(KEY)
    task = asyncio.create_task(writer.write(b"x" * 1_000_000))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await writer.discard()


async def test_committed_file_is_closed_once(storage: DemoStorage, tmp_path: Path) -> None:
    writer = await storage.create(KEY)
    await writer.write(b"0123456789")
    await writer.commit()
    with (tmp_path / "other").open("wb") as other:  # has the number that the file had
        await writer.keep_cut()
        os.fstat(other.fileno())


# --- the folder ---------------------------------------------------------------------------------------------------


async def test_key_never_leaves_the_folder(tmp_path: Path) -> None:
    for key in ("../x", "a//b", "/etc/x", "a/./b", ""):
        with pytest.raises(ValueError, match="invalid storage key"):
            await FolderStorage(tmp_path).create(key)


async def test_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = await FolderStorage(tmp_path).create(KEY)
    await writer.keep_cut()
    with open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr(writer, "_file", full.fileno())
        with pytest.raises(StorageFullError):
            await writer.write(b"x")


async def test_folder_that_cannot_be_made_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert str(await FolderStorage(tmp_path / "file" / "demos").check()).startswith("The folder for demos")


async def test_file_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "PIECE_BYTES", 4)
    storage = FolderStorage(tmp_path)
    writer = await storage.create(KEY)
    await writer.write(b"0123456789")
    await writer.commit()
    assert [piece async for piece in storage.read(KEY, 1, 8)] == [b"1234", b"5678"]
    with pytest.raises(StorageError, match="shorter"):
        _ = [piece async for piece in storage.read(KEY, 1, 99)]


# --- S3 -----------------------------------------------------------------------------------------------------------


async def test_large_file_is_sent_in_parts(s3: S3Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_module, "PART_BYTES", 5 * 1024 * 1024)
    body = os.urandom(6 * 1024 * 1024)
    writer = await s3.create(KEY)
    for start in range(0, len(body), 1024 * 1024):
        await writer.write(body[start : start + 1024 * 1024])
    await writer.commit()
    assert await content(s3, 0, len(body)) == body
    assert list((tmp_path / "parts").iterdir()) == []


async def test_part_that_is_sent_while_its_upload_is_cut_is_kept(
    s3: S3Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_module, "PART_BYTES", 5 * 1024 * 1024)
    first, second, call, go = os.urandom(5 * 1024 * 1024), os.urandom(5 * 1024 * 1024), s3.call, asyncio.Event()

    async def slow(operation: str, **params: object) -> Mapping[str, object]:
        if operation == "upload_part":
            await go.wait()
        return await call(operation, **params)

    monkeypatch.setattr(s3, "call", slow)
    writer = await s3.create(KEY)
    await writer.write(first)
    waiting = asyncio.create_task(writer.write(second))  # waits until the part before was sent
    await asyncio.sleep(0.5)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    go.set()
    await writer.commit()
    assert await content(s3, 0, 2 * len(first)) == first + second


async def test_upload_that_never_ended_is_cleaned_up(s3: S3Storage) -> None:
    writer = await s3.create(KEY)
    await writer.write(b"01234")
    assert await s3.clean_up(0) == 0
    assert await s3.clean_up(FAR_MS) == 1
    with pytest.raises(StorageError):
        await writer.commit()


async def test_missing_bucket_is_a_fault_and_an_unreachable_service_is_not(
    s3: S3Storage, s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = S3Storage("other", "", endpoint=s3_url, region="us-east-1", spool=tmp_path)
    assert str(await wrong.check()) == "The storage of demos cannot be used: the S3 service answered 404 (404)."
    monkeypatch.setattr(s3_module, "ATTEMPTS", 1)
    unreachable = S3Storage(BUCKET, "", endpoint="http://127.0.0.1:1", region="us-east-1", spool=tmp_path)
    assert await unreachable.check() is None
    with pytest.raises(StorageError):
        await unreachable.create(KEY)


async def test_missing_credentials_are_a_fault(s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CREDENTIALS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    storage = S3Storage(BUCKET, "", endpoint=s3_url, region="us-east-1", spool=tmp_path)
    assert "no credentials for S3 were found" in str(await storage.check())
