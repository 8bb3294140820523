"""Store the demos of maps: one row per file that is expected or was uploaded.

The process that drives the match calls `expect` when a map goes live and the server records it, `await_upload` when the
map has ended, and `give_up` when the server is released. In between, it calls `of_server` to decide how long to keep
the server (`core.demos.waits_until_ms`). The upload process calls `begin`, `renew` and `end`. Retention deletes only
files; rows are never deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from matchpod.core.demos import MAX_FILES, STALE_MS, UPLOAD_LIMIT_MS, DemoProgress, DemoState, MissingReason
from matchpod.ports import Database, DuplicateError, Statement, Value
from matchpod.storage import rows
from matchpod.storage.servers import ServerRow


class DemoRow(DemoProgress, frozen=True, kw_only=True):
    """A demo that is expected or was uploaded; the fields are the columns."""

    id: str
    org_id: str
    server_id: str
    map_id: str
    map_number: int
    """Number of the map, counted from 1 (the plugin counts from 0)."""
    attempt: str
    """`ServerRow.attempt` of the server that records the demo."""
    token_hash: str
    """Hash of the upload token. The server uses its report token for uploads too."""
    reason: MissingReason | None = None
    created_at_ms: int
    file_name: str | None = None
    """File name that the server sent; None until an upload begins."""
    announced_bytes: int | None = None
    """Content-Length of the upload request."""
    received_bytes: int = 0
    stored_bytes: int = 0
    """Number of bytes that count toward the quota: the announced size during the upload, then the size of the stored
    file.

    The stored file may be incomplete.
    """
    sha256: str | None = None
    storage_key: str | None = None
    """Key of the stored file; None if no file was stored, or if it was deleted."""
    ended_at_ms: int | None = None
    owner: str | None = None
    """The process that receives, or has received, the upload."""
    upload_id: str | None = None
    uploads_for: str | None = None
    """The server's id while the upload is in progress, else None. The column is unique, so a match has one upload at a
    time."""


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """An upload that begins."""

    upload_id: str
    """A random id. Writes with this id have no effect once another upload of the same demo has begun."""
    owner: str
    file_name: str
    announced_bytes: int | None
    storage_key: str


class UploadEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How an upload ended. The demo is available if `reason` is None."""

    reason: MissingReason | None = None
    received_bytes: int
    stored_bytes: int
    sha256: str | None = None
    storage_key: str | None = None


class UploaderBusyError(Exception):
    """The server is uploading another demo. Retry later."""


class TooManyFilesError(Exception):
    """The map already has MAX_FILES demo files."""


# --- the match ----------------------------------------------------------------------------------------------------


def expect(row: ServerRow, *, map_id: str, map_number: int, now_ms: int) -> Statement:
    """Record that the match's server records the demo of a map that went live, unless its upload has already begun.

    A repeated call changes nothing.
    """
    values: dict[str, tuple[str, Value]] = {
        "id": ("TEXT", f"{map_id}.{row.attempt}"),
        "org_id": ("TEXT", row.org_id),
        "server_id": ("TEXT", row.id),
        "map_id": ("TEXT", map_id),
        "map_number": ("BIGINT", map_number),
        "attempt": ("TEXT", row.attempt),
        "token_hash": ("TEXT", row.report_token_hash),
        "state": ("TEXT", DemoState.RECORDING.value),
        "created_at_ms": ("BIGINT", now_ms),
    }
    casts = ", ".join(f"CAST(:{name} AS {kind})" for name, (kind, _) in values.items())
    return Statement(
        f"INSERT INTO demos ({', '.join(values)}) SELECT {casts}"
        " WHERE NOT EXISTS (SELECT 1 FROM demos WHERE map_id = :map_id AND attempt = :attempt"
        " AND begun_at_ms IS NOT NULL) ON CONFLICT (id) DO NOTHING",
        {name: value for name, (_, value) in values.items()},
    )


