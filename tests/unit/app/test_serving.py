"""Limits of the process: HTTP connections by the limit on open files, and the time until a forced exit."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from matchpod.app.serving import (
    DRAIN_CALLBACKS_S,
    DRAIN_MATCHES_S,
    DRAIN_REQUESTS_S,
    FORCED_EXIT_S,
    MAX_CONNECTIONS,
    RESERVED_FILES,
    connection_limits,
    drain_matches_s,
    forced_exit_s,
    max_connections,
)
from matchpod.app.upload_service import END_S, drain_s
from matchpod.service.streams.readers import MAX_READERS
from matchpod.settings import Settings, load_settings
from matchpod.web.http.admission import ConnectionLimits


def settings(**values: str) -> Settings:
    variables = {f"MATCHPOD_{name.upper()}": value for name, value in values.items()}
    return load_settings({"MATCHPOD_DATA_DIR": str(Path("var")), **variables}, lambda _: None)


def test_number_of_connections_is_the_default_or_what_open_files_allow(caplog: pytest.LogCaptureFixture) -> None:
    servers = settings().regions[0].fleet.capacity
    assert connection_limits(settings(), 65_536).total == MAX_CONNECTIONS
    assert connection_limits(settings(), 4096).total == 4096 - 1024 - 512 - RESERVED_FILES - 2 * servers
    assert connection_limits(settings(max_connections="20000"), 65_536).total == 20_000
    assert not caplog.records


def test_number_of_connections_leaves_open_files_for_the_rest() -> None:
    assert max_connections(65_536, servers=100, sent=4096) == 65_536 - RESERVED_FILES - 200 - 4096
    assert max_connections(1024, servers=0, sent=0) == 1024 - RESERVED_FILES
    assert max_connections(1024, servers=5000, sent=256) == 512  # too few for that fleet: half for each


def test_streams_leave_places_for_other_requests() -> None:
    assert ConnectionLimits(total=MAX_CONNECTIONS).ordinary > MAX_READERS


def test_configured_number_of_connections_is_reduced_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    servers = settings().regions[0].fleet.capacity
    assert (
        connection_limits(settings(max_connections="4000"), 4096).total
        == 4096 - 1024 - 512 - RESERVED_FILES - 2 * servers
    )
    (warning,) = caplog.records
    assert (warning.levelno, vars(warning)["open_files"]) == (logging.WARNING, 4096)


def test_limit_of_an_address_can_be_turned_off() -> None:
    assert connection_limits(settings(), 65_536).per_address == 1024
    assert connection_limits(settings(max_connections_per_address="64"), 65_536).per_address == 64
    assert connection_limits(settings(max_connections_per_address="off"), 65_536).per_address is None


def test_forced_exit_leaves_time_for_every_step_of_stopping() -> None:
    for grace_s in range(61):
        others_s = DRAIN_MATCHES_S + max(grace_s, DRAIN_CALLBACKS_S) + 1
        uploads_s = DRAIN_MATCHES_S + grace_s + drain_s(grace_s) + END_S
        assert forced_exit_s(grace_s) > max(others_s, uploads_s, drain_matches_s(100_000)) + DRAIN_REQUESTS_S


def test_many_matches_have_more_time_to_be_released() -> None:
    assert drain_matches_s(1) < 6
    assert drain_matches_s(500) > 15


def test_usual_grace_period_does_not_delay_the_forced_exit() -> None:
    assert forced_exit_s(5) == FORCED_EXIT_S
