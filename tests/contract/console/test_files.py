"""The files of pages: cached for ever at the address with their hash, and at no other address."""

from __future__ import annotations

import pytest

from matchpod.console.rendering import ASSETS, asset_path
from tests.contract.console import console_site
from tests.contract.console.console_site import ConsoleSite

pytestmark = pytest.mark.asyncio(loop_scope="module")
site = console_site.site


@pytest.mark.parametrize("name", ASSETS)
async def test_file_is_cached_at_the_address_with_its_hash(site: ConsoleSite, name: str) -> None:
    response = await site.request("GET", asset_path(name))
    assert response.status_code == 200
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["content-type"].encode() == ASSETS[name]


@pytest.mark.parametrize("name", ASSETS)
async def test_file_of_another_version_is_not_found_and_not_stored(site: ConsoleSite, name: str) -> None:
    digest = asset_path(name).split("/")[3]
    for other in ("0" * 12, digest[:-1], f"{digest}0", digest.upper() + "x"):
        response = await site.request("GET", f"/console/assets/{other}/{name}")
        assert response.status_code == 404
        assert response.headers["cache-control"] == "no-store"
    assert (await site.request("GET", f"/console/assets/{digest}/none.css")).status_code == 404
