"""Polls of a server that are answered at once: with the same response as others, and never with an outdated one."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.service.access.organizations import CACHE_MS
from matchpod.service.identity.principals import Role, Scope
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.live import LocalMatch
from matchpod.storage.raw_log import RawEntry
from tests.unit.web import sites
from tests.unit.web.sites import PLAYER, Site

site = sites.site

REQUEST_ID = "x-request-id"
PASSWORD = "seven words"
ORIGIN = "https://cup.example"
TEAMS = ("team1", "team2")

Headers = list[tuple[str, str]]


def path(server_id: str) -> str:
    return f"/api/v1/servers/{server_id}"


def ask(key: str, **headers: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", **{name.replace("_", "-"): value for name, value in headers.items()}}


def read(site: Site, rest: str, headers: dict[str, str]) -> tuple[Headers, bytes] | None:
    """Return the headers and the body of the answer at once; None if there is none."""
    route = site.app.server_reads
    assert route is not None
    assert route.prefix == b"/api/v1/servers/"
    parts = route.read(rest, [(name.lower().encode(), value.encode()) for name, value in headers.items()])
    if parts is None:
        return None
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    pairs = (line.partition(": ") for line in head.decode().split("\r\n")[1:])
    return [(name, value) for name, _, value in pairs], body


def live_server(site: Site) -> LocalMatch:
    """A running match of this process, large enough to be compressed."""
    teams = {team: {"players": [str(int(PLAYER) + 10 * at + n) for n in range(5)]} for at, team in enumerate(TEAMS)}
    settings = {"matchType": "competitive", "map": "de_dust2", "teams": teams, "serverPassword": PASSWORD}
    server_id = site.new_server(gameSettings=settings)
    site.start(server_id)
    live = LocalMatch(server_id, Fold.begin(site.row(server_id), 1.0), 0)
    site.live.add(live)
    return live


def application_response(site: Site, server_id: str, headers: dict[str, str]) -> httpx.Response:
    response = site.request("GET", path(server_id), headers=headers)
    assert response.status_code == 200, response.text
    return response


def shown(answer: tuple[Headers, bytes] | None) -> Any:
    assert answer is not None
    return msgspec.json.decode(answer[1])


def without_id(headers: Headers) -> Headers:
    """Return the headers with the same request id for all requests."""
    return [(name, "req_" if name == REQUEST_ID and value.startswith("req_") else value) for name, value in headers]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="plain"),
        pytest.param({"Accept_Encoding": "gzip, deflate"}, id="gzip"),
        pytest.param({"Accept_Encoding": "gzip;q=0"}, id="no gzip"),
        pytest.param({"Origin": ORIGIN}, id="a page"),
        pytest.param({"Origin": "https://other.example"}, id="another page"),
    ],
)
@pytest.mark.parametrize("is_live", [True, False])
def test_answer_is_that_of_the_application(site: Site, more: dict[str, str], is_live: bool) -> None:
    site.open_web(cors_origins=(ORIGIN,))
    server_id = live_server(site).server_id if is_live else site.new_server()
    headers = ask(site.key, **more)
    expected = application_response(site, server_id, headers)
    for _ in range(2):
        answer = read(site, server_id, headers)
        assert answer is not None
        found, body = answer
        is_packed = ("content-encoding", "gzip") in found
        assert is_packed == (is_live and more.get("Accept_Encoding") == "gzip, deflate")
        assert (gzip.decompress(body) if is_packed else body) == expected.content
        assert ("content-length", str(len(body))) in found
        assert without_id(found) == without_id(expected.headers.multi_items())


def test_passwords_are_only_for_those_who_may_see_them(site: Site) -> None:
    server_id = live_server(site).server_id
    member = site.new_key(role=Role.MEMBER, scopes=[Scope.SERVERS_READ])
    for _ in range(2):
        for key, sees in ((site.key, True), (member, False)):
            application_response(site, server_id, ask(key))
            view = shown(read(site, server_id, ask(key)))
            assert (view["rconPassword"] is not None, PASSWORD in (view["connect"] or "")) == (sees, sees)


def test_others_get_nothing_at_once(site: Site) -> None:
    server_id = live_server(site).server_id
    application_response(site, server_id, ask(site.key))
    writer = site.new_key(scopes=[Scope.SERVERS_WRITE])
    for key in (site.other_key, writer):
        assert site.get(path(server_id), key).status_code == 403
        assert read(site, server_id, ask(key)) is None
    assert read(site, server_id, {}) is None
    assert read(site, server_id, {"Authorization": f"Basic {site.key}"}) is None
    assert read(site, server_id, ask("mk_live_" + "x" * 43)) is None
    assert read(site, server_id, ask(site.key)) is not None


@pytest.mark.parametrize("rest", ["{}?x=1", "{}/stream", "{}%20", "", "srv_00000000000000000000000000"])
def test_other_paths_are_not_answered_at_once(site: Site, rest: str) -> None:
    server_id = live_server(site).server_id
    application_response(site, server_id, ask(site.key))
    assert read(site, rest.format(server_id), ask(site.key)) is None


def test_answer_changes_with_the_match(site: Site) -> None:
    live = live_server(site)
    headers = ask(site.key)
    application_response(site, live.server_id, headers)
    live.fold.match.current_map.team1_score = 9
    live.applied(RawEntry(server_id=live.server_id, seq=1, kind="log", received_ms=0, headers=b"{}", body=b""))
    assert read(site, live.server_id, headers) is None
    assert application_response(site, live.server_id, headers).json()["match"]["score"]["team1"] == 9
    assert shown(read(site, live.server_id, headers))["match"]["score"]["team1"] == 9


def test_answer_changes_with_the_row_even_if_another_program_writes_it(site: Site, tmp_path: Path) -> None:
    server_id, other_id = live_server(site).server_id, site.new_server()
    headers = ask(site.key)
    application_response(site, server_id, headers)
    with sqlite3.connect(tmp_path / "matchpod.sqlite") as other_program:
        other_program.execute("UPDATE servers SET error = 'x' WHERE id = ?", (other_id,))
    assert shown(read(site, server_id, headers))["port"] == 27015
    with sqlite3.connect(tmp_path / "matchpod.sqlite") as other_program:
        other_program.execute("UPDATE servers SET port = 27099 WHERE id = ?", (server_id,))
    assert read(site, server_id, headers) is None
    assert application_response(site, server_id, headers).json()["port"] == 27099
    assert shown(read(site, server_id, headers))["port"] == 27099


def test_ended_match_is_shown_as_ended_at_once(site: Site) -> None:
    finished, canceled = live_server(site).server_id, live_server(site).server_id
    headers = ask(site.key)
    for server_id in (finished, canceled):
        application_response(site, server_id, headers)
    site.end(finished, result=b"{}")
    site.end(canceled, reason=CancelReason.SERVER_LOST)
    for server_id in (finished, canceled):
        assert read(site, server_id, headers) is None
        view = application_response(site, server_id, headers).json()
        assert (view["phase"], view["match"], view["rconPassword"]) == ("ended", None, None)
    assert shown(read(site, finished, headers))["phase"] == "ended"
    assert read(site, canceled, headers) is None  # its reason is partly in other rows


def test_state_that_cannot_be_shown_is_not_kept(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    live = live_server(site)
    reader = live.fold.reader
    del live.fold.reader
    view = application_response(site, live.server_id, ask(site.key)).json()
    assert view["match"] is None
    assert [record.message for record in caplog.records] == ["match view could not be built"]
    live.fold.reader = reader
    assert read(site, live.server_id, ask(site.key)) is None
    assert application_response(site, live.server_id, ask(site.key)).json()["match"] is not None


def test_revoked_and_expired_keys_get_nothing(site: Site) -> None:
    server_id = live_server(site).server_id
    revoked, expiring = site.new_key(), site.new_key()
    ids = [key.id for key in site.run(site.services.access.keys("ours"))]
    for key in (revoked, expiring, site.key):
        application_response(site, server_id, ask(key))
        assert read(site, server_id, ask(key)) is not None
    site.run(site.services.access.revoke_key(ids[-2]))
    site.run(site.services.access.rotate_key(ids[-1], overlap_s=0))
    for key in (revoked, expiring):
        assert read(site, server_id, ask(key)) is None
    site.clock.at_ms += CACHE_MS
    assert read(site, server_id, ask(site.key)) is None
    application_response(site, server_id, ask(site.key))
    assert read(site, server_id, ask(site.key)) is not None


def test_answers_at_once_count_toward_the_rate_limit(site: Site) -> None:
    server_id = live_server(site).server_id
    site.open_web(rate_limit=3)
    headers = ask(site.key)
    application_response(site, server_id, headers)
    assert [read(site, server_id, headers) is None for _ in range(3)] == [False, False, True]
    assert site.get(path(server_id)).status_code == 429


def test_draining_service_answers_nothing_at_once(site: Site) -> None:
    server_id = live_server(site).server_id
    application_response(site, server_id, ask(site.key))
    site.readiness.drain()
    assert read(site, server_id, ask(site.key)) is None
    assert site.get(path(server_id)).status_code == 200


def test_answers_at_once_are_in_the_metrics(site: Site) -> None:
    server_id = live_server(site).server_id
    application_response(site, server_id, ask(site.key))
    read(site, server_id, ask(site.key))
    counted = 'matchpod_http_requests_total{route="/api/v1/servers/{id}",method="GET",status="200"} 2'
    assert counted in site.request("GET", "/metrics").text
