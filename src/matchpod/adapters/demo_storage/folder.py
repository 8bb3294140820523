"""Store demos in a folder of this machine.

During an upload, the file is named after its key with the suffix `.part`; when it is complete, the suffix is removed.
So a file without the suffix is never incomplete, even after a crash. If an upload is interrupted, its file keeps the
suffix.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

from matchpod.adapters.demo_storage.file_work import FileWork, storage_error
from matchpod.adapters.disk import free_bytes
from matchpod.ports import DemoStorage, DemoWriter, StorageError

PIECE_BYTES: Final = 256 * 1024
"""Number of bytes per read. It is large, because each read runs in a thread."""
PART: Final = ".part"


class FolderStorage(DemoStorage):
    """Stores demos as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def is_shared(self) -> bool:
        """Return False, because other machines cannot read the folder."""
        return False

    async def check(self) -> str | None:
        """Create the folder if needed; return why it cannot be written, or None if it can."""

        def try_folder() -> str | None:
            try:
                self._folder.mkdir(mode=0o750, parents=True, exist_ok=True)
            except OSError as exc:
                return f"The folder for demos {self._folder} cannot be created: {exc.strerror or exc}."
            if os.access(self._folder, os.W_OK | os.X_OK):
                return None
            return f"The folder for demos {self._folder} cannot be written by this process."

        return await asyncio.to_thread(try_folder)

    async def create(self, key: str) -> DemoWriter:
        writer = _FolderWriter(self._path(key))
        try:
            await writer.open()
        except asyncio.CancelledError:
            await writer.discard()
            raise
        return writer

    def read(self, key: str, start: int, size: int) -> AsyncIterator[bytes]:
        return _pieces(self._path(key), start, size)

    async def link(self, key: str, *, file_name: str, expires_s: int) -> None:
        """Return None, because callers read files through the service."""

    async def delete(self, key: str) -> None:
        path = self._path(key)

        def delete() -> None:
            for file in (path, _part_of(path)):
                file.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # fails if the folder has other files
                path.parent.rmdir()

        await FileWork().run(delete)

    async def clean_up(self, before_ms: int) -> int:
        """Do nothing, because the incomplete file of an upload is deleted together with its demo."""
        return 0

    async def free_bytes(self) -> int | None:
        return await FileWork().run(partial(free_bytes, self._folder))

    async def close(self) -> None:
        """Do nothing, because there is no connection."""

    def _path(self, key: str) -> Path:
        if any(part in ("", ".", "..") for part in key.split("/")):
            raise ValueError(f"invalid storage key of a demo: {key}")
        return self._folder / key


class _FolderWriter(DemoWriter):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._work = FileWork()

    async def open(self) -> None:
        def create() -> None:
            self._path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            self._file = os.open(_part_of(self._path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)

        await self._work.run(create)

    async def write(self, part: bytes) -> None:
        def write() -> None:
            rest = memoryview(part)
            while rest:
                rest = rest[os.write(self._file, rest) :]

        await self._work.run(write)

    async def commit(self) -> None:
        def commit() -> None:
            os.fsync(self._file)
            _part_of(self._path).rename(self._path)
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
            self._close()

        await self._work.run(commit)

    async def keep_cut(self) -> bool:
        await self._work.run(self._close)
        return True

    async def discard(self) -> None:
        def discard() -> None:
            self._close()
            for file in (_part_of(self._path), self._path):  # a commit may have failed after the rename
                with contextlib.suppress(OSError):
                    file.unlink(missing_ok=True)

        await self._work.run(discard)

    def _close(self) -> None:
        file, self._file = self._file, -1  # after closing, the descriptor may be reused for another file
        if file >= 0:
            with contextlib.suppress(OSError):
                os.close(file)


async def _pieces(path: Path, start: int, size: int) -> AsyncIterator[bytes]:
    work = FileWork()
    try:
        file = await asyncio.to_thread(os.open, path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise storage_error(exc) from exc
    try:
        while size > 0:
            piece = await work.run(partial(os.pread, file, min(size, PIECE_BYTES), start))
            if not piece:
                raise StorageError(f"{path.name} is shorter than when it was stored")
            start, size = start + len(piece), size - len(piece)
            yield piece
    finally:
        await work.run(partial(os.close, file))


def _part_of(path: Path) -> Path:
    return path.with_name(path.name + PART)
