"""Query parameters of the history endpoints: all faults are reported before any lookup."""

from __future__ import annotations

import pytest

from tests.unit.web import sites
from tests.unit.web.histories import map_ids
from tests.unit.web.sites import Site, check_error

site = sites.site
API = "/api/v1/cs2"
UNKNOWN = "00000000-0000-4000-8000-000000000000"
SERIES, MAPS = f"{API}/series", f"{API}/matches"
OF_SERVER = f"{API}/servers/srv_0/series"
EVENTS, LEADERBOARD = f"{API}/matches/{UNKNOWN}/events", f"{API}/matches/{UNKNOWN}/leaderboard"
LISTS = [SERIES, MAPS, OF_SERVER]


def faults(site: Site, url: str, key: str | None = None) -> dict[str, str]:
    """Return the reported faults by parameter."""
    details = check_error(site.get(url, key), 400, "INVALID_PARAMS")["details"]
    assert isinstance(details, list)
    messages = {fault["path"]: fault["message"] for fault in details}
    assert len(messages) == len(details)
    return messages


@pytest.mark.parametrize(
    ("path", "query"),
    [
        *((path, "status=LIVE") for path in LISTS),
        (MAPS, "map=%00"),
        (MAPS, "limit=101"),
        (EVENTS, "afterSeq=-1"),
        (EVENTS, "limit=0"),
        (LEADERBOARD, "sortBy=deaths"),
        (LEADERBOARD, "limit=33"),
    ],
)
def test_invalid_parameter_is_reported(site: Site, path: str, query: str) -> None:
    assert list(faults(site, f"{path}?{query}")) == [query.split("=")[0]]


def test_all_faults_are_reported_at_once(site: Site) -> None:
    query = "page=0&pageSize=x&limit=0&map=&status=on&serverId=%20&dateFrom=a&dateTo=b&colour=red&map=de_nuke"
    messages = faults(site, f"{MAPS}?{query}")
    assert set(messages) == {name.split("=")[0] for name in query.split("&")}
    response = site.get(f"{MAPS}?{query}").json()
    assert response["message"] == "9 faults in the query"


def test_series_of_a_server_cannot_be_filtered_by_server(site: Site) -> None:
    server_id = site.new_server()
    for other in (server_id, "srv_other"):
        messages = faults(site, f"{API}/servers/{server_id}/series?serverId={other}")
        assert messages == {
            "serverId": "is not a known parameter; known parameters: page, pageSize, status, dateFrom, dateTo"
        }


@pytest.mark.parametrize("rest", ["events", "leaderboard"])
def test_query_is_checked_before_the_organization(site: Site, rest: str) -> None:
    server_id = site.new_server()
    (map_id,) = map_ids(site, server_id)
    assert list(faults(site, f"{API}/matches/{map_id}/{rest}?x=1", site.other_key)) == ["x"]
    assert list(faults(site, f"{API}/servers/{server_id}/series?x=1", site.other_key)) == ["x"]
    check_error(site.get(f"{API}/matches/{map_id}/{rest}?limit=1", site.other_key), 403, "FORBIDDEN")
