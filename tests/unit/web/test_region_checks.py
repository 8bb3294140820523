"""The endpoints for checks of regions: who may use them, and what a post of a checked server becomes."""

from __future__ import annotations

from matchpod.core.servers.log_addresses import check_token
from matchpod.ports import Statement
from matchpod.service.region_checks.requests import PAUSE_MS
from matchpod.storage import region_checks
from tests.unit.web import sites
from tests.unit.web.sites import Site, check_error

site = sites.site


def path_of(site: Site) -> str:
    return f"/api/v1/regions/{site.services.regions.all()[0].code}/check"


def only_organization(site: Site) -> None:
    """Remove all organizations but one."""
    site.run(site.db.write([Statement("DELETE FROM organizations WHERE name <> 'ours'")]))


def test_owner_requests_a_check_and_reads_it(site: Site) -> None:
    only_organization(site)
    check_error(site.get(path_of(site)), 404, "NOT_FOUND")
    response = site.request("POST", path_of(site), key=site.key)
    assert response.status_code == 202
    requested = response.json()
    assert (requested["state"], requested["healthy"], requested["servers"]) == ("requested", None, [])
    assert site.get(path_of(site)).json() == requested
    assert site.request("POST", path_of(site), key=site.key).json()["id"] == requested["id"], "it is under way"
    (act,) = [
        item for item in site.run(site.db.read("SELECT action, actor FROM audit_log")) if item[0] == "region_checked"
    ]
    assert str(act[1]).startswith("key_")


def test_owner_of_one_of_several_organizations_may_not_check_regions(site: Site) -> None:
    for method in ("POST", "GET"):
        check_error(site.request(method, path_of(site), key=site.key), 403, "FORBIDDEN")


def test_next_check_has_to_wait(site: Site) -> None:
    only_organization(site)
    check_id = site.request("POST", path_of(site), key=site.key).json()["id"]
    site.run(region_checks.begin(site.db, path_of(site).split("/")[4], site.clock.now_ms()))
    site.run(region_checks.renew(site.db, check_id, site.clock.now_ms(), is_done=True))
    response = site.request("POST", path_of(site), key=site.key)
    check_error(response, 429, "RATE_LIMIT_EXCEEDED")
    assert response.headers["retry-after"] == str(PAUSE_MS // 1000)


def test_unknown_region_and_parameter_are_rejected(site: Site) -> None:
    only_organization(site)
    check_error(site.request("POST", "/api/v1/regions/nowhere/check", key=site.key), 404, "NOT_FOUND")
    check_error(site.request("POST", f"{path_of(site)}?allocate=yes", key=site.key), 400, "INVALID_PARAMS")


def test_post_of_a_checked_server_is_noted_and_not_stored(site: Site) -> None:
    token = check_token("mp-00000000000000aa", "secret")
    url, stamp = f"/ingest/logs/{token}", "09/21/2026 - 14:13:20.392"
    check_error(site.request("POST", url, content=b"line\n"), 410, "GONE")
    site.run(site.db.write([region_checks.expect_post("chk_1", token, site.clock.now_ms())]))
    for headers in ({"X-Timestamp": stamp}, {}):
        assert site.request("POST", url, content=b"line\n", headers=headers).status_code == 200
    post = site.run(region_checks.post_of(site.db, token))
    assert post is not None
    assert (post.stamp, post.received_ms) == (stamp, site.clock.now_ms()), "the first one counts"
    assert site.run(site.db.read("SELECT server_id FROM raw_log")) == []
    site.run(site.db.write([region_checks.forget_posts("chk_1")]))
    check_error(site.request("POST", url, content=b"line\n"), 410, "GONE")
