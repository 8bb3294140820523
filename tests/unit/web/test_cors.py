"""OPTIONS, and which web pages may read a response."""

from __future__ import annotations

import httpx
import pytest

from tests.unit.web import histories, sites
from tests.unit.web.sites import Site

site = sites.site

PAGE = "https://cup.example"
OTHER = "https://other.example"
REGIONS = "/api/v1/regions"
SERVERS = "/api/v1/servers"


def cors_of(response: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("access-control-")}


def from_page(site: Site, path: str, origin: str = PAGE, *, key: str | None = None) -> httpx.Response:
    return site.request("GET", path, key=key, headers={"Origin": origin})


def preflight(site: Site, path: str, origin: str = PAGE) -> httpx.Response:
    headers = {"Origin": origin, "Access-Control-Request-Method": "GET"}
    return site.request("OPTIONS", path, headers=headers)


# --- OPTIONS ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "allow"),
    [
        ("/api/v1/matches", "OPTIONS, POST"),
        ("/api/v1/servers/x", "GET, HEAD, OPTIONS"),
        ("/healthz", "GET, HEAD, OPTIONS"),
        ("/ingest/logs/x", "OPTIONS, POST"),
        ("*", "DELETE, GET, HEAD, OPTIONS, PATCH, POST"),
    ],
)
def test_options_returns_the_methods_of_a_path_without_a_key(site: Site, path: str, allow: str) -> None:
    response = options(site, path)
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["allow"] == allow
    assert response.headers["x-request-id"].startswith("req_")
    assert not cors_of(response)


def options(site: Site, path: str) -> httpx.Response:
    """Ask for the methods of a path, also of `*`, which is no URL."""
    if path != "*":
        return site.request("OPTIONS", path)
    sent = []

    async def ask() -> None:
        async def send(message: object) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "OPTIONS", "path": "*", "raw_path": b"*", "headers": []}
        await site.app(scope, receive=send, send=send)  # type: ignore[arg-type]

    site.run(ask())
    return httpx.Response(sent[0]["status"], headers=sent[0]["headers"])  # type: ignore[index]


def test_options_is_counted_without_the_paths_that_clients_choose(site: Site) -> None:
    site.request("OPTIONS", "/api/v1/servers/x")
    metrics = site.request("GET", "/metrics").text
    assert 'matchpod_http_requests_total{route="unknown",method="OPTIONS",status="204"} 1' in metrics


# --- without a setting --------------------------------------------------------------------------------------------


def test_every_page_may_read_the_regions(site: Site) -> None:
    assert from_page(site, REGIONS).headers["access-control-allow-origin"] == "*"
    asked = preflight(site, REGIONS)
    assert asked.status_code == 204
    assert asked.headers["access-control-allow-origin"] == "*"
    assert asked.headers["access-control-allow-methods"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("path", [SERVERS, "/healthz", "/metrics", "/docs", "/openapi.json", "/nothing"])
def test_no_page_may_read_anything_else(site: Site, path: str) -> None:
    assert not cors_of(from_page(site, path, key=site.key))
    assert not cors_of(preflight(site, path))


# --- with allowed origins -----------------------------------------------------------------------------------------


def test_page_of_an_allowed_origin_may_use_the_api(site: Site) -> None:
    site.open_web(cors_origins=(PAGE,))
    asked = preflight(site, "/api/v1/matches")
    assert asked.status_code == 204
    assert cors_of(asked) == {
        "access-control-allow-origin": PAGE,
        "access-control-expose-headers": "ETag, Idempotent-Replayed, Retry-After, X-Request-Id",
        "access-control-allow-methods": "OPTIONS, POST",
        "access-control-allow-headers": "Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, "
        "traceparent, tracestate",
        "access-control-max-age": "600",
    }
    response = from_page(site, SERVERS, key=site.key)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == PAGE
    assert response.headers["vary"] == "origin"
    assert "access-control-allow-credentials" not in response.headers


@pytest.mark.parametrize(
    ("path", "status"), [(SERVERS, 401), ("/api/v1/nothing", 404), ("/api/v1/servers/x/cancel", 405)]
)
def test_page_of_an_allowed_origin_may_read_errors(site: Site, path: str, status: int) -> None:
    site.open_web(cors_origins=(PAGE,))
    response = from_page(site, path)
    assert response.status_code == status
    assert response.headers["access-control-allow-origin"] == PAGE


def test_page_of_an_allowed_origin_may_read_streams(site: Site) -> None:
    server_id = histories.new_series(site)
    histories.finish(site, server_id)
    site.open_web(cors_origins=(PAGE,))
    response = from_page(site, f"/api/v1/servers/{server_id}/stream", key=site.key)
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["access-control-allow-origin"] == PAGE


def test_setting_opens_the_api_only(site: Site) -> None:
    site.open_web(cors_origins=(PAGE,))
    for path in ("/healthz", "/metrics", "/docs", "/ingest/match"):
        assert not cors_of(from_page(site, path))


def test_all_origins_can_be_allowed(site: Site) -> None:
    site.open_web(cors_origins=("*",))
    response = from_page(site, SERVERS, OTHER, key=site.key)
    assert response.headers["access-control-allow-origin"] == "*"
    assert "vary" not in response.headers
