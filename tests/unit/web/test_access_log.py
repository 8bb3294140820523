"""The access log: a line per request, without secrets, and only if it is asked for."""

from __future__ import annotations

import logging

import msgspec
import pytest

from matchpod.core.secrets import HIDDEN
from matchpod.service.telemetry.log_context import log_fields
from matchpod.service.telemetry.prometheus import Registry
from matchpod.web import create_web
from matchpod.web.services import AccessLog
from tests.unit.web import sites
from tests.unit.web.sites import Site

site = sites.site

TOKEN = "k3yT0kenWithManyCharacters_-0123456789"
TRACE = "0af7651916cd43dd8448eb211c80319c"


def use(site: Site, log: AccessLog) -> None:
    services = msgspec.structs.replace(site.services, access_log=log, metrics=Registry())
    site.app = create_web(services, monotonic=site.clock.monotonic)


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [vars(one) for one in caplog.records if one.message == "request" and one.levelno == logging.INFO]


@pytest.fixture(autouse=True)
def _info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_line_says_who_asked_for_what_and_what_came_of_it(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    use(site, AccessLog.ON)
    server_id = site.create().json()["serverId"]
    caplog.clear()
    response = site.request(
        "GET", f"/api/v1/servers/{server_id}?secret=hunter2", key=site.key, headers={"User-Agent": "cup/1.0"}
    )
    assert response.status_code == 400
    (line,) = lines(caplog)
    assert line["path"] == f"/api/v1/servers/{server_id}"
    assert (line["route"], line["method"], line["status"]) == ("/api/v1/servers/{id}", "GET", 400)
    assert line["request_id"] == response.headers["x-request-id"]
    assert line["user_agent"] == "cup/1.0"
    assert str(line["org_id"]).startswith("org_")
    assert str(line["key_id"]).startswith("key_")
    assert line["duration_ms"] == 0.0
    assert "hunter2" not in str(line)
    assert site.key not in str(line)


@pytest.mark.parametrize(
    ("method", "path", "shown"),
    [
        ("GET", "/api/v1/regions", "/api/v1/regions"),
        ("POST", f"/ingest/shots/{TOKEN}", f"/ingest/shots/{HIDDEN}"),
        ("POST", f"/ingest/anticheat/{TOKEN}", f"/ingest/anticheat/{HIDDEN}"),
        ("GET", f"/ingest/log/{TOKEN}", f"/ingest/log/{HIDDEN}"),
        ("GET", f"/{TOKEN}/x", f"/{HIDDEN}/x"),
        ("GET", "/wp-login.php", "/wp-login.php"),
    ],
)
def test_tokens_in_paths_are_hidden(
    site: Site, caplog: pytest.LogCaptureFixture, method: str, path: str, shown: str
) -> None:
    use(site, AccessLog.ALL)
    site.request(method, path, content=b"{}")
    (line,) = lines(caplog)
    assert line["path"] == shown
    assert TOKEN not in str(line)


@pytest.mark.parametrize(
    ("log", "logged"),
    [(AccessLog.OFF, []), (AccessLog.ON, ["/healthz"]), (AccessLog.ALL, ["/healthz", "/ingest/match"])],
)
def test_requests_of_game_servers_have_lines_only_if_all_are_wanted(
    site: Site, caplog: pytest.LogCaptureFixture, log: AccessLog, logged: list[str]
) -> None:
    use(site, log)
    for path in ("/healthz", "/ingest/match"):
        site.request("GET", path)
    assert [line["path"] for line in lines(caplog)] == logged


def test_what_is_answered_without_the_application_has_lines_too(site: Site) -> None:
    direct = []
    for log in AccessLog:
        use(site, log)
        direct.append((bool(site.app.direct_routes), site.app.server_reads is not None))
    assert direct == [(True, True), (True, False), (False, False)]


def test_line_of_a_request_that_failed_has_its_trace(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    use(site, AccessLog.ON)
    found: list[dict[str, str]] = []

    class Noting(logging.Handler):
        def emit(self, _: logging.LogRecord) -> None:
            found.append(dict(log_fields()))

    handler = Noting()
    logging.getLogger("matchpod").addHandler(handler)
    try:
        response = site.request("GET", "/nothing", headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"})
        site.request("GET", "/nothing", headers={"traceparent": "00-invalid"})
    finally:
        logging.getLogger("matchpod").removeHandler(handler)
    assert found[0] == {"request_id": response.headers["x-request-id"], "trace_id": TRACE}
    assert set(found[1]) == {"request_id"}
    assert len(lines(caplog)) == 2
