"""Receive the demos that game servers upload, stream them to the storage, and record how each upload ended.

The match plugin posts a demo once, with a timeout of 100 s, and never retries. So an upload of a known match is
accepted even if it is late. It waits while its server has another upload in progress, or while the database is
unavailable. It is rejected only because of a limit or a full storage.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, TypeVar

import msgspec

from matchpod.core.demos import LATE_MS, MAX_FILES, PATIENCE_MS, RENEW_MS, UPLOAD_LIMIT_MS, DemoState, MissingReason
from matchpod.core.errors import PayloadTooLargeError, UnavailableError
from matchpod.core.match.played_map import MapStatus
from matchpod.ports import (
    Clock,
    Database,
    DatabaseError,
    DemoStorage,
    DemoWriter,
    Statement,
    StorageError,
    StorageFullError,
)
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.match_log.fold import settings_of
from matchpod.service.reading.demos import demo_view
from matchpod.service.streams.organization_event_lines import demo_available
from matchpod.storage import demos, history, organization_events, servers
from matchpod.storage.demos import DemoRow, TooManyFilesError, Upload, UploadEnd, UploaderBusyError
from matchpod.storage.history import MapRow
from matchpod.storage.servers import ServerRow

BLOCK_BYTES: Final = 128 * 1024
"""Number of bytes of an upload that are collected before they are written. Together with the read buffer of its
connection, an upload uses less than a megabyte of memory."""
SILENT_S: Final = 30.0
"""Timeout in seconds for the next bytes of an upload."""
RETRY_S: Final = 1.0
"""Interval in seconds at which a failed database access is retried, or at which an upload checks whether the server's
previous upload has ended."""
SPACE_CHECK_BYTES: Final = 64 * 1024 * 1024
"""Number of received bytes after which the free space is checked again."""
UPLOAD_ID_BYTES: Final = 16
RETRY_AFTER_S: Final = 5

_FILE_NAME: Final = re.compile(r"[^A-Za-z0-9_.() -]")
_MAX_FILE_NAME: Final = 120
NO_MATCH_ID: Final = 0
"""The match id that a plugin may send if it no longer knows its match. The demo is accepted nevertheless, because the
plugin does not upload it again."""
_TOKEN: Final = re.compile(r"[0-9A-Za-z_-]{1,128}")

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class UploadHead(msgspec.Struct, frozen=True, kw_only=True):
    """The headers of an upload. Only the token is required."""

    token: str
    file_name: str = ""
    map_number: int | None = None
    """The plugin's number of the map; the first map is 0."""
    match_id: int | None = None
    """The plugin's id of the match in which the demo was recorded."""
    announced_bytes: int | None = None


class Sender(msgspec.Struct, frozen=True, kw_only=True):
    """The server that sends an upload, with its attempt and the maps of its match."""

    row: ServerRow
    attempt: str
    token_hash: str
    maps: tuple[MapRow, ...]


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How an upload ended. If `reason` is None, the demo is complete and available."""

    reason: MissingReason | None
    received_bytes: int
    seconds: float = 0.0


class UploadLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of uploads; None for no limit. Only tests change the timeouts and intervals."""

    demo_bytes: int | None = None
    org_bytes: int | None = None
    min_free_bytes: int = 0
    silent_s: float = SILENT_S
    retry_s: float = RETRY_S
    patience_s: float = PATIENCE_MS / 1000
    total_s: float = UPLOAD_LIMIT_MS / 1000


