"""A service with a bug: an entry that raises costs the entry, one that hangs the process ends it with its stack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from matchpod.app.loop_watch import EXIT_CODE
from tests.buggy_service import put_bug
from tests.e2e.serve_process import end_servers, one_region, serving
from tests.e2e.service.running_service import wait_until
from tests.e2e.test_serve import create, get_server


@pytest.fixture(autouse=True)
def _no_server_left(tmp_path: Path) -> Iterator[None]:
    yield
    end_servers(tmp_path)


@pytest.mark.parametrize("what", [pytest.param("hang", marks=pytest.mark.soak), "spin"])
def test_service_whose_event_loop_hangs_ends_itself_with_the_stack(tmp_path: Path, what: str) -> None:
    """`spin` never releases the lock of the interpreter, so no other thread runs."""
    bugs, config = tmp_path / "bugs", one_region(tmp_path, speed=1)
    with serving(tmp_path, config=config, bugs=bugs, stall_exit_s="2") as service:
        key = service.key
        server_id = str(create(service, key)["serverId"])
        wait_until(lambda: get_server(service, key, server_id)["status"] == "running", "the match is running")
        put_bug(bugs, what, server_id)
        code = service.wait()
        assert "_apply_with_bug" in service.err
        if what == "hang":
            assert code == EXIT_CODE
            levels = {str(record["message"]): record["level"] for record in service.records()}
            assert levels["event loop stalled"] == "WARNING"
            assert levels["process ends itself: event loop stalled for too long"] == "CRITICAL"
        else:
            assert code < 0, "by a signal"
    with serving(tmp_path, config=config) as service:
        wait_until(lambda: get_server(service, key, server_id)["status"] == "running", "the match goes on")
        messages = [str(record["message"]) for record in service.records()]
        assert "process died while applying an entry" in messages
