"""How does something said about a match become part of it? It is stored as an entry of its log, then handed on."""

from __future__ import annotations

import msgspec

from matchpod.ports import Database
from matchpod.service.live import LiveMatches
from matchpod.storage import raw_log
from matchpod.storage.raw_log import RawEntry

NO_HEADERS = b"{}"


async def store(
    db: Database,
    live: LiveMatches,
    server_id: str,
    kind: str,
    *,
    received_ms: int,
    body: bytes,
    headers: bytes = NO_HEADERS,
) -> None:
    """Commit an entry, then hand it to whoever follows the match in this process."""
    rows = await db.write(raw_log.append(server_id, kind, received_ms=received_ms, headers=headers, body=body))
    ((seq,),) = msgspec.convert(rows[-1], list[tuple[int]])
    live.offer(RawEntry(server_id=server_id, seq=seq, kind=kind, received_ms=received_ms, headers=headers, body=body))