def await_upload(map_id: str, until_ms: int) -> Statement:
    """Set the deadline by which the upload of an ended map must begin, unless a deadline is already set."""
    return Statement(
        f"UPDATE demos SET due_ms = :until_ms WHERE map_id = :map_id AND state = '{DemoState.RECORDING}'"
        " AND due_ms IS NULL",
        {"map_id": map_id, "until_ms": until_ms},
    )


def give_up(server_id: str, reason: MissingReason, now_ms: int) -> Statement:
    """Mark a match's recordings as missing if their upload has not begun. A late upload is still accepted."""
    return Statement(
        f"UPDATE demos SET state = '{DemoState.MISSING}', reason = :reason, ended_at_ms = :now_ms"
        f" WHERE server_id = :server_id AND state = '{DemoState.RECORDING}'",
        {"server_id": server_id, "reason": reason.value, "now_ms": now_ms},
    )


async def count_draining(db: Database) -> dict[str, int]:
    """Return, by region, how many servers are still kept after their match for the upload of demos."""
    sql = (
        "SELECT region, COUNT(*) FROM servers WHERE phase <> 'released' AND phase = 'ending'"
        " AND EXISTS (SELECT 1 FROM demos WHERE demos.server_id = servers.id) GROUP BY region"
    )
    return dict(msgspec.convert(await db.read(sql), list[tuple[str, int]]))


async def of_server(db: Database, server_id: str) -> list[DemoRow]:
    """Return the demos of a match, in the order in which their rows were created."""
    rest = "FROM demos WHERE server_id = :server_id ORDER BY created_at_ms, id"
    return await rows.read_all(db, DemoRow, rest, {"server_id": server_id})


# --- readers ------------------------------------------------------------------------------------------------------


async def of_maps(db: Database, map_ids: Sequence[str]) -> list[DemoRow]:
    """Return the demos of these maps, in the order in which their rows were created."""
    listed, params = rows.parameter_list("map_id", map_ids)
    return await rows.read_all(db, DemoRow, f"FROM demos WHERE map_id IN {listed} ORDER BY created_at_ms, id", params)


async def get(db: Database, demo_id: str) -> DemoRow | None:
    return await rows.read_first(db, DemoRow, "FROM demos WHERE id = :id", {"id": demo_id})


async def stored_bytes(db: Database, demo: DemoRow) -> int:
    """Return the size of an organization's stored demos and uploads, without uploads that began after that of `demo`.

    If two concurrent uploads do not both fit into the quota, the one that began first is stored.
    """
    sql = (
        "SELECT CAST(COALESCE(SUM(stored_bytes), 0) AS BIGINT) FROM demos WHERE org_id = :org_id AND stored_bytes > 0"
        f" AND (state <> '{DemoState.UPLOADING}' OR begun_at_ms < :begun_ms"
        " OR (begun_at_ms = :begun_ms AND upload_id <= :upload_id))"
    )
    params: dict[str, Value] = {"org_id": demo.org_id, "begun_ms": demo.begun_at_ms, "upload_id": demo.upload_id}
    return await rows.read_number(db, sql, params)


async def count_by_state(db: Database) -> dict[tuple[str, ...], float]:
    """Return how many demos are being recorded or uploaded, by state."""
    sql = (
        f"SELECT state, COUNT(*) FROM demos WHERE state IN ('{DemoState.RECORDING}', '{DemoState.UPLOADING}')"
        " GROUP BY state"
    )
    return {(state,): number for state, number in msgspec.convert(await db.read(sql), list[tuple[str, int]])}


# --- uploads ------------------------------------------------------------------------------------------------------


async def owner_of_token(db: Database, token_hash: str) -> tuple[str, str] | None:
    """Return the server id and attempt of the demos with this report token. The server may have been replaced since."""
    sql = "SELECT server_id, attempt FROM demos WHERE token_hash = :token_hash LIMIT 1"
    row = await db.read_one(sql, {"token_hash": token_hash})
    return None if row is None else msgspec.convert(row, tuple[str, str])


