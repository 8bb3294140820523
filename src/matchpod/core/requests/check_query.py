"""Parse the query string of a request to check a region."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.core.requests.query_fields import QueryFields

_NAMES: Final = ("allocate",)


class YesOrNo(StrEnum):
    """A flag in a query string."""

    YES = "true"
    NO = "false"


class CheckQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a region check."""

    may_allocate: bool = False
    """Whether the check may allocate a waiting pod, which is deleted afterwards."""


def read_check_query(pairs: Sequence[tuple[str, str]]) -> CheckQuery:
    """Parse the query; raise InvalidParamsError with all faults."""
    fields = QueryFields(pairs, _NAMES)
    allocate = fields.choice("allocate", YesOrNo)
    fields.check()
    return CheckQuery(may_allocate=allocate is YesOrNo.YES)
