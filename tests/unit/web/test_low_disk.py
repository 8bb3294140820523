"""An almost full disk: new matches are rejected, everything else goes on."""

from __future__ import annotations

from tests.unit.web import sites
from tests.unit.web.sites import Site, check_error
from tests.vaults import tokens_of

site = sites.site


def test_new_match_gets_503_with_retry_after(site: Site) -> None:
    site.free_mb = 511
    response = site.create()
    assert check_error(response, 503, "SERVICE_UNAVAILABLE")["message"] == (
        "The disk of the service is almost full, so it accepts no new matches. Retry later."
    )
    assert response.headers["retry-after"] == "60"
    check_error(site.create(region="mars"), 400, "INVALID_PARAMS")


def test_earlier_matches_go_on(site: Site) -> None:
    created = site.create(None, "k-1").json()
    site.free_mb, site.clock.at_ms = 0, site.clock.at_ms + 5_000
    check_error(site.create(), 503, "SERVICE_UNAVAILABLE")
    assert site.create(None, "k-1").json() == created
    token = tokens_of(site.row(created["serverId"])).log
    assert site.request("POST", f"/ingest/logs/{token}", content=b"line\n").status_code == 200
    assert site.cancel(created["serverId"]).status_code == 200
