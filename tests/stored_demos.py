"""Upload a demo of a match that is stored, as its server would."""

from __future__ import annotations

from collections.abc import AsyncIterator

from matchpod.adapters.clock import SystemClock
from matchpod.ports import Clock, Database, DemoStorage
from matchpod.service.demos.uploads import Ended, Sender, UploadHead, UploadLimits, Uploads
from matchpod.storage import history, servers


async def upload_demo(
    db: Database,
    storage: DemoStorage,
    server_id: str,
    body: bytes,
    *,
    map_number: int = 0,
    file_name: str = "a.dem",
    clock: Clock | None = None,
) -> Ended:
    """Upload a demo, of the first map by default; without a byte, it is cut."""
    row = await servers.get(db, server_id)
    assert row is not None
    maps = tuple(await history.maps_of(db, server_id))
    uploads = Uploads(db=db, clock=clock or SystemClock(), storage=storage, owner="test", limits=UploadLimits())
    sender = Sender(row=row, attempt=row.attempt, token_hash=row.report_token_hash, maps=maps)
    head = UploadHead(token="", file_name=file_name, map_number=map_number)
    return await uploads.receive(sender, head, _whole(body))


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body
