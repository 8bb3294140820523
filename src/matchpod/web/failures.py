"""Which errors can endpoints have in common? What can go wrong with any request, and with any that needs a key."""

from __future__ import annotations

from typing import Final

from matchpod.core.errors import (
    ForbiddenError,
    MatchpodError,
    RateLimitError,
    UnauthorizedError,
    UnavailableError,
)

ANYWHERE: Final[tuple[type[MatchpodError], ...]] = (MatchpodError, UnavailableError)
WITH_KEY: Final = (UnauthorizedError, ForbiddenError, RateLimitError, *ANYWHERE)
