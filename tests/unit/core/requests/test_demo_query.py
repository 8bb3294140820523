"""The number of a file in a query string."""

from __future__ import annotations

import pytest

from matchpod.core.errors import InvalidParamsError
from matchpod.core.requests.demo_query import read_demo_query


def test_number_is_optional() -> None:
    assert read_demo_query([]) is None
    assert read_demo_query([("number", "2")]) == 2


@pytest.mark.parametrize("pair", [("number", "0"), ("number", "x"), ("number", "1001"), ("file", "1")])
def test_other_values_are_faults(pair: tuple[str, str]) -> None:
    with pytest.raises(InvalidParamsError):
        read_demo_query([pair])
