"""Parse the query string of the list of matches, which the API calls servers."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Final

import msgspec

from matchpod.core.labels import Label
from matchpod.core.requests.history_query import DEFAULT_PAGE_SIZE, LABEL, MAX_PAGE, MAX_PAGE_SIZE, read_labels
from matchpod.core.requests.query_fields import QueryFields
from matchpod.core.requests.text_rules import external_id_fault, filter_fault
from matchpod.core.search_words import MAX_SEARCH, search_words
from matchpod.core.server_status import ServerStatus
from matchpod.core.views.progress import PublicPhase

MAX_REGION: Final = 64
"""Maximum length of a region code in a filter, longer than any code."""

SEARCH: Final = "search"
OUTCOME: Final = "outcome"

_NAMES: Final = (
    "page", "pageSize", SEARCH, OUTCOME, "status", "phase", "region", "externalMatchId", LABEL, "dateFrom", "dateTo",
)  # fmt: skip

_RUNNING: Final = frozenset(PublicPhase) - {PublicPhase.ALLOCATING, PublicPhase.ENDED}
_PHASES: Final = {
    ServerStatus.ALLOCATING: {PublicPhase.ALLOCATING},
    ServerStatus.PENDING: {PublicPhase.ALLOCATING},
    ServerStatus.RUNNING: _RUNNING,
    ServerStatus.STOPPED: {PublicPhase.ENDED},
    ServerStatus.FAILED: {PublicPhase.ENDED},
}
"""The phases that a server with each status can have."""


class ListedOutcome(StrEnum):
    """The outcome by which a list of matches is filtered."""

    FINISHED = "finished"
    CANCELED = "canceled"
    """Ended without a result, but not because of a failure."""
    FAILED = "failed"


class MatchListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The filters and the page number of a list. `from_ms` (inclusive) and `before_ms` limit the creation time."""

    page: int = 1
    page_size: int = DEFAULT_PAGE_SIZE
    words: tuple[str, ...] | None = None
    """Search words: a match must have a word that begins with each of them. None if the query has no search."""
    outcome: ListedOutcome | None = None
    status: ServerStatus | None = None
    phase: PublicPhase | None = None
    region: str | None = None
    external_match_id: str | None = None
    labels: tuple[Label, ...] = ()
    """Only matches with all of these labels."""
    from_ms: int | None = None
    before_ms: int | None = None

    @property
    def is_empty(self) -> bool:
        """True if no server can have both the requested status and the requested phase."""
        return self.status is not None and self.phase is not None and self.phase not in _PHASES[self.status]

    @property
    def needs_phase(self) -> bool:
        """True if the list must be filtered by phase, because the status does not imply the phase."""
        return self.phase is not None and self.status in (None, ServerStatus.RUNNING)


def read_match_list_query(pairs: Sequence[tuple[str, str]]) -> MatchListQuery:
    """Parse the query; raise InvalidParamsError with all faults."""
    fields = QueryFields(pairs, _NAMES, repeatable=(LABEL,))
    page = fields.integer("page", at_least=1, at_most=MAX_PAGE)
    page_size = fields.integer("pageSize", at_least=1, at_most=MAX_PAGE_SIZE)
    search = fields.text(SEARCH, partial(filter_fault, max_length=MAX_SEARCH))
    outcome = fields.choice(OUTCOME, ListedOutcome)
    status, phase = fields.choice("status", ServerStatus), fields.choice("phase", PublicPhase)
    region = fields.text("region", partial(filter_fault, max_length=MAX_REGION))
    external_match_id = fields.text("externalMatchId", external_id_fault)
    labels = read_labels(fields)
    date_from, date_to = fields.date("dateFrom"), fields.date("dateTo")
    fields.check()
    return MatchListQuery(
        page=page or 1,
        page_size=page_size or DEFAULT_PAGE_SIZE,
        words=None if search is None else search_words(search),
        outcome=outcome,
        status=status,
        phase=phase,
        region=region,
        external_match_id=external_match_id,
        labels=labels,
        from_ms=None if date_from is None else date_from.from_ms,
        before_ms=None if date_to is None else date_to.before_ms,
    )
