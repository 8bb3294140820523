"""Tests of the query of a request to check a region."""

from __future__ import annotations

import pytest

from matchpod.core.errors import InvalidParamsError
from matchpod.core.requests.check_query import read_check_query


@pytest.mark.parametrize(
    ("pairs", "may_allocate"), [([], False), ([("allocate", "true")], True), ([("allocate", "false")], False)]
)
def test_pods_are_allocated_only_if_asked_for(pairs: list[tuple[str, str]], may_allocate: bool) -> None:
    assert read_check_query(pairs).may_allocate is may_allocate


@pytest.mark.parametrize("pairs", [[("allocate", "yes")], [("alocate", "true")]])
def test_other_queries_are_rejected(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(InvalidParamsError):
        read_check_query(pairs)
