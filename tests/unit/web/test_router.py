"""The router finds endpoints for any parameter values."""

from __future__ import annotations

import re
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.web.router import Router
from matchpod.web.routes import ENDPOINTS

ROUTER = Router(ENDPOINTS)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=100)


@given(TEXT)
def test_any_parameter_value_is_read_back_from_its_path(value: str) -> None:
    for endpoint in ENDPOINTS:
        raw = re.sub(r"\{\w+\}", lambda _: quote(value, safe=""), endpoint.path).encode()
        found, params = ROUTER.find({"method": endpoint.method, "raw_path": raw, "path": "/unused"})
        if found is endpoint:
            assert params == (value,) * endpoint.path.count("{")
        else:
            # The value happens to be a segment of a path without parameters.
            assert "{" not in found.path


def test_two_endpoints_cannot_share_a_path_and_method() -> None:
    with pytest.raises(ValueError, match="is defined twice"):
        Router([ENDPOINTS[0], msgspec.structs.replace(ENDPOINTS[0], name="again")])
