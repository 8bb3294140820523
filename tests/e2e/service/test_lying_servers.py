"""Servers of a static fleet that lie over RCON: their matches fail, and other organizations notice nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure, sentence
from tests.e2e.service.running_service import RunningService, short_match, static_region
from tests.lying_server import CVARS, FAULTS, HOST, Lie, lying_servers

OTHER_LIES = tuple(lie for lie in Lie if lie not in FAULTS)
"""Lies within the limits: their servers look like ones that do not get ready, and their matches fail much later."""

MAX_P99_S = 2.0
"""Tens of milliseconds on a quiet machine; seconds, if answers have no limits."""
MAX_GROWTH_KB = 100 * 1024


@pytest.fixture(scope="module")
def database_url() -> None:
    """Use only SQLite: what a console costs does not depend on the database."""


@pytest.fixture(scope="module")
def service(database_url: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with ExitStack() as stack:
        ports = stack.enter_context(lying_servers(list(Lie)))
        regions = "".join(static_region(lie, [f"{HOST}:{port}"], "x") for lie, port in zip(Lie, ports, strict=True))
        folder: Path = tmp_path_factory.mktemp("liars")
        yield stack.enter_context(RunningService(folder, regions=regions))


def memory_kb(service: RunningService, field: str) -> int:
    assert service.process is not None
    return int(Path(f"/proc/{service.process.pid}/status").read_text().partition(f"{field}:")[2].split()[0])


@pytest.mark.soak
def test_servers_that_lie_fail_their_matches_and_cost_others_nothing(service: RunningService) -> None:
    assert service.run("orgs", "create", "others").returncode == 0
    key = service.run("keys", "create", "--org", "others", "--role", "member").stdout.split()[0]
    before_kb = memory_kb(service, "VmRSS")
    settings = short_match(customCvars=CVARS)
    created = {lie: str(service.create(settings, region=lie)["serverId"]) for lie in Lie}
    open_matches, took_s = set(FAULTS), list[float]()
    deadline_s = time.monotonic() + 120
    while open_matches:
        assert time.monotonic() < deadline_s, f"not failed: {open_matches}"
        for lie in tuple(open_matches):
            began_s = time.monotonic()
            response = service.call("GET", "/api/v1/cs2/matches", headers={"Authorization": f"Bearer {key}"})
            took_s.append(time.monotonic() - began_s)
            assert response.status == 200
            if service.get(created[lie])["status"] == "failed":
                open_matches.discard(lie)
    for lie in FAULTS:
        failed = service.get(created[lie])
        assert failed["reason"] == "server_failed"
        assert failed["error"] == sentence(CancelReason.SERVER_FAILED, Failure.CONSOLE_FAULT)
    for lie in OTHER_LIES:
        assert service.get(created[lie])["status"] in ("allocating", "pending", "failed")
        service.cancel(created[lie])
    assert sorted(took_s)[int(0.99 * len(took_s))] < MAX_P99_S
    assert memory_kb(service, "VmHWM") - before_kb < MAX_GROWTH_KB
    assert not [entry for entry in service.log() if entry["message"] == "match step failed"], "not a bug of ours"
