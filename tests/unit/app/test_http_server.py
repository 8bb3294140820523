"""The paths that are answered although there are too many connections."""

from __future__ import annotations

from matchpod.app.http_server import PRIORITY
from matchpod.web.endpoint import Tag
from matchpod.web.routes import ENDPOINTS


def test_requests_of_game_servers_and_probes_have_priority_and_those_of_callers_have_not() -> None:
    for endpoint in ENDPOINTS:
        if endpoint.tag is Tag.INGEST:
            assert PRIORITY.has(endpoint.path)
        if endpoint.tag is Tag.API:
            assert not PRIORITY.has(endpoint.path)
    assert all(map(PRIORITY.has, ("/healthz", "/readyz", "/metrics")))
    assert not any(map(PRIORITY.has, ("/", "/docs", "/ingest", "/ingestion/x", "/api/ingest/x")))
