"""Store demos in a bucket of an S3 service, with botocore, the library of AWS.

A file is uploaded in parts. S3 services require at least 5 MiB for each part except the last. That is too much to keep
in memory for each upload, so a part is first collected in a temporary file. The library blocks, so it is called in
threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import botocore.session  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    PartialCredentialsError,
)

from matchpod.adapters.demo_storage.file_work import FileWork
from matchpod.ports import DemoStorage, DemoWriter, StorageError, StorageFullError

PART_BYTES: Final = 8 * 1024 * 1024
"""Part size in bytes. While a part is sent, the next part is collected, so an upload needs twice this size on disk."""
THREADS: Final = 16
"""Maximum number of concurrent calls to the S3 service. With more, each call would only get a smaller share of the
network."""
CONNECT_S: Final = 5
READ_S: Final = 30
"""Timeout in seconds for a response. Storing a part of 8 MiB takes seconds."""
ATTEMPTS: Final = 3
CUT: Final = ".part"
"""Suffix of the object key under which an incomplete file is kept."""

_FULL_STATUS: Final = 507
_FULL_CODES: Final = frozenset({"QuotaExceeded", "XMinioStorageFull", "InsufficientStorage"})
_T = TypeVar("_T")


class S3Storage(DemoStorage):
    """Stores demos in a bucket, under object keys that begin with `prefix`."""

    def __init__(self, bucket: str, prefix: str, *, endpoint: str | None, region: str | None, spool: Path) -> None:
        """Use the folder `spool` for the temporary files in which parts are collected."""
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._endpoint = endpoint
        self._region = region
        self._spool = spool
        self._client: Any = None
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="s3")

    @property
    def is_shared(self) -> bool:
        return True

    async def check(self) -> str | None:
        """Return what is wrong with the settings; None if they work, or if the service is unavailable."""
        try:
            await self.call("head_bucket")
        except _WrongSettingsError as exc:
            return f"The storage of demos cannot be used: {exc}."
        except StorageError:
            return None
        return None

    async def create(self, key: str) -> DemoWriter:
        started = await self.call("create_multipart_upload", Key=self.name_of(key))
        return _S3Writer(self, key, str(started["UploadId"]), self._spool)

    def read(self, key: str, start: int, size: int) -> None:
        """Return None, because callers download directly from the S3 service."""

    async def link(self, key: str, *, file_name: str, expires_s: int) -> str:
        named = {"ResponseContentDisposition": f'attachment; filename="{file_name}"'}
        params = {"Bucket": self._bucket, "Key": self.name_of(key), **named}
        return str(
            await self._in_thread(
                lambda: self._open().generate_presigned_url("get_object", Params=params, ExpiresIn=expires_s)
            )
        )

    async def delete(self, key: str) -> None:
        for name in (self.name_of(key), self.name_of(key) + CUT):
            await self.call("delete_object", Key=name)

    async def clean_up(self, before_ms: int) -> int:
        before = datetime.fromtimestamp(before_ms / 1000, tz=UTC)
        listed = await self.call("list_multipart_uploads", Prefix=self._prefix)
        left = [upload for upload in listed.get("Uploads", ()) if upload["Initiated"] < before]
        for upload in left:
            await self.call("abort_multipart_upload", Key=upload["Key"], UploadId=upload["UploadId"])
        return len(left)

    async def free_bytes(self) -> None:
        """Return None, because a bucket has no size limit."""

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def name_of(self, key: str) -> str:
        return self._prefix + key

    async def copy(self, key: str, name: str) -> None:
        """Copy a file to another name in the bucket."""
        await self.call("copy_object", Key=name, CopySource={"Bucket": self._bucket, "Key": self.name_of(key)})

    async def call(self, operation: str, **params: object) -> Mapping[str, Any]:
        """Call the S3 service; raise StorageFullError or StorageError."""
        found: Mapping[str, Any] = await self._in_thread(
            lambda: getattr(self._open(), operation)(Bucket=self._bucket, **params)
        )
        return found

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except (BotoCoreError, ClientError) as exc:
            raise _error_of(exc) from exc

    def _open(self) -> Any:
        """Return the client. It is created when it is first needed, because that takes a second and 40 MB of memory."""
        if self._client is None:
            config = Config(
                connect_timeout=CONNECT_S,
                read_timeout=READ_S,
                retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
                max_pool_connections=THREADS,
                signature_version="s3v4",
                # S3 services other than AWS do not support the checksums that are sent by default.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                s3={"addressing_style": "path" if self._endpoint else "auto"},
            )
            session = botocore.session.get_session()
            self._client = session.create_client(
                "s3", region_name=self._region, endpoint_url=self._endpoint, config=config
            )
        return self._client


class _S3Writer(DemoWriter):
    """Writes a file in parts, which are sent one after the other. While a part is sent, the next part is collected."""

    def __init__(self, storage: S3Storage, key: str, upload_id: str, spool: Path) -> None:
        self._storage = storage
        self._key = key
        self._upload: dict[str, object] = {"Key": storage.name_of(key), "UploadId": upload_id}
        self._spool = spool
        self._work = FileWork()
        self._collected: Any = None
        self._size = 0
        self._sending: asyncio.Task[dict[str, object]] | None = None
        self._sent: list[dict[str, object]] = []

    async def write(self, part: bytes) -> None:
        await self._work.run(partial(self._append, part))
        self._size += len(part)
        if self._size >= PART_BYTES:
            await self._send()

    async def commit(self) -> None:
        await self._send()
        await self._sent_last()
        await self._storage.call("complete_multipart_upload", **self._upload, MultipartUpload={"Parts": self._sent})

    async def keep_cut(self) -> bool:
        try:
            await self.commit()
            await self._storage.copy(self._key, self._storage.name_of(self._key) + CUT)
            await self._storage.call("delete_object", Key=self._storage.name_of(self._key))
        except StorageError:
            await self.discard()
            return False
        return True

    async def discard(self) -> None:
        if self._sending is not None:
            with contextlib.suppress(StorageError, asyncio.CancelledError):
                await self._sending
        await self._work.run(self._close)
        with contextlib.suppress(StorageError):
            await self._storage.call("abort_multipart_upload", **self._upload)
        with contextlib.suppress(StorageError):  # the object exists if the upload completed, but the response was lost
            await self._storage.call("delete_object", Key=self._upload["Key"])

    async def _send(self) -> None:
        """Wait until the previous part was sent, then begin to send the collected part."""
        await self._sent_last()
        await self._work.wait()
        if self._collected is not None:
            self._sending = asyncio.create_task(self._send_part(len(self._sent) + 1, self._collected))
            self._collected, self._size = None, 0

    async def _send_part(self, number: int, body: Any) -> dict[str, object]:
        try:
            await asyncio.to_thread(body.seek, 0)
            answer = await self._storage.call("upload_part", **self._upload, PartNumber=number, Body=body)
        finally:
            body.close()
        return {"PartNumber": number, "ETag": answer["ETag"]}

    async def _sent_last(self) -> None:
        if self._sending is not None:
            part = await asyncio.shield(self._sending)  # if the upload is interrupted, the part is still sent
            self._sending = None
            self._sent.append(part)

    def _append(self, part: bytes) -> None:
        if self._collected is None:
            self._spool.mkdir(mode=0o750, parents=True, exist_ok=True)
            self._collected = tempfile.TemporaryFile(dir=self._spool, buffering=0)  # noqa: SIM115 - closed after it was sent
        rest = memoryview(part)
        while rest:
            rest = rest[self._collected.write(rest) :]

    def _close(self) -> None:
        if self._collected is not None:
            self._collected.close()
            self._collected = None


class _WrongSettingsError(StorageError):
    """The settings of the bucket or our permissions are wrong; a retry does not help."""


def _error_of(exc: Exception) -> StorageError:
    if isinstance(exc, NoCredentialsError | PartialCredentialsError):
        return _WrongSettingsError("no credentials for S3 were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    if not isinstance(exc, ClientError):
        return StorageError(str(exc))
    error, status = exc.response.get("Error", {}), exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    code = str(error.get("Code", ""))
    if status == _FULL_STATUS or code in _FULL_CODES:
        return StorageFullError(str(exc))
    if status in (401, 403, 404):
        return _WrongSettingsError(f"the S3 service answered {status} ({code})")
    return StorageError(str(exc))