async def begin(db: Database, demo: DemoRow, upload: Upload, now_ms: int) -> DemoRow:
    """Begin an upload of the demo that this server is expected to upload for this map, or else of an additional demo.

    The fields of `demo` identify match, map and attempt. UploaderBusyError if the server is uploading another demo,
    TooManyFilesError if the map has too many files. The call may be repeated if it is unknown whether the write
    succeeded.
    """
    await lose_stale(db, now_ms)
    known = await of_server(db, demo.server_id)
    ours = next((row for row in known if row.upload_id == upload.upload_id), None)
    if ours is not None:
        return ours
    of_map = [row for row in known if row.map_number == demo.map_number]
    if sum(row.file_name is not None for row in of_map) >= MAX_FILES:
        raise TooManyFilesError
    expected = [row for row in of_map if row.attempt == demo.attempt and row.file_name is None]
    taken = expected[0] if expected else msgspec.structs.replace(demo, id=f"{demo.map_id}.{upload.upload_id}")
    begun = msgspec.structs.replace(
        taken,
        state=DemoState.UPLOADING,
        reason=None,
        file_name=upload.file_name,
        announced_bytes=upload.announced_bytes,
        received_bytes=0,
        stored_bytes=upload.announced_bytes or 0,
        storage_key=upload.storage_key,
        begun_at_ms=now_ms,
        renewed_at_ms=now_ms,
        ended_at_ms=None,
        owner=upload.owner,
        upload_id=upload.upload_id,
        uploads_for=demo.server_id,
    )
    try:
        if not expected:
            await db.write([rows.insert("demos", begun)])
            return begun
        assignments = ", ".join(f"{name} = :{name}" for name in DemoRow.__struct_fields__ if name != "id")
        update = f"UPDATE demos SET {assignments} WHERE id = :id AND file_name IS NULL RETURNING id"
        if not await rows.write_one(db, update, rows.to_params(begun)):
            raise UploaderBusyError
    except DuplicateError as exc:
        raise UploaderBusyError from exc
    return begun


async def renew(db: Database, received: Mapping[str, int], now_ms: int) -> bool:
    """Store the progress of uploads, in bytes by upload id; False if all of them were marked as interrupted."""
    listed, params = rows.parameter_list("upload_id", list(received))
    sizes = {f"received_of_{name}": received[str(upload_id)] for name, upload_id in params.items()}
    cases = " ".join(f"WHEN :{name} THEN CAST(:received_of_{name} AS BIGINT)" for name in params)
    size = f"CASE upload_id {cases} END"
    sql = (
        f"UPDATE demos SET received_bytes = {size}, renewed_at_ms = :now_ms,"
        f" stored_bytes = CASE WHEN stored_bytes < {size} THEN {size} ELSE stored_bytes END"
        f" WHERE upload_id IN {listed} AND state = '{DemoState.UPLOADING}' RETURNING id"
    )
    return bool(await rows.write_one(db, sql, {**params, **sizes, "now_ms": now_ms}))


async def end(
    db: Database, demo_id: str, ended: UploadEnd, *, upload_id: str, now_ms: int, also: Sequence[Statement] = ()
) -> bool:
    """Record the end of an upload, even if it was marked as interrupted; False if another upload has replaced it.

    The statements in `also` run in the same transaction.
    """
    state = DemoState.AVAILABLE if ended.reason is None else DemoState.MISSING
    sql = (
        "UPDATE demos SET state = :state, reason = :reason, received_bytes = :received_bytes,"
        " stored_bytes = :stored_bytes, sha256 = :sha256, storage_key = :storage_key, ended_at_ms = :now_ms,"
        " uploads_for = NULL WHERE id = :id AND upload_id = :upload_id"
        f" AND (state = '{DemoState.UPLOADING}' OR reason = '{MissingReason.INTERRUPTED}') RETURNING id"
    )
    params: dict[str, Value] = {"id": demo_id, "upload_id": upload_id, "state": state.value, "now_ms": now_ms}
    return bool(await rows.write_if_changed(db, Statement(sql, rows.to_params(ended) | params), *also))


