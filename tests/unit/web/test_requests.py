"""Behavior common to all requests: keys, methods, paths, request ids, limits, internal errors and draining."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable

import msgspec
import pytest

from matchpod.core.errors import InvalidParamsError, MatchpodError
from matchpod.core.server_status import ServerPhase
from matchpod.service.identity.principals import MANAGERS, Role, Scope
from matchpod.service.telemetry.prometheus import Registry
from matchpod.web import create_web
from matchpod.web.http.asgi import Message
from matchpod.web.request_bodies import read_body
from matchpod.web.routes import ENDPOINTS
from tests.operations import new_readiness
from tests.unit.web import sites
from tests.unit.web.sites import Site, check_error, unavailable
from tests.vaults import tokens_of

site = sites.site
SERVER = "/api/v1/servers/srv_0"
KEYED = [(e.method, re.sub(r"\{\w+\}", "x", e.path)) for e in ENDPOINTS if e.access is not None]
ALL = [(e.method, re.sub(r"\{\w+\}", "x", e.path)) for e in ENDPOINTS]


# --- keys ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Basic abc", "Bearer nonsense", "Bearer mk_live_" + "x" * 43]
)
def test_request_without_a_valid_key_is_unauthorized(site: Site, header: str | None) -> None:
    for method, path in KEYED:
        response = site.request(method, path, headers={} if header is None else {"Authorization": header})
        check_error(response, 401, "UNAUTHORIZED")
        assert response.headers["www-authenticate"] == "Bearer", path


def test_endpoints_with_a_key_need_a_scope_and_those_that_write_or_show_acts_or_logs_need_a_role() -> None:
    assert {e.path for e in ENDPOINTS if e.path.startswith("/api/") and e.access is None} == {"/api/v1/regions"}
    for endpoint in ENDPOINTS:
        if endpoint.access is not None:
            is_write = endpoint.method != "GET"
            assert endpoint.access is (Scope.SERVERS_WRITE if is_write else Scope.SERVERS_READ)
            if endpoint.path == "/api/v1/regions/{code}/check":
                assert endpoint.roles == (Role.OWNER,)
            else:
                is_for_managers = is_write or endpoint.name in ("listAudit", "getLog")
                assert endpoint.roles == (MANAGERS if is_for_managers else ()), endpoint.name


# --- paths and methods --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1", "/api/v1/", "/api/v1/matches/", "/api/v1/matches/a/b", "/api/v1/servers/", "/nothing",
             "/api/v1/regions/", "//api/v1/regions", "/docs/assets/", "/docs/assets/..%2Fdocs.py", "/" + "x" * 5000]
)  # fmt: skip
def test_unknown_path_is_not_found(site: Site, path: str) -> None:
    check_error(site.request("GET", path), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/api/v1/matches", "OPTIONS, POST"),
        ("DELETE", "/api/v1/matches/x", "GET, HEAD, OPTIONS"),
        ("GET", "/api/v1/servers/x/cancel", "OPTIONS, POST"),
        ("HEAD", "/api/v1/servers/x/cancel", "OPTIONS, POST"),
        ("POST", "/api/v1/regions", "GET, HEAD, OPTIONS"),
        ("PUT", "/healthz", "GET, HEAD, OPTIONS"),
        ("BREW", "/docs", "GET, HEAD, OPTIONS"),
        ("GET", "/ingest/logs/x", "OPTIONS, POST"),
    ],
)
def test_other_method_of_a_known_path_is_not_allowed(site: Site, method: str, path: str, allow: str) -> None:
    response = site.request(method, path)
    assert response.headers["allow"] == allow
    if method != "HEAD":
        check_error(response, 405, "METHOD_NOT_ALLOWED")
    assert response.status_code == 405


def test_head_returns_only_the_headers_of_get(site: Site) -> None:
    head, got = site.request("HEAD", "/api/v1/regions"), site.request("GET", "/api/v1/regions")
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == got.headers["content-length"] == str(len(got.content))


def test_unknown_parameter_is_rejected_by_every_endpoint(site: Site) -> None:
    for endpoint, (method, path) in zip(ENDPOINTS, ALL, strict=True):
        body = check_error(site.request(method, f"{path}?pageSise=2", key=site.key), 400, "INVALID_PARAMS")
        known = [parameter.name for parameter in endpoint.parameters if parameter.place == "query"]
        assert isinstance(body["details"], list)
        (fault,) = [one for one in body["details"] if one["path"] == "pageSise"]
        hint = "this address has none"
        if known:
            hint = "did you mean pageSize?" if "pageSize" in known else f"known parameters: {', '.join(known)}"
        assert fault["message"] == f"is not a known parameter; {hint}", path


def test_key_is_checked_before_the_query(site: Site) -> None:
    check_error(site.request("GET", f"{SERVER}?x=1"), 401, "UNAUTHORIZED")
    reader = site.new_key(role=Role.MEMBER)
    check_error(site.request("POST", f"{SERVER}/cancel?x=1", key=reader), 403, "FORBIDDEN")


def test_no_error_may_be_stored(site: Site) -> None:
    for method, path in (*ALL, ("GET", "/nothing"), ("PUT", "/healthz")):
        for key in (site.key, "wrong", None):
            response = site.request(method, f"{path}?x=1", key=key)
            assert response.status_code >= 400
            assert response.headers["cache-control"] == "no-store", path


def test_percent_encoded_path_is_decoded(site: Site) -> None:
    assert site.request("GET", "/api/v1/%72egions").status_code == 200


def test_every_response_has_a_request_id_of_its_own(site: Site) -> None:
    requests = (*ALL, ("GET", "/nothing"), ("BREW", "/docs"))
    headers = {"X-Request-Id": "mine"}  # is ignored
    ids = {site.request(method, path, headers=headers).headers["x-request-id"] for method, path in requests * 2}
    assert len(ids) == 2 * len(requests)
    assert all(re.fullmatch(r"req_[0-9a-z]{16}", request_id) for request_id in ids)


# --- failures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [RuntimeError, MatchpodError])
def test_internal_error_is_logged_and_only_its_request_id_is_returned(
    site: Site, caplog: pytest.LogCaptureFixture, failure: type[Exception]
) -> None:
    site.db.failure = failure("password is hunter2")
    with caplog.at_level(logging.ERROR):
        response = site.request("GET", "/api/v1/regions")
    body = check_error(response, 500, "SERVER_ERROR")
    assert "hunter2" not in response.text
    (record,) = caplog.records
    assert (record.exc_info is not None) == (failure is RuntimeError)
    assert record.__dict__["request_id"] == body["requestId"]
    site.db.failure = None
    assert site.request("GET", "/api/v1/regions").status_code == 200


@pytest.mark.parametrize("path", [SERVER, "/api/v1/regions", "/api/v1/matches/x"])
def test_unavailable_database_gives_503_with_retry_after(site: Site, path: str) -> None:
    site.db.failure = unavailable()
    response = site.get(path)
    check_error(response, 503, "SERVICE_UNAVAILABLE")
    assert int(response.headers["retry-after"]) >= 1


def test_api_answers_while_the_process_drains_and_is_unavailable_once_it_stops(site: Site) -> None:
    api = [(method, path) for method, path in ALL if path.startswith("/api/")]
    site.readiness.drain()
    for method, path in api:
        endless = path == "/api/v1/stream"  # the body of a GET never ends
        assert site.request("HEAD" if endless else method, path, key=site.key).status_code != 503, path
    site.readiness.stop()
    for method, path in api:
        response = site.request(method, path, key=site.key)
        check_error(response, 503, "SERVICE_UNAVAILABLE")
        assert int(response.headers["retry-after"]) >= 1, path


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/openapi.json", "/docs"])
def test_operations_endpoints_are_available_while_the_process_stops(site: Site, path: str) -> None:
    site.readiness.stop()
    assert site.request("GET", path).status_code == 200


def test_log_lines_are_stored_while_the_process_stops_but_not_while_it_starts(site: Site) -> None:
    row = site.row(site.new_server())
    site.readiness.stop()
    assert site.request("POST", f"/ingest/logs/{tokens_of(row).log}", content=b"line\n").status_code == 200
    starting = new_readiness(site.db, site.clock)
    site.app = create_web(msgspec.structs.replace(site.services, readiness=starting, metrics=Registry()))
    response = site.request("POST", f"/ingest/logs/{tokens_of(row).log}", content=b"line\n")
    check_error(response, 503, "SERVICE_UNAVAILABLE")


def test_process_that_serves_reads_only_changes_nothing(site: Site) -> None:
    server_id = site.new_server()
    token = tokens_of(site.row(server_id)).log
    site.readiness.serve_reads_only("Its database is a copy.")
    assert site.get(f"/api/v1/servers/{server_id}").status_code == 200
    assert site.request("GET", "/readyz").json()["warnings"] == ["Its database is a copy."]
    changing = ("/api/v1/matches", f"/api/v1/servers/{server_id}/cancel", "/api/v1/callbacks/redeliver")
    for path in (*changing, f"/ingest/logs/{token}"):
        response = site.request("POST", path, key=site.key, content=b"{}")
        check_error(response, 503, "SERVICE_UNAVAILABLE")
        assert "serves reads only" in response.json()["message"]
    check_error(site.request("GET", "/ingest/match"), 503, "SERVICE_UNAVAILABLE")
    assert site.row(server_id).phase is ServerPhase.ALLOCATING


# --- rate limit ---------------------------------------------------------------------------------------------------


def test_rate_limited_request_gets_429_with_retry_after(site: Site) -> None:
    site.open_web(rate_limit=2)
    assert [site.get(SERVER).status_code for _ in range(2)] == [404, 404]
    response = site.get(SERVER)
    check_error(response, 429, "RATE_LIMIT_EXCEEDED")
    assert response.headers["retry-after"] == "30"
    site.clock.at_ms += 30_000
    assert site.get(SERVER).status_code == 404


def test_rate_limit_is_per_key_and_only_for_endpoints_with_a_key(site: Site) -> None:
    site.open_web(rate_limit=1)
    other = site.new_key()
    assert site.get(SERVER).status_code == 404
    assert site.get(SERVER).status_code == 429
    assert site.get(SERVER, other).status_code == 404
    assert {site.request("GET", "/api/v1/regions").status_code for _ in range(3)} == {200}


# --- the ASGI protocol --------------------------------------------------------------------------------------------


def exchange(site: Site, scope: dict[str, object], messages: Iterable[Message]) -> list[Message]:
    """Return what the application sends when it receives these messages."""
    sent: list[Message] = []
    incoming = iter(messages)

    async def receive() -> Message:
        return next(incoming)

    async def send(message: Message) -> None:
        sent.append(message)

    site.run(site.app(scope, receive, send))
    return sent


def http_scope(method: str, path: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> dict[str, object]:
    return {"type": "http", "method": method, "path": path, "headers": list(headers)}


def test_path_is_used_if_the_raw_path_is_missing(site: Site) -> None:
    sent = exchange(site, http_scope("GET", "/healthz"), [])
    assert sent[0]["status"] == 200


def test_body_is_rejected_as_soon_as_it_exceeds_the_limit(site: Site) -> None:
    headers = [(b"authorization", f"Bearer {site.key}".encode())]
    part = {"type": "http.request", "body": b" " * 40_000, "more_body": True}
    sent = exchange(site, http_scope("POST", "/api/v1/matches", headers), [part, part])
    assert sent[0]["status"] == 413


def test_body_in_several_parts_is_joined(site: Site) -> None:
    headers = [(b"authorization", f"Bearer {site.key}".encode())]
    body = msgspec.json.encode(sites.BODY)
    parts = [{"type": "http.request", "body": body[at : at + 7], "more_body": True} for at in range(0, len(body), 7)]
    sent = exchange(site, http_scope("POST", "/api/v1/matches", headers), [*parts, {"type": "http.request"}])
    assert sent[0]["status"] == 201


def test_nothing_is_sent_if_the_client_disconnects_before_its_body_is_complete(site: Site) -> None:
    headers = [(b"authorization", f"Bearer {site.key}".encode())]
    assert exchange(site, http_scope("POST", "/api/v1/matches", headers), [{"type": "http.disconnect"}]) == []


def test_content_length_over_the_limit_is_rejected_without_reading(site: Site) -> None:
    headers = [(b"authorization", f"Bearer {site.key}".encode()), (b"content-length", b"9" * 5000)]
    assert exchange(site, http_scope("POST", "/api/v1/matches", headers), [])[0]["status"] == 413


async def test_body_that_does_not_arrive_times_out() -> None:
    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(InvalidParamsError, match="was not complete after"):
        await read_body(http_scope("POST", "/api/v1/matches"), receive, 1000, within_s=0.01)


def test_each_request_is_logged_at_debug_without_its_secrets(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="matchpod.web.application"):
        site.request("POST", "/ingest/logs/some-token", content=b"x")
    (record,) = [record for record in caplog.records if record.name == "matchpod.web.application"]
    fields = record.__dict__
    assert (fields["route"], fields["method"], fields["status"]) == ("/ingest/logs/{token}", "POST", 410)
    assert "some-token" not in str(fields)
