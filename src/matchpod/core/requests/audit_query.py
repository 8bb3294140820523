"""Parse the query string of the audit log. Pages continue after an entry id, so that new entries do not shift them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from matchpod.core.faults import Fault, FaultCode
from matchpod.core.requests.history_query import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE
from matchpod.core.requests.query_fields import QueryFields

AUDIT_ID: Final = r"act_[0-9a-z]{26}"
"""Pattern of entry ids. Ids are compared as texts, so any other text would select all entries or none."""

_NAMES: Final = ("before", "pageSize")


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the audit log: the newest entries, or the entries before the entry `before`."""

    before: str | None = None
    page_size: int = DEFAULT_PAGE_SIZE


def read_audit_query(pairs: Sequence[tuple[str, str]]) -> AuditQuery:
    """Parse the query; raise InvalidParamsError with all faults. The entry `before` need not exist any longer."""
    fields = QueryFields(pairs, _NAMES)
    before = fields.text("before", _id_fault)
    page_size = fields.integer("pageSize", at_least=1, at_most=MAX_PAGE_SIZE)
    fields.check()
    return AuditQuery(before=before, page_size=page_size or DEFAULT_PAGE_SIZE)


def _id_fault(text: str) -> Fault | None:
    return None if re.fullmatch(AUDIT_ID, text) else Fault(FaultCode.NOT_AN_AUDIT_ID)