async def lose_stale(db: Database, now_ms: int) -> int:
    """Mark the uploads of dead processes as interrupted; return the number of uploads."""
    return await _lose(
        db,
        "(renewed_at_ms <= :renewed_ms OR begun_at_ms <= :begun_ms)",
        {"renewed_ms": now_ms - STALE_MS, "begun_ms": now_ms - UPLOAD_LIMIT_MS - STALE_MS},
        now_ms,
    )


async def lose_of(db: Database, owner: str, now_ms: int) -> int:
    """Mark all uploads of this dead process as interrupted; return the number of uploads."""
    return await _lose(db, "owner = :owner", {"owner": owner}, now_ms)


async def lose_all(db: Database, now_ms: int) -> int:
    """Mark all uploads as interrupted; return their number. Call only at the start of the database's only process."""
    return await _lose(db, "owner IS NOT NULL", {}, now_ms)


async def _lose(db: Database, which: str, params: dict[str, Value], now_ms: int) -> int:
    sql = (
        f"UPDATE demos SET state = '{DemoState.MISSING}', reason = '{MissingReason.INTERRUPTED}',"
        " ended_at_ms = :now_ms, uploads_for = NULL, stored_bytes = received_bytes"
        f" WHERE state = '{DemoState.UPLOADING}' AND {which} RETURNING id"
    )
    found = f"SELECT COUNT(*) FROM demos WHERE state = '{DemoState.UPLOADING}' AND {which}"
    if not await rows.read_number(db, found, params):  # write only if necessary: a write costs more than a read
        return 0
    return len(await rows.write_one(db, sql, {**params, "now_ms": now_ms}))


async def give_up_overdue(db: Database, now_ms: int) -> int:
    """Mark recordings whose upload did not begin before the deadline as missing; return their number."""
    # If an earlier version took over a match, it released the server without marking the recordings as missing.
    is_released = "EXISTS (SELECT 1 FROM servers WHERE servers.id = demos.server_id AND servers.phase = 'released')"
    overdue = f"state = '{DemoState.RECORDING}' AND (due_ms <= :now_ms OR {is_released})"
    if not await rows.read_number(db, f"SELECT COUNT(*) FROM demos WHERE {overdue}", {"now_ms": now_ms}):
        return 0
    sql = (
        f"UPDATE demos SET state = '{DemoState.MISSING}', reason = '{MissingReason.NOT_UPLOADED}',"
        f" ended_at_ms = :now_ms WHERE {overdue} RETURNING id"
    )
    return len(await rows.write_one(db, sql, {"now_ms": now_ms}))


# --- retention ----------------------------------------------------------------------------------------------------


async def prunable(db: Database, before_ms: int, limit: int) -> list[tuple[str, str]]:
    """Return the ids and storage keys of the stored files whose upload ended before a time, oldest first."""
    sql = (
        "SELECT id, storage_key FROM demos WHERE storage_key IS NOT NULL AND ended_at_ms < :before_ms"
        " ORDER BY ended_at_ms, id LIMIT :limit"
    )
    found = await db.read(sql, {"before_ms": before_ms, "limit": limit})
    return msgspec.convert(found, list[tuple[str, str]])


async def count_prunable(db: Database, before_ms: int) -> int:
    sql = "SELECT COUNT(*) FROM demos WHERE storage_key IS NOT NULL AND ended_at_ms < :before_ms"
    return await rows.read_number(db, sql, {"before_ms": before_ms})


async def mark_deleted(db: Database, demo_id: str, storage_key: str) -> None:
    """Record that the file of a demo was deleted. A demo that was already marked as missing keeps its reason."""
    sql = (
        "UPDATE demos SET storage_key = NULL, stored_bytes = 0,"
        f" reason = COALESCE(reason, '{MissingReason.DELETED}'), state = '{DemoState.MISSING}'"
        " WHERE id = :id AND storage_key = :storage_key"
    )
    await rows.write_one(db, sql, {"id": demo_id, "storage_key": storage_key})