class Uploads:
    """Receives the uploads that arrive at this process."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        storage: DemoStorage,
        owner: str,
        limits: UploadLimits,
        on_ended: Callable[[Ended], None] = lambda _: None,
    ) -> None:
        """`owner` identifies this process. `on_ended` is called whenever an upload that had begun has ended."""
        self._db = db
        self._clock = clock
        self._storage = storage
        self._owner = owner
        self._limits = limits
        self._on_ended = on_ended
        self._active: dict[str, _Receipt] = {}
        """By upload id."""

    @property
    def active(self) -> int:
        """The number of uploads in progress."""
        return len(self._active)

    @unavailable_on_outage
    async def sender(self, head: UploadHead) -> Sender | None:
        """Return the server with this token; None if the token is unknown, or if its match rejects the demo."""
        return await self._insist(lambda: self._find(head)) if _TOKEN.fullmatch(head.token) else None

    async def _find(self, head: UploadHead) -> Sender | None:
        row = await servers.by_report_token(self._db, head.token)
        hashed = servers.token_hash(head.token)
        attempt = "" if row is None else row.attempt
        if row is None:
            owner = await demos.owner_of_token(self._db, hashed)
            row = None if owner is None else await servers.get(self._db, owner[0])
            attempt = "" if owner is None else owner[1]
        if row is None:
            return None
        if refusal := refusal_of(row, head, self._clock.now_ms()):
            extra = {"server_id": row.id, "file": file_name_of(head.file_name), "error": refusal}
            _log.warning("upload of a demo rejected", extra=extra)
            return None
        maps = await history.maps_of(self._db, row.id)
        return Sender(row=row, attempt=attempt, token_hash=hashed, maps=tuple(maps))

    async def receive(self, sender: Sender, head: UploadHead, parts: AsyncIterator[bytes]) -> Ended:
        """Receive an upload, and record its end. `parts` raises EOFError if the connection is lost.

        On cancellation, the upload is recorded as interrupted. Raise UnavailableError if the database is unavailable,
        or if the server's other upload does not end.
        """
        began_ms = self._clock.now_ms()
        upload = self._new_upload(sender, head)
        demo = await self._begin(sender, head, upload)
        receipt = _Receipt(upload.announced_bytes or 0)
        self._active[upload.upload_id] = receipt
        reason: MissingReason | None = MissingReason.INTERRUPTED
        writer: DemoWriter | None = None
        try:
            reason = await self._refusal(demo)
            if reason is None:
                async with asyncio.timeout(self._limits.total_s):
                    writer = await self._storage.create(upload.storage_key)
                    reason = await self._store(demo, receipt, writer, parts)
            if reason is None and writer is not None:
                await _to_its_end(receipt.commit(writer))  # no timeout: a commit must not be interrupted
        except TimeoutError:
            reason = MissingReason.TOO_SLOW
        except StorageFullError as exc:
            reason = MissingReason.DISK_FULL
            _log.error("demo not stored: storage full", extra={"server_id": demo.server_id, "error": str(exc)})
        except StorageError as exc:
            reason = MissingReason.STORAGE_FAILED
            _log.error("demo not stored: storage failed", extra={"server_id": demo.server_id, "error": str(exc)})
        except asyncio.CancelledError:
            reason = None if receipt.is_committed else MissingReason.INTERRUPTED
            raise
        finally:
            seconds = max(0, self._clock.now_ms() - began_ms) / 1000
            ended = Ended(reason=reason, received_bytes=receipt.bytes, seconds=seconds)
            await _to_its_end(self._end(demo, upload, receipt, writer=writer, ended=ended))
        return ended

    async def run(self) -> None:
        """Store the progress of the uploads in progress every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(RENEW_MS / 1000)
            received = {upload_id: receipt.bytes for upload_id, receipt in self._active.items()}
            if not received:
                continue
            try:
                await demos.renew(self._db, received, self._clock.now_ms())
            except DatabaseError as exc:
                _log.warning("progress of uploads not stored", extra={"error": str(exc)})

    # --- one upload -----------------------------------------------------------------------------------------------

    def _new_upload(self, sender: Sender, head: UploadHead) -> Upload:
        upload_id = secrets.token_hex(UPLOAD_ID_BYTES)
        name = file_name_of(head.file_name) or f"{sender.row.id}.dem"
        return Upload(
            upload_id=upload_id,
            owner=self._owner,
            file_name=name,
            announced_bytes=head.announced_bytes,
            storage_key=f"{sender.row.org_id}/{sender.row.id}/{upload_id[:12]}-{name.replace(' ', '_')}",
        )

    async def _begin(self, sender: Sender, head: UploadHead, upload: Upload) -> DemoRow:
        """Record that the upload has begun. If the server has another upload in progress, wait until it has ended."""
        played = map_of(sender.maps, head.map_number)
        demo = DemoRow(
            id="",
            org_id=sender.row.org_id,
            server_id=sender.row.id,
            map_id=played.id if played else sender.row.id,
            map_number=played.map_number if played else (head.map_number or 0) + 1,
            attempt=sender.attempt,
            token_hash=sender.token_hash,
            state=DemoState.UPLOADING,
            created_at_ms=self._clock.now_ms(),
        )
        busy_until_ms = self._clock.now_ms() + UPLOAD_LIMIT_MS
        while True:
            try:
                return await self._insist(lambda: demos.begin(self._db, demo, upload, self._clock.now_ms()))
            except DatabaseError as exc:
                raise UnavailableError("The database is unavailable.", retry_after_s=RETRY_AFTER_S) from exc
            except TooManyFilesError as exc:
                _log.warning(
                    "upload of a demo rejected", extra={"server_id": demo.server_id, "error": "too many files"}
                )
                raise PayloadTooLargeError(f"The map has {MAX_FILES} demos, which is the limit.") from exc
            except UploaderBusyError as exc:
                if self._clock.now_ms() > busy_until_ms:
                    raise UnavailableError(
                        "The server is already uploading another demo.", retry_after_s=RETRY_AFTER_S
                    ) from exc
                await asyncio.sleep(self._limits.retry_s)

    async def _refusal(self, demo: DemoRow) -> MissingReason | None:
        """Check the limits before the upload is read. Return why it is rejected; None if it is accepted."""
        announced = demo.announced_bytes or 0
        if self._limits.demo_bytes is not None and announced > self._limits.demo_bytes:
            return MissingReason.TOO_LARGE
        if await self._is_over_quota(demo):
            return MissingReason.OVER_QUOTA
        return MissingReason.DISK_FULL if await self._is_full(self._awaited(demo.upload_id)) else None

    def _awaited(self, upload_id: str | None) -> int:
        """Return how many bytes are still expected from this upload and from earlier uploads of this process."""
        total = 0
        for other_id, receipt in self._active.items():
            total += max(0, receipt.announced - receipt.written)
            if other_id == upload_id:
                break
        return total

    async def _is_over_quota(self, demo: DemoRow) -> bool:
        limit = self._limits.org_bytes
        return limit is not None and await self._insist(lambda: demos.stored_bytes(self._db, demo)) > limit

    async def _is_full(self, size: int) -> bool:
        try:
            free = await self._storage.free_bytes()
        except StorageError as exc:
            _log.warning("free space for demos unknown", extra={"error": str(exc)})
            return False
        return free is not None and free < size + self._limits.min_free_bytes

    async def _store(
        self, demo: DemoRow, receipt: _Receipt, writer: DemoWriter, parts: AsyncIterator[bytes]
    ) -> MissingReason | None:
        """Write an upload's parts as they arrive. Return why the file is incomplete; None if it is complete."""
        limit = self._limits.demo_bytes
        block: list[bytes] = []
        collected = checked = 0
        try:
            while (part := await self._next(parts)) is not None:
                receipt.bytes += len(part)
                if limit is not None and receipt.bytes > limit:
                    return MissingReason.TOO_LARGE
                block.append(part)
                collected += len(part)
                if collected >= BLOCK_BYTES:
                    await receipt.write(writer, _joined(block))
                    collected = 0
                if receipt.bytes - checked >= SPACE_CHECK_BYTES:
                    checked = receipt.bytes
                    if await self._is_full(0):
                        return MissingReason.DISK_FULL
                    if demo.announced_bytes is None and await self._is_over_quota(demo):
                        return MissingReason.OVER_QUOTA
        except EOFError:
            await receipt.write(writer, _joined(block))
            return MissingReason.CUT
        await receipt.write(writer, _joined(block))
        return None if receipt.bytes else MissingReason.CUT

    async def _next(self, parts: AsyncIterator[bytes]) -> bytes | None:
        """Return the next part; None at the end. Raise EOFError if no part arrives before the timeout."""
        try:
            async with asyncio.timeout(self._limits.silent_s):
                return await anext(parts, None)
        except TimeoutError as exc:
            raise EOFError from exc

    async def _end(
        self, demo: DemoRow, upload: Upload, receipt: _Receipt, *, writer: DemoWriter | None, ended: Ended
    ) -> None:
        is_kept = ended.reason is None
        if writer is not None and ended.reason is not None:
            if ended.reason in _KEPT_CUT and receipt.written:
                is_kept = await writer.keep_cut()
            else:
                await writer.discard()
        result = UploadEnd(
            reason=ended.reason,
            received_bytes=receipt.bytes,
            stored_bytes=receipt.written if is_kept else 0,
            sha256=receipt.hash.hexdigest() if ended.reason is None else None,
            storage_key=upload.storage_key if is_kept else None,
        )
        try:
            await self._insist(lambda: self._record_end(demo, upload, result))
        except DatabaseError as exc:
            _log.error("end of a demo upload not stored", extra={"server_id": demo.server_id, "error": str(exc)})
        finally:
            self._active.pop(upload.upload_id, None)
            self._on_ended(ended)
        _log.log(
            logging.INFO if ended.reason is None else logging.WARNING,
            "demo stored" if ended.reason is None else "demo missing",
            extra={
                "server_id": demo.server_id,
                "map_id": demo.map_id,
                "file": upload.file_name,
                "reason": ended.reason,
                "bytes": ended.received_bytes,
                "announced_bytes": upload.announced_bytes,
                "seconds": round(ended.seconds, 1),
            },
        )

    async def _record_end(self, demo: DemoRow, upload: Upload, result: UploadEnd) -> None:
        """Record the end of an upload. If the demo is available, store its event in the same transaction."""
        now_ms = self._clock.now_ms()
        server = await servers.summary(self._db, demo.server_id) if result.reason is None else None
        event: Sequence[Statement] = ()
        if server is not None:
            available = msgspec.structs.replace(
                demo,
                state=DemoState.AVAILABLE,
                received_bytes=result.received_bytes,
                sha256=result.sha256,
                ended_at_ms=now_ms,
            )
            found = await demos.of_maps(self._db, [demo.map_id])
            view = demo_view(demo.map_id, [available if row.id == demo.id else row for row in found])
            line = demo_available(
                server, msgspec.json.encode(view), map_id=demo.map_id, map_number=demo.map_number, at_ms=now_ms
            )
            event = organization_events.append(demo.org_id, [line], at_ms=now_ms)
        await demos.end(self._db, demo.id, result, upload_id=upload.upload_id, now_ms=now_ms, also=event)

    async def _insist(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Retry a database access for up to `patience_s`, because the plugin does not retry an upload that fails."""
        until_ms = self._clock.now_ms() + int(self._limits.patience_s * 1000)
        while True:
            try:
                return await work()
            except DatabaseError:
                if self._clock.now_ms() >= until_ms:
                    raise
                await asyncio.sleep(self._limits.retry_s)


_KEPT_CUT: Final = frozenset({MissingReason.CUT, MissingReason.TOO_SLOW, MissingReason.INTERRUPTED})
"""Reasons for an incomplete demo whose received part is kept, because it may be the only recording of the map."""


class _Receipt:
    """Counts, hashes and writes the received bytes of an upload."""

    def __init__(self, announced: int = 0) -> None:
        self.bytes = 0
        self.written = 0
        self.announced = announced
        self.is_committed = False
        self.hash = hashlib.sha256()

    async def write(self, writer: DemoWriter, block: bytes) -> None:
        if block:
            await asyncio.gather(writer.write(block), asyncio.to_thread(self.hash.update, block))
            self.written += len(block)

    async def commit(self, writer: DemoWriter) -> None:
        await writer.commit()
        self.is_committed = True


def _joined(parts: list[bytes]) -> bytes:
    """Return the joined parts, and clear the list."""
    joined = b"".join(parts)
    parts.clear()
    return joined


async def _to_its_end(work: Awaitable[None]) -> None:
    """Await work until it has ended, even if this task is cancelled in the meantime."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def refusal_of(row: ServerRow, head: UploadHead, now_ms: int) -> str | None:
    """Return why the match that an upload's token belongs to rejects its demo; None if the demo is accepted.

    A server of a static fleet may be configured for its next match before it uploads the demo of the earlier match. It
    then sends the next match's token with the earlier match's id. Such a demo is rejected: the earlier match no longer
    has the server and may be of another organization, so nothing proves that it was played on this server.
    """
    if not settings_of(row).record_demo:
        return "the match is not recorded"
    if row.ended_at_ms is not None and now_ms - row.ended_at_ms > LATE_MS:
        return "the match ended long ago"
    if head.match_id not in (None, NO_MATCH_ID, row.plugin_match_id):
        return "the demo belongs to another match"
    return None


def map_of(maps: tuple[MapRow, ...], plugin_number: int | None) -> MapRow | None:
    """Return the map with the plugin's number; if there is no such map, the last map that was played."""
    for row in maps:
        if plugin_number is not None and row.map_number == plugin_number + 1:
            return row
    played = [row for row in maps if row.status is not MapStatus.UPCOMING]
    return played[-1] if played else next(iter(maps), None)


def file_name_of(given: str) -> str:
    """Return a file name without folders and unusual characters, for display and for the storage key."""
    name = _FILE_NAME.sub("_", given.replace("\\", "/").rpartition("/")[2]).strip(". ")
    return name[-_MAX_FILE_NAME:].strip(". ")
