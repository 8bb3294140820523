"""Store the demos of maps: one row per file that is expected or was uploaded.

The match side calls `expect` when a map goes live with recording on, `await_upload` when it has ended, `of_server`
(with `core.demos.waits_until_ms`) while it keeps the server, and `give_up` when it releases it. The upload process
calls `begin`, `renew` and `end`. A row is never deleted: retention deletes the file only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from matchpod.core.demos import MAX_FILES, STALE_MS, UPLOAD_LIMIT_MS, DemoProgress, DemoState, MissingReason
from matchpod.ports import Database, DuplicateError, Statement, Value
from matchpod.storage import rows
from matchpod.storage.servers import ServerRow


class DemoRow(DemoProgress, frozen=True, kw_only=True):
    """One demo, expected or uploaded; the fields are the columns."""

    id: str
    org_id: str
    server_id: str
    map_id: str
    map_number: int
    """From 1, as everywhere here; the plugin counts from 0."""
    attempt: str
    """Which of the servers of the match records it."""
    token_hash: str
    """Of the token with which it is uploaded: that of the reports of its server."""
    reason: MissingReason | None = None
    created_at_ms: int
    file_name: str | None = None
    """As its server calls it; None until an upload begins."""
    announced_bytes: int | None = None
    """Content-Length of the upload."""
    received_bytes: int = 0
    stored_bytes: int = 0
    """What counts for the quota: what is kept, also of a file that was cut; before that what the upload announced."""
    sha256: str | None = None
    storage_key: str | None = None
    """Where its bytes are; None if there are none, or no longer."""
    ended_at_ms: int | None = None
    owner: str | None = None
    """The process that received it."""
    upload_id: str | None = None
    uploads_for: str | None = None
    """Its match while it is uploaded, so that a match has one upload at a time."""


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """A new upload."""

    upload_id: str
    """Random: what its process writes about it counts only for this upload."""
    owner: str
    file_name: str
    announced_bytes: int | None
    storage_key: str


class UploadEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How an upload ended: available if there is no reason."""

    reason: MissingReason | None = None
    received_bytes: int
    stored_bytes: int
    sha256: str | None = None
    storage_key: str | None = None


class UploaderBusyError(Exception):
    """The server uploads another demo at present: wait."""


class TooManyFilesError(Exception):
    """The map has MAX_FILES already."""


# --- the match ----------------------------------------------------------------------------------------------------


