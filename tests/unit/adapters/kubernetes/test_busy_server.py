"""A server that asked its clients to wait gets requests again when the time has passed, or when it has started."""

from __future__ import annotations

import pytest

from matchpod.adapters.kubernetes.api_errors import ApiError
from matchpod.adapters.kubernetes.busy_server import MIN_WAIT_S, PROBE_S, BusyServer


def asked(status: int = 503, wait_s: float | None = 10.0) -> BusyServer:
    server = BusyServer()
    server.note(ApiError(status, "", "busy", retry_after_s=wait_s), 100.0)
    return server


def test_server_is_left_alone_as_long_as_it_asks_for() -> None:
    server = asked()
    assert [server.wait_s(now_s) for now_s in (100.0, 104.0, 110.0, 111.0)] == [10.0, 6.0, 0.0, 0.0]
    left = server.answer(104.0)
    assert (left.status, str(left), left.retry_after_s) == (503, "busy (HTTP 503)", 6.0)


def test_server_that_does_not_ask_for_a_wait_gets_requests() -> None:
    assert asked(wait_s=None).wait_s(100.0) == 0.0
    assert asked(wait_s=0.0).wait_s(100.0) == MIN_WAIT_S


def test_server_that_is_starting_is_asked_whether_it_is_ready_until_it_is() -> None:
    server = asked()
    assert server.is_probe_due(100.0)
    assert not server.is_probe_due(100.0), "one question at a time"
    server.probed(is_ready=False)
    assert not server.is_probe_due(100.0 + PROBE_S / 2)
    assert server.is_probe_due(100.0 + PROBE_S)
    server.probed(is_ready=True)
    assert server.wait_s(100.0 + PROBE_S) == 0.0
    assert not server.is_probe_due(105.0)


def test_server_that_is_ready_means_what_it_says() -> None:
    server = asked()
    assert server.is_probe_due(100.0)
    server.probed(is_ready=True)
    assert server.wait_s(100.0) == 10.0
    assert not server.is_probe_due(105.0)
    server.note(ApiError(503, "", "busy", retry_after_s=5.0), 105.0)  # a request that was on its way
    assert not server.is_probe_due(106.0)
    assert server.wait_s(106.0) == 4.0


@pytest.mark.parametrize("now_s", [100.0, 105.0])
def test_overload_is_never_doubted(now_s: float) -> None:
    assert not asked(429).is_probe_due(now_s)
