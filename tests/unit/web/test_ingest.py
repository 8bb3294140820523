"""What game servers and plugins send is stored and acknowledged; what is not wanted any more is told so."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from matchpod.service.conclusion import Ending
from matchpod.storage import raw_log
from matchpod.storage.servers import ServerRow
from tests.unit.web import sites
from tests.unit.web.sites import PLAYER, Site, away, check_error

site = sites.site
LIMIT = 1024 * 1024


def new_row(site: Site) -> ServerRow:
    teams = {"team1": {"players": [PLAYER]}, "team2": {}}
    settings = {"matchType": "competitive", "map": "de_dust2", "teams": teams}
    return site.row(site.new_server(gameSettings=settings))


def stored(site: Site, server_id: str) -> list[raw_log.RawEntry]:
    return site.run(raw_log.read_after(site.db, server_id, 0, limit=10))


def test_log_lines_are_stored_with_the_headers_that_count(site: Site) -> None:
    row = new_row(site)
    headers = {
        "X-LogBytes-BeginOffset": "0",
        "X-LogBytes-EndOffset": "5",
        "User-Agent": "Valve/Steam HTTP Client 1.0 (730)",
    }
    answer = site.ask("POST", f"/ingest/logs/{row.log_token}", headers=headers, content=b"line\n")
    assert (answer.status_code, answer.content) == (200, b'{"ok":true}')
    (entry,) = stored(site, row.id)
    assert (entry.kind, entry.body) == ("log", b"line\n")
    assert b'"x-logbytes-endoffset":"5"' in entry.headers
    assert b"Valve" not in entry.headers


def test_log_lines_show_in_the_live_match(site: Site) -> None:
    row = new_row(site)
    site.start(row.id)
    line = f'L 09/21/2026 - 14:13:20.123 - "Ann<2><[U:1:{int(PLAYER) - 76561197960265728}]><>" entered the game\n'
    site.ask("POST", f"/ingest/logs/{row.log_token}", content=line.encode())
    players = site.get(f"/api/v1/servers/{row.id}").json()["match"]["players"]
    assert [(player["steamId"], player["name"]) for player in players] == [(PLAYER, "Ann")]


@pytest.mark.parametrize("token", ["unknown", "%00", "a%2Fb", "%F0%9F%8E%AE"])
def test_game_server_with_an_unknown_token_is_told_to_stop(site: Site, token: str) -> None:
    check_error(site.ask("POST", f"/ingest/logs/{token}", content=b"line\n"), 410, "GONE")


def test_body_of_a_stranger_is_not_read(site: Site) -> None:
    async def body() -> AsyncIterator[bytes]:
        raise AssertionError("nobody wants to know")
        yield b""

    async def exchange(path: str) -> int:
        transport = httpx.ASGITransport(app=site.app, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://matchpod.test") as client:
            return (await client.post(path, content=body())).status_code

    paths = ("/ingest/logs/unknown", "/ingest/reports", "/ingest/anticheat/unknown")
    assert [site.run(exchange(path)) for path in paths] == [410, 401, 401]


def test_game_server_whose_match_is_over_is_told_to_stop(site: Site) -> None:
    row = new_row(site)
    site.end(row.id, Ending(result=b"{}"))
    check_error(site.ask("POST", f"/ingest/logs/{row.log_token}", content=b"line\n"), 410, "GONE")
    check_error(site.ask("POST", f"/ingest/anticheat/{row.report_token}", content=b"{}"), 410, "GONE")


def test_log_post_over_the_limit_is_refused(site: Site) -> None:
    path = f"/ingest/logs/{new_row(site).log_token}"
    check_error(site.ask("POST", path, content=b"x" * (LIMIT + 1)), 413, "PAYLOAD_TOO_LARGE")
    assert site.ask("POST", path, content=b"x" * LIMIT).status_code == 200


def test_game_server_sends_again_what_the_database_could_not_take(site: Site) -> None:
    row = new_row(site)
    site.db.trouble = away()
    answer = site.ask("POST", f"/ingest/logs/{row.log_token}", content=b"line\n")
    check_error(answer, 503, "SERVICE_UNAVAILABLE")
    site.db.trouble = None
    assert stored(site, row.id) == []


def test_report_of_the_match_plugin_is_stored(site: Site) -> None:
    row = new_row(site)
    report = b'{"event":"going_live"}'
    answer = site.ask("POST", "/ingest/reports", headers={"X-Matchpod-Token": row.report_token}, content=report)
    assert answer.status_code == 200
    assert [(entry.kind, entry.body) for entry in stored(site, row.id)] == [("report", report)]


def test_detection_is_stored(site: Site) -> None:
    row = new_row(site)
    assert site.ask("POST", f"/ingest/anticheat/{row.report_token}", content=b'{"a":1}').status_code == 200
    assert [entry.kind for entry in stored(site, row.id)] == ["detection"]


def test_plugin_without_a_good_token_is_unauthorized(site: Site) -> None:
    check_error(site.ask("POST", "/ingest/reports", content=b"{}"), 401, "UNAUTHORIZED")
    check_error(
        site.ask("POST", "/ingest/reports", headers={"X-Matchpod-Token": "x"}, content=b"{}"), 401, "UNAUTHORIZED"
    )
    check_error(site.ask("POST", "/ingest/anticheat/x", content=b"{}"), 401, "UNAUTHORIZED")
    check_error(site.ask("GET", "/ingest/match"), 401, "UNAUTHORIZED")


def test_empty_report_is_refused(site: Site) -> None:
    row = new_row(site)
    answer = site.ask("POST", "/ingest/reports", headers={"X-Matchpod-Token": row.report_token})
    check_error(answer, 400, "INVALID_PARAMS")


def test_match_file_is_handed_out_for_the_token(site: Site) -> None:
    row = new_row(site)
    answer = site.ask("GET", "/ingest/match", headers={"X-Matchpod-Token": row.report_token})
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json()["matchid"] == row.plugin_match_id


def test_log_token_opens_nothing_but_the_log(site: Site) -> None:
    row = new_row(site)
    check_error(site.ask("GET", "/ingest/match", headers={"X-Matchpod-Token": row.log_token}), 401, "UNAUTHORIZED")
    check_error(site.ask("POST", f"/ingest/logs/{row.report_token}", content=b"x"), 410, "GONE")
