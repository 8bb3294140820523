"""A flood of requests for the metrics, which anyone may send, and the port that keeps them apart from callers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import msgspec

from matchpod.service.telemetry.prometheus import Registry
from matchpod.web import create_web
from matchpod.web.handlers.ops import METRICS_PER_S
from matchpod.web.services import METRICS_WAIT_S
from tests.e2e.listening import listening
from tests.e2e.serve_process import serving
from tests.e2e.service.running_service import wait_until
from tests.unit.web import sites
from tests.unit.web.sites import Site

site = sites.site

TIMEOUT_S = 120.0


def test_flood_of_a_stranger_does_not_starve_a_scraper_behind_the_same_proxy(site: Site) -> None:
    async def flood() -> list[int]:
        async with listening(create_web(msgspec.structs.replace(site.services, metrics=Registry()))) as server:
            url, limits = f"http://127.0.0.1:{server.port}/metrics", httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(timeout=TIMEOUT_S, limits=limits) as client:

                async def stranger() -> None:
                    while True:
                        await client.get(url, headers={"X-Forwarded-For": "203.0.113.9"})

                async with asyncio.TaskGroup() as tasks:
                    count = METRICS_PER_S + int(METRICS_WAIT_S * METRICS_PER_S) + 20
                    strangers = [tasks.create_task(stranger()) for _ in range(count)]
                    scraped = [
                        (await client.get(url, headers={"X-Forwarded-For": "203.0.113.7"})).status_code
                        for _ in range(4)
                    ]
                    for task in strangers:
                        task.cancel()
        return scraped

    assert site.run(flood()) == [200] * 4


def test_metrics_have_their_own_port_and_probes_are_on_both(tmp_path: Path) -> None:
    with serving(tmp_path, ops_port="0") as service:
        main = service.url
        (port,) = [one["port"] for one in service.records() if one["message"] == "listening for probes and metrics"]
        ops = f"http://127.0.0.1:{port}"
        assert ops != main

        def status(base: str, path: str) -> int:
            return httpx.get(f"{base}{path}", timeout=TIMEOUT_S).status_code

        paths = ("/healthz", "/readyz", "/metrics", "/api/v1/regions", "/docs", "/console/login")
        assert {path: (status(main, path), status(ops, path)) for path in paths} == {
            "/healthz": (200, 200),
            "/readyz": (200, 200),
            "/metrics": (404, 200),
            "/api/v1/regions": (200, 404),
            "/docs": (200, 404),
            "/console/login": (200, 404),
        }
        wait_until(
            lambda: 'route="/api/v1/regions"' in httpx.get(f"{ops}/metrics", timeout=TIMEOUT_S).text,
            "the requests to both ports are counted",
        )
        assert service.stop() == 0