def expect(row: ServerRow, *, map_id: str, map_number: int, now_ms: int) -> Statement:
    """Record that the server of a match records a map that went live, unless it has already begun to upload it.

    Repeating it changes nothing.
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
    """Expect the upload of a map to begin until then, unless that is known already: it has ended."""
    return Statement(
        f"UPDATE demos SET due_ms = :until_ms WHERE map_id = :map_id AND state = '{DemoState.RECORDING}'"
        " AND due_ms IS NULL",
        {"map_id": map_id, "until_ms": until_ms},
    )


def give_up(server_id: str, reason: MissingReason, now_ms: int) -> Statement:
    """Record that the recordings of a match that were not uploaded are missing. A late upload is still accepted."""
    return Statement(
        f"UPDATE demos SET state = '{DemoState.MISSING}', reason = :reason, ended_at_ms = :now_ms"
        f" WHERE server_id = :server_id AND state = '{DemoState.RECORDING}'",
        {"server_id": server_id, "reason": reason.value, "now_ms": now_ms},
    )


async def count_draining(db: Database) -> dict[str, int]:
    """Return how many servers of each region are kept for demos although their match has ended."""
    sql = (
        "SELECT region, COUNT(*) FROM servers WHERE phase <> 'released' AND phase = 'ending'"
        " AND EXISTS (SELECT 1 FROM demos WHERE demos.server_id = servers.id) GROUP BY region"
    )
    return dict(msgspec.convert(await db.read(sql), list[tuple[str, int]]))


async def of_server(db: Database, server_id: str) -> list[DemoRow]:
    """Return the demos of a match, in the order in which they were expected or began."""
    rest = "FROM demos WHERE server_id = :server_id ORDER BY created_at_ms, id"
    return await rows.read_all(db, DemoRow, rest, {"server_id": server_id})


# --- readers ------------------------------------------------------------------------------------------------------


async def of_maps(db: Database, map_ids: Sequence[str]) -> list[DemoRow]:
    """Return the demos of these maps, in the order in which they were expected or began."""
    listed, params = rows.parameter_list("map_id", map_ids)
    return await rows.read_all(db, DemoRow, f"FROM demos WHERE map_id IN {listed} ORDER BY created_at_ms, id", params)


async def get(db: Database, demo_id: str) -> DemoRow | None:
    return await rows.read_first(db, DemoRow, "FROM demos WHERE id = :id", {"id": demo_id})


async def stored_bytes(db: Database, demo: DemoRow) -> int:
    """Return how many bytes the stored demos of an organization have with this upload, but not with later ones.

    So of two that do not fit together, the first is stored.
    """
    sql = (
        "SELECT CAST(COALESCE(SUM(stored_bytes), 0) AS BIGINT) FROM demos WHERE org_id = :org_id AND stored_bytes > 0"
        f" AND (state <> '{DemoState.UPLOADING}' OR begun_at_ms < :begun_ms"
        " OR (begun_at_ms = :begun_ms AND upload_id <= :upload_id))"
    )
    params: dict[str, Value] = {"org_id": demo.org_id, "begun_ms": demo.begun_at_ms, "upload_id": demo.upload_id}
    return await rows.read_number(db, sql, params)


async def count_by_state(db: Database) -> dict[tuple[str, ...], float]:
    """Return how many demos are recorded and uploaded at present, by state."""
    sql = (
        f"SELECT state, COUNT(*) FROM demos WHERE state IN ('{DemoState.RECORDING}', '{DemoState.UPLOADING}')"
        " GROUP BY state"
    )
    return {(state,): number for state, number in msgspec.convert(await db.read(sql), list[tuple[str, int]])}


# --- uploads ------------------------------------------------------------------------------------------------------


async def owner_of_token(db: Database, token_hash: str) -> tuple[str, str] | None:
    """Return the match and the attempt that a token belonged to, from its demos: its server may have been replaced."""
    sql = "SELECT server_id, attempt FROM demos WHERE token_hash = :token_hash LIMIT 1"
    row = await db.read_one(sql, {"token_hash": token_hash})
    return None if row is None else msgspec.convert(row, tuple[str, str])


async def begin(db: Database, demo: DemoRow, upload: Upload, now_ms: int) -> DemoRow:
    """Begin an upload: of the demo that its server was expected to upload for this map, else of another one.

    `demo` has its match, map and attempt. UploaderBusyError if its server uploads another one, TooManyFilesError if the
    map has too many. Repeating it changes nothing: the answer of the database may have been lost.
    """
    await lose_stale(db, now_ms)
    known = await of_server(db, demo.server_id)
    ours = next((one for one in known if one.upload_id == upload.upload_id), None)
    if ours is not None:
        return ours
    of_map = [one for one in known if one.map_number == demo.map_number]
    if sum(one.file_name is not None for one in of_map) >= MAX_FILES:
        raise TooManyFilesError
    expected = [one for one in of_map if one.attempt == demo.attempt and one.file_name is None]
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
    """Report the progress of uploads, in bytes by upload id; False if all were declared dead."""
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
    """Record the end of an upload, also of one that was declared dead meanwhile; False if another has begun.

    With it, run other statements in the same transaction.
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
    """Record that uploads are interrupted whose process is gone; return how many."""
    return await _lose(
        db,
        "(renewed_at_ms <= :renewed_ms OR begun_at_ms <= :begun_ms)",
        {"renewed_ms": now_ms - STALE_MS, "begun_ms": now_ms - UPLOAD_LIMIT_MS - STALE_MS},
        now_ms,
    )


async def lose_of(db: Database, owner: str, now_ms: int) -> int:
    """Record that the uploads of a process are interrupted, which is gone; return how many."""
    return await _lose(db, "owner = :owner", {"owner": owner}, now_ms)


async def lose_all(db: Database, now_ms: int) -> int:
    """The same of all processes. Only for the start of the only service that uses the database."""
    return await _lose(db, "owner IS NOT NULL", {}, now_ms)


async def _lose(db: Database, which: str, params: dict[str, Value], now_ms: int) -> int:
    sql = (
        f"UPDATE demos SET state = '{DemoState.MISSING}', reason = '{MissingReason.INTERRUPTED}',"
        " ended_at_ms = :now_ms, uploads_for = NULL, stored_bytes = received_bytes"
        f" WHERE state = '{DemoState.UPLOADING}' AND {which} RETURNING id"
    )
    found = f"SELECT COUNT(*) FROM demos WHERE state = '{DemoState.UPLOADING}' AND {which}"
    if not await rows.read_number(db, found, params):  # a write costs more than a read
        return 0
    return len(await rows.write_one(db, sql, {**params, "now_ms": now_ms}))


async def give_up_overdue(db: Database, now_ms: int) -> int:
    """Record that recordings are missing that were not uploaded in time; return how many."""
    # An earlier version releases the server of a match that it took over without giving up its demos.
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
    """Return ids and storage keys of files whose upload ended before then, oldest first."""
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
    """Record that the file of a demo was deleted. What was missing keeps its reason."""
    sql = (
        "UPDATE demos SET storage_key = NULL, stored_bytes = 0,"
        f" reason = COALESCE(reason, '{MissingReason.DELETED}'), state = '{DemoState.MISSING}'"
        " WHERE id = :id AND storage_key = :storage_key"
    )
    await rows.write_one(db, sql, {"id": demo_id, "storage_key": storage_key})
