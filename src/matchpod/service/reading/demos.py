"""Show the demos of maps, and find the file or link from which a demo is downloaded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from matchpod.core.demos import DemoState
from matchpod.core.errors import NotFoundError, UnavailableError
from matchpod.core.iso_dates import iso_time
from matchpod.ports import Database, DemoStorage, StorageError
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.principals import Principal
from matchpod.service.reading.history import History
from matchpod.service.reading.history_views import (
    DemoReason,
    DemoSha256,
    DemoSize,
    DemoStateOfMap,
    MapId,
    counting_file,
    demo_of_map,
)
from matchpod.storage import demos
from matchpod.storage.demos import DemoRow

LINK_S: Final = 900
"""Lifetime in seconds of a link to a file in a bucket. A download that has begun may take longer."""
RETRY_AFTER_S: Final = 5


class DemoFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One file of a map's demo. There are several if the match was restored, or was given another server."""

    number: Annotated[
        int, Meta(description="The number of the file, from 1, in the order in which they were expected or uploaded.")
    ]
    file_name: Annotated[
        str | None, Meta(description="The name that the game server gave it; null until its upload begins.")
    ]
    state: DemoStateOfMap
    reason: DemoReason
    size: Annotated[int | None, Meta(description="The bytes received so far; null until its upload begins.")]
    sha256: DemoSha256
    uploaded_at: Annotated[str | None, Meta(description="When its upload ended; null before, and if there was none.")]


class DemoView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The demo of a map. State and reason summarize all files; size and checksum are of the last available file."""

    map_id: MapId
    state: DemoStateOfMap
    reason: DemoReason
    size: DemoSize
    sha256: DemoSha256
    files: Annotated[tuple[DemoFile, ...], Meta(description="All files, in order.")]


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """A file that can be downloaded: from `link` or, if that is None, with `Demos.read`."""

    key: str
    file_name: str
    size: int
    sha256: str
    link: str | None


class Demos:
    """Reads the demos of maps. Each organization can read only its own demos."""

    def __init__(self, *, db: Database, history: History, storage: DemoStorage) -> None:
        self._db = db
        self._history = history
        self._storage = storage

    @unavailable_on_outage
    async def demo(self, principal: Principal, map_id: str) -> DemoView:
        """Return the demo of a map; NotFoundError if none was recorded."""
        row = await self._history.own_map(principal, map_id)
        view = demo_view(row.id, await self._of_map(row.id))
        if view is None:
            raise NotFoundError("The map has no demo: none was recorded.")
        return view

    @unavailable_on_outage
    async def download(self, principal: Principal, map_id: str, number: int | None) -> Download:
        """Return the file with this number or, if None, the last available file; NotFoundError if not available."""
        row = await self._history.own_map(principal, map_id)
        return await find_download(self._storage, await self._of_map(row.id), number)

    async def read(self, file: Download, start: int, size: int) -> AsyncIterator[bytes]:
        """Yield a byte range of a file that has no link.

        The first piece raises NotFoundError if the file is gone, and UnavailableError if the storage is unavailable.
        """
        pieces = self._storage.read(file.key, start, size)
        if pieces is None:
            raise NotFoundError("The file can only be downloaded from its link.")
        try:
            async for piece in pieces:
                yield piece
        except FileNotFoundError as exc:
            raise NotFoundError("The file of the demo no longer exists.") from exc
        except StorageError as exc:
            raise UnavailableError("The storage of demos is unavailable.", retry_after_s=RETRY_AFTER_S) from exc

    async def _of_map(self, map_id: str) -> list[DemoRow]:
        return await demos.of_maps(self._db, [map_id])


async def find_download(storage: DemoStorage, found: Sequence[DemoRow], number: int | None) -> Download:
    """Return the file with this number or, if None, the last available file; NotFoundError if not available."""
    if number is None:
        row = counting_file(found)
    else:
        row = found[number - 1] if number <= len(found) else None
    if row is None or row.state is not DemoState.AVAILABLE or row.storage_key is None:
        raise NotFoundError("There is no such file, or it is not available.")
    name = row.file_name or f"{row.map_id}.dem"
    try:
        link = await storage.link(row.storage_key, file_name=name, expires_s=LINK_S)
    except StorageError as exc:
        raise UnavailableError("The storage of demos is unavailable.", retry_after_s=RETRY_AFTER_S) from exc
    return Download(key=row.storage_key, file_name=name, size=row.received_bytes, sha256=row.sha256 or "", link=link)


def demo_view(map_id: str, found: Sequence[DemoRow]) -> DemoView | None:
    """Build the view of a map's demo from the rows of its files; None if there are no files."""
    shown = demo_of_map(found)
    if shown is None:
        return None
    return DemoView(
        map_id=map_id,
        state=shown.state,
        reason=shown.reason,
        size=shown.size,
        sha256=shown.sha256,
        files=tuple(demo_file(row, number) for number, row in enumerate(found, 1)),
    )


def demo_file(row: DemoRow, number: int) -> DemoFile:
    """Build the view of a file of a demo."""
    is_uploaded = row.begun_at_ms is not None and row.ended_at_ms is not None
    return DemoFile(
        number=number,
        file_name=row.file_name,
        state=row.state,
        reason=row.reason,
        size=row.received_bytes if row.begun_at_ms is not None else None,
        sha256=row.sha256 if row.state is DemoState.AVAILABLE else None,
        uploaded_at=iso_time(row.ended_at_ms) if is_uploaded and row.ended_at_ms is not None else None,
    )
