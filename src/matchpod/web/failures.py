"""The errors that all endpoints, and all endpoints with a key, have in common."""

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
