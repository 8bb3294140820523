"""A service with a port for probes and metrics: `matchpod health`, the probe of a container, and what each port has."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx

from tests.e2e.serve_process import matchpod, serving
from tests.e2e.service.running_service import free_port_range, wait_until

CALL_S = 120.0
STATUSES = {
    "/healthz": (200, 200),
    "/readyz": (200, 200),
    "/metrics": (404, 200),
    "/api/v1/regions": (200, 404),
    "/docs": (200, 404),
    "/console/login": (200, 404),
}
"""What the main port and the one for probes and metrics answer."""


def status(base: str, path: str) -> int:
    return httpx.get(f"{base}{path}", timeout=CALL_S).status_code


def test_ready_service_is_healthy_and_a_draining_one_only_alive(tmp_path: Path) -> None:
    (port,) = free_port_range(1)
    with serving(tmp_path, stop_grace_s="60", ops_port=str(port)) as service:
        key, ops = service.key, f"http://127.0.0.1:{port}"
        url = f"{ops}/readyz"
        assert {path: (status(service.url, path), status(ops, path)) for path in STATUSES} == STATUSES
        wait_until(
            lambda: 'route="/api/v1/regions"' in httpx.get(f"{ops}/metrics", timeout=CALL_S).text,
            "the requests to both ports are counted",
        )
        ready = matchpod(tmp_path, "health", port="1", ops_port=str(port))
        assert (ready.returncode, ready.stderr) == (0, "")
        assert ready.stdout.startswith(f"The service at {url} is ready (version ")
        service.process.send_signal(signal.SIGTERM)
        wait_until(lambda: httpx.get(url, timeout=CALL_S).status_code == 503, "it drains")
        draining, alive = (matchpod(tmp_path, "health", *live, ops_port=str(port)) for live in ([], ["--live"]))
        assert (draining.returncode, draining.stdout) == (1, "")
        assert draining.stderr == f"matchpod: The service at {url} is not ready: The service is draining.\n"
        assert (alive.returncode, alive.stderr) == (0, "")
        assert "/healthz is alive (version " in alive.stdout
        headers = {"Authorization": f"Bearer {key}"}
        listed = httpx.get(f"{service.url}/api/v1/cs2/matches", headers=headers, timeout=CALL_S)
        assert listed.status_code == 200, "requests are answered until it stops"
        assert service.process.poll() is None
