"""Paths lead to endpoints, whatever their parameters contain."""

from __future__ import annotations

import re
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.web.lookup import Lookup
from matchpod.web.routes import ENDPOINTS

LOOKUP = Lookup(ENDPOINTS)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=100)


@given(TEXT)
def test_any_parameter_comes_back_from_its_path(value: str) -> None:
    for endpoint in ENDPOINTS:
        raw = re.sub(r"\{\w+\}", lambda _: quote(value, safe=""), endpoint.path).encode()
        found, params = LOOKUP.find({"method": endpoint.method, "raw_path": raw, "path": "/unused"})
        if found is endpoint:
            assert params == (value,) * endpoint.path.count("{")
        else:
            # A fixed path is there for this very word.
            assert "{" not in found.path


def test_two_endpoints_cannot_share_a_path_and_method() -> None:
    with pytest.raises(ValueError, match="is there twice"):
        Lookup([ENDPOINTS[0], msgspec.structs.replace(ENDPOINTS[0], name="again")])
