"""A server as it is stored, for tests that need one."""

from __future__ import annotations

import msgspec

from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.storage.servers import ServerRow
from tests.vaults import stored_tokens


def server_row(name: str = "srv_1", **fields: object) -> ServerRow:
    """Return a running server of `org_1`, with these fields."""
    row = ServerRow(
        id=name,
        game_id=f"game of {name}",
        org_id="org_1",
        region="eu",
        phase=ServerPhase.RUNNING,
        status=ServerStatus.RUNNING,
        settings=b"{}",
        **stored_tokens(f"log-{name}", f"report-{name}"),
        plugin_match_id=27,
        created_at_ms=1,
        next_at_ms=1,
    )
    return msgspec.structs.replace(row, **fields)
