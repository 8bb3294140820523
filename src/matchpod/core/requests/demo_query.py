"""Parse the query string of a demo download."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from matchpod.core.requests.query_fields import QueryFields

NUMBER: Final = "number"
MAX_NUMBER: Final = 1_000
"""Highest demo number in a query. A map never has nearly as many demos."""


def read_demo_query(pairs: Sequence[tuple[str, str]]) -> int | None:
    """Return the number of the demo; None if the query has none. Raise InvalidParamsError with all faults."""
    fields = QueryFields(pairs, (NUMBER,))
    number = fields.integer(NUMBER, at_least=1, at_most=MAX_NUMBER)
    fields.check()
    return number
