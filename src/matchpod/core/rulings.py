"""Define rulings: decisions of admins about a match after its end. The outcome of the match never changes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Protocol

import msgspec
from msgspec import Meta

from matchpod.core.model import GameSettings, MatchType

RULING_DAYS: Final = 30
"""Maximum number of days after the end of a match in which a ruling is possible: enough time for protests."""
_RULING_MS: Final = RULING_DAYS * 24 * 60 * 60 * 1000


class RuledWinner(StrEnum):
    """The winner according to a ruling."""

    TEAM1 = "team1"
    TEAM2 = "team2"
    NONE = "none"
    """No team: the match is void."""


class RulingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A requested ruling; `by` is the person at the caller's platform who decided."""

    winner: RuledWinner
    reason: str | None = None
    by: str | None = None


class Ruling(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A decision of an admin about a match that has ended."""

    id: Annotated[str, Meta(description="The id of the ruling (`rul_…`).")]
    winner: Annotated[
        RuledWinner, Meta(description="`team1` or `team2` wins; `none`: the match is void, and counts for no team.")
    ]
    reason: Annotated[str | None, Meta(description="Why, as given; or null.")]
    by: Annotated[str | None, Meta(description="The person who decided, as given; or null.")]
    ruled_at: Annotated[str, Meta(description="When it was made: ISO 8601 in UTC, with milliseconds.")]


RulingOrNull = Annotated[
    Ruling | None,
    Meta(
        description="What an admin ruled after the end of the match; null if there is no ruling, or if it was "
        "withdrawn. It changes no other field."
    ),
]


def rulings_end_ms(ended_at_ms: int) -> int:
    """Return the deadline for rulings on a match that ended at this time."""
    return ended_at_ms + _RULING_MS


def has_ruled_teams(settings: GameSettings) -> bool:
    """True if a ruling can name a winner. A deathmatch has no teams, and can only be declared void."""
    return settings.match_type is not MatchType.DEATHMATCH


class _Decision(Protocol):
    """The common fields of a ruling in its stored, returned and displayed forms."""

    @property
    def winner(self) -> RuledWinner: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def by(self) -> str | None: ...


def ruling_words(ruling: _Decision) -> str:
    """Return a ruling in words, for logs and terminals."""
    who = "void" if ruling.winner is RuledWinner.NONE else f"{ruling.winner} wins"
    decided = None if ruling.by is None else f"decided by {ruling.by}"
    return "; ".join(part for part in (who, ruling.reason, decided) if part)
