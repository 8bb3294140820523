"""List and download the demos of a match: `matchpod match demo`."""

from __future__ import annotations

import asyncio
import hashlib
import sys
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from matchpod.app import Resources
from matchpod.cli.actions import ServerId, find_server
from matchpod.cli.resources import fail, run_with_resources
from matchpod.cli.terminal import AsJson, Columns, print_listing, print_note
from matchpod.core.errors import MatchpodError
from matchpod.ports import DemoStorage, StorageError
from matchpod.service.reading.demos import DemoFile, Download, demo_file, find_download
from matchpod.service.row_views import view_of
from matchpod.storage import demos
from matchpod.storage.demos import DemoRow

PIECE_BYTES: Final = 256 * 1024
LINK_TIMEOUT_S: Final = 60.0
PART: Final = ".part"
_MB: Final = 1_000_000


class ListedDemo(DemoFile, frozen=True, kw_only=True, rename="camel"):
    """A demo file as listed, with its map and its key in the demo storage."""

    map_id: str
    map_number: int
    storage_key: str | None


_COLUMNS: Final[Columns[ListedDemo]] = {
    "map": lambda demo: str(demo.map_number),
    "file": lambda demo: str(demo.number),
    "state": lambda demo: demo.state if demo.reason is None else f"{demo.state} ({demo.reason})",
    "size": lambda demo: None if demo.size is None else f"{demo.size / _MB:.1f} MB",
    "name": lambda demo: demo.file_name,
    "sha256": lambda demo: demo.sha256,
}


def show_demos(
    server_id: ServerId,
    *,
    save: Annotated[Path | None, typer.Option(help="Download a demo into this file, and check its SHA-256.")] = None,
    map_number: Annotated[int, typer.Option("--map", min=1, help="The map to download.")] = 1,
    file: Annotated[
        int | None, typer.Option(min=1, help="The number of the map's file. Default: the last available file.")
    ] = None,
    json: AsJson = False,
) -> None:
    """List the demos of a match, or download one."""

    async def work(resources: Resources) -> list[ListedDemo]:
        row = await find_server(resources, server_id)
        found = await demos.of_server(resources.db, row.id)
        if save is not None:
            of_map = [demo for demo in found if demo.map_number == map_number]
            try:
                wanted = await find_download(resources.demo_storage, of_map, file)
                await _save(resources.demo_storage, wanted, save)
            except MatchpodError as exc:
                fail(str(exc))
            except StorageError as exc:
                fail(f"The demo could not be read: {exc}.")
        return _listed(found)

    listed = run_with_resources(work)
    if save is None:
        print_listing(listed, _COLUMNS, as_json=json)


def _listed(found: Sequence[DemoRow]) -> list[ListedDemo]:
    numbers: Counter[tuple[str, int]] = Counter()
    listed = []
    for row in found:
        numbers[row.map_id, row.map_number] += 1
        listed.append(view_of(ListedDemo, demo_file(row, numbers[row.map_id, row.map_number]), row))
    return sorted(listed, key=lambda demo: demo.map_number)


async def _save(storage: DemoStorage, wanted: Download, path: Path) -> None:
    """Download a demo to a temporary file, and rename it to `path` only if it is complete and correct."""
    part, digest, size = path.with_name(path.name + PART), hashlib.sha256(), 0
    with part.open("wb") as out:
        async for piece in _pieces(storage, wanted):
            await asyncio.to_thread(out.write, piece)
            digest.update(piece)
            size += len(piece)
            _show_progress(size, wanted.size)
    if digest.hexdigest() != wanted.sha256:
        fail(f"The file {part} is not the demo that was uploaded: its SHA-256 is {digest.hexdigest()}.")
    part.rename(path)
    print_note(f"{wanted.file_name}, {size / _MB:.1f} MB, SHA-256 {wanted.sha256}")


async def _pieces(storage: DemoStorage, wanted: Download) -> AsyncIterator[bytes]:
    pieces = storage.read(wanted.key, 0, wanted.size)
    if pieces is not None:
        try:
            async for piece in pieces:
                yield piece
        except FileNotFoundError:
            fail("The file of the demo no longer exists.")
        return
    link = wanted.link or ""
    with await asyncio.to_thread(lambda: urllib.request.urlopen(link, timeout=LINK_TIMEOUT_S)) as answer:
        while piece := await asyncio.to_thread(answer.read, PIECE_BYTES):
            yield piece


def _show_progress(size: int, total: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if size == total else ""
        sys.stderr.write(f"\r{size / _MB:8.1f} of {total / _MB:.1f} MB, {100 * size // max(1, total)} %{end}")
        sys.stderr.flush()
