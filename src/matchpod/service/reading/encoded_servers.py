"""Cache the JSON of requested servers, so that a response is not built again if nothing has changed.

A response depends only on the columns of the server's row, the state of its match and the audience. It is used only if
all three are unchanged. The caller of `find` has to check that the server belongs to the caller's organization.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec

from matchpod.core.views.match_progress import LiveState
from matchpod.ports import Row
from matchpod.service.identity.principals import Audience

MAX_KEPT: Final = 1_000
"""Maximum number of cached responses; each takes about 5 KB. The oldest response is dropped first."""


class EncodedServer(msgspec.Struct, kw_only=True, eq=False):
    """The JSON of a server, and the data from which it was built."""

    org_id: str
    columns: Row
    state: LiveState | None
    """The state of the match; None unless it is running."""
    body: bytes
    packed: bytes | None = None
    """The compressed body; None until it is needed for the first time."""
    version: int | None = None
    """The database version (`db_version`) when the columns were last compared."""


class EncodedServers:
    """A cache of the latest response per server and audience."""

    def __init__(self, max_kept: int = MAX_KEPT) -> None:
        self._max_kept = max_kept
        self._kept: OrderedDict[tuple[str, Audience], EncodedServer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def latest(self, server_id: str, *, audience: Audience) -> EncodedServer | None:
        """Return the latest response, which may be outdated."""
        return self._kept.get((server_id, audience))

    def find(
        self, server_id: str, columns: Row, state: LiveState | None, *, audience: Audience
    ) -> EncodedServer | None:
        """Return the latest response if nothing that it depends on has changed."""
        kept = self._kept.get((server_id, audience))
        return kept if kept is not None and kept.state is state and kept.columns == columns else None

    def keep(self, server_id: str, encoded: EncodedServer, *, audience: Audience) -> None:
        """Cache a response. It replaces the previous response for this server and audience."""
        key = (server_id, audience)
        self._kept[key] = encoded
        self._kept.move_to_end(key)
        if len(self._kept) > self._max_kept:
            self._kept.popitem(last=False)
