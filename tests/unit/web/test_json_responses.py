"""ETags of finished maps, series and results, and responses without a body for callers who have them."""

from __future__ import annotations

import httpx
import pytest

from tests.golden.golden_files import FOLDER as GOLDEN
from tests.unit.web import histories, sites
from tests.unit.web.sites import Site, check_error

site = sites.site

API = "/api/v1/cs2"
MATCH = "/api/v1/matches/cup-1"


def get(site: Site, path: str, etag: str | None = None, *, method: str = "GET", encoding: str = "") -> httpx.Response:
    headers = {} if etag is None else {"If-None-Match": etag}
    if encoding:
        headers["Accept-Encoding"] = encoding
    return site.request(method, path, key=site.key, headers=headers)


def history_paths(site: Site, server_id: str) -> list[str]:
    map_id = histories.map_ids(site, server_id)[0]
    (series,) = site.get(f"{API}/servers/{server_id}/series").json()["items"]
    maps = [f"{API}/{name}/{map_id}" for name in ("matches", "maps")]
    return [*maps, f"{maps[0]}/rounds", f"{maps[0]}/leaderboard", f"{API}/series/{series['seriesId']}"]


@pytest.fixture
def finished(site: Site) -> list[str]:
    """The paths of everything that is final about a finished match."""
    server_id = histories.new_series(site)
    histories.finish(site, server_id)
    other = site.new_server(externalMatchId="cup-1")
    site.start(other)
    site.end(other, result=(GOLDEN / "example-result.json").read_bytes())
    return [*history_paths(site, server_id), MATCH]


def test_finished_data_is_sent_once(site: Site, finished: list[str]) -> None:
    for path in finished:
        first = get(site, path)
        etag = first.headers["etag"]
        assert etag.startswith('W/"')
        assert first.headers["cache-control"] == "private, no-cache"
        for method in ("GET", "HEAD"):
            again = get(site, path, etag, method=method)
            assert (again.status_code, again.content) == (304, b""), path
            assert again.headers["etag"] == etag
            assert again.headers["cache-control"] == "private, no-cache"
            assert again.headers["x-request-id"].startswith("req_")
            assert not {"content-length", "content-type"} & set(again.headers)
        assert get(site, path, 'W/"other"').json() == first.json()


def test_compressed_response_has_the_same_etag(site: Site, finished: list[str]) -> None:
    plain, packed = get(site, finished[-1]), get(site, finished[-1], encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["etag"] == plain.headers["etag"]
    unchanged = get(site, finished[-1], plain.headers["etag"], encoding="gzip")
    assert (unchanged.status_code, unchanged.headers["vary"]) == (304, "accept-encoding")


@pytest.mark.parametrize("form", ["*", " * ", 'W/"x", {}', '{}, "y"', '"a,b",{}'])
def test_forms_of_if_none_match(site: Site, finished: list[str], form: str) -> None:
    etag = get(site, finished[0]).headers["etag"]
    assert get(site, finished[0], form.format(etag)).status_code == 304
    assert get(site, finished[0], form.format(etag.removeprefix("W/"))).status_code == 304


@pytest.mark.parametrize("form", ["", "W/", '"', "{}x", "{}", "x" * 5000])
def test_what_is_no_etag_matches_nothing(site: Site, finished: list[str], form: str) -> None:
    opaque = get(site, finished[0]).headers["etag"].removeprefix('W/"').removesuffix('"')
    assert get(site, finished[0], form.format(opaque)).status_code == 200


def test_live_data_has_no_etag(site: Site) -> None:
    server_id = histories.new_series(site, externalMatchId="cup-1")
    for path in (*history_paths(site, server_id), MATCH, f"/api/v1/servers/{server_id}"):
        for sent in (None, "*"):
            response = get(site, path, sent)
            assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
            assert "etag" not in response.headers


def test_newer_match_with_the_same_external_id_is_sent(site: Site, finished: list[str]) -> None:
    etag = get(site, MATCH).headers["etag"]
    site.clock.at_ms += 1000
    site.new_server(externalMatchId="cup-1")
    assert get(site, MATCH, etag).json()["result"] is None


def test_other_organization_gets_no_304(site: Site, finished: list[str]) -> None:
    for path in finished:
        etag = get(site, path).headers["etag"]
        response = site.request("GET", path, key=site.other_key, headers={"If-None-Match": etag})
        assert response.status_code in (403, 404)
        check_error(site.request("GET", path, headers={"If-None-Match": "*"}), 401, "UNAUTHORIZED")
