"""Format callback delivery attempts, for `callbacks list` and `match show`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.service.row_views import view_of
from matchpod.storage.outbox import AttemptRow


class AttemptView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One attempt, as printed."""

    number: int
    at: str
    status: int | None
    duration_ms: int
    error: str | None


def attempt_views(attempts: Sequence[AttemptRow]) -> list[AttemptView]:
    """Return the attempts as printed, in the same order."""
    return [view_of(AttemptView, attempt) for attempt in attempts]
