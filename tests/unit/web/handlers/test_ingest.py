"""Posts of game servers and plugins are stored and acknowledged, or rejected with 410 after the match."""

from __future__ import annotations

import pytest

from matchpod.storage import raw_log
from matchpod.storage.servers import ServerRow
from tests.unit.web import sites
from tests.unit.web.sites import PLAYER, Site, check_error
from tests.vaults import tokens_of

site = sites.site


def new_row(site: Site) -> ServerRow:
    teams = {"team1": {"players": [PLAYER]}, "team2": {}}
    settings = {"matchType": "competitive", "map": "de_dust2", "teams": teams}
    return site.row(site.new_server(gameSettings=settings))


def stored(site: Site, server_id: str) -> list[raw_log.RawEntry]:
    return site.run(raw_log.read_after(site.db, server_id, 0, limit=10))


def test_post_after_the_end_of_the_match_returns_410(site: Site) -> None:
    row = new_row(site)
    site.end(row.id, result=b"{}")
    check_error(site.request("POST", f"/ingest/logs/{tokens_of(row).log}", content=b"line\n"), 410, "GONE")
    check_error(site.request("POST", f"/ingest/anticheat/{tokens_of(row).report}", content=b"{}"), 410, "GONE")


@pytest.mark.parametrize(
    ("kind", "path", "report"),
    [
        ("report", "/ingest/reports", b'{"event":"going_live"}'),
        ("detection", "/ingest/anticheat/{}", b'{"a":1}'),
        ("shots", "/ingest/shots/{}", b'{"mapNumber":1,"rounds":[{"roundNumber":1,"players":[]}]}'),
    ],
)
def test_report_of_a_plugin_is_stored(site: Site, kind: str, path: str, report: bytes) -> None:
    row = new_row(site)
    token = tokens_of(row).report
    response = site.request("POST", path.format(token), headers={"X-Matchpod-Token": token}, content=report)
    assert response.status_code == 200
    assert [(entry.kind, entry.body) for entry in stored(site, row.id)] == [(kind, report)]


def test_malformed_report_of_shots_is_rejected_with_the_reason(site: Site) -> None:
    row = new_row(site)
    response = site.request("POST", f"/ingest/shots/{tokens_of(row).report}", content=b'{"mapNumber":9,"rounds":[]}')
    check_error(response, 400, "INVALID_PARAMS")
    assert "`int` <= 5 - at `$.mapNumber`" in response.json()["message"]
    assert stored(site, row.id) == []


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/ingest/reports"), ("POST", "/ingest/anticheat/x"), ("GET", "/ingest/match")]
)
def test_plugin_without_a_valid_token_is_unauthorized(site: Site, method: str, path: str) -> None:
    for headers in ({}, {"X-Matchpod-Token": "x"}, {"X-Matchpod-Token": tokens_of(new_row(site)).log}):
        check_error(site.request(method, path, headers=headers, content=b"{}"), 401, "UNAUTHORIZED")


def test_empty_report_is_rejected(site: Site) -> None:
    row = new_row(site)
    response = site.request("POST", "/ingest/reports", headers={"X-Matchpod-Token": tokens_of(row).report})
    check_error(response, 400, "INVALID_PARAMS")


def test_match_file_is_returned_for_the_token(site: Site) -> None:
    row = new_row(site)
    response = site.request("GET", "/ingest/match", headers={"X-Matchpod-Token": tokens_of(row).report})
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    assert response.json()["matchid"] == row.plugin_match_id
