"""The query string of the audit log."""

from __future__ import annotations

import pytest

from matchpod.core.errors import InvalidParamsError
from matchpod.core.requests.audit_query import AuditQuery, read_audit_query
from tests.unit.core.requests.shown_faults import shown


def test_query_is_read() -> None:
    assert read_audit_query([]) == AuditQuery(before=None, page_size=20)
    entry = "act_01m7n66kdybpf2gfy51gg7prj6"
    assert read_audit_query([("before", entry), ("pageSize", "100")]) == AuditQuery(before=entry, page_size=100)


def test_all_faults_are_reported() -> None:
    with pytest.raises(InvalidParamsError) as raised:
        read_audit_query([("before", "a b"), ("pageSize", "101"), ("page", "1")])
    assert dict(shown(raised.value.faults)) == {
        "before": "must be the id of an entry: act_ and 26 characters",
        "pageSize": "must be a whole number from 1 to 100",
        "page": "is not a known parameter; did you mean pageSize?",
    }


@pytest.mark.parametrize("before", ["x", "\x00", "\ud800", "a" * 65, "act_1", "act_01m7n66kdybpf2gfy51gg7prj6\n", "é"])
def test_text_that_is_no_id_is_rejected(before: str) -> None:
    with pytest.raises(InvalidParamsError, match="before must be the id of an entry"):
        read_audit_query([("before", before)])
