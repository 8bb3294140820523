"""Query strings of the list of servers."""

from __future__ import annotations

import itertools

import pytest

from matchpod.core.errors import InvalidParamsError
from matchpod.core.requests.match_list_query import MatchListQuery, read_match_list_query
from matchpod.core.server_status import ServerStatus
from matchpod.core.views.progress import PublicPhase
from tests.unit.core.requests.shown_faults import shown


def test_query_without_parameters_has_defaults() -> None:
    assert read_match_list_query([]) == MatchListQuery(page=1, page_size=20)


def test_all_parameters_are_read() -> None:
    query = read_match_list_query(
        [
            ("page", "3"),
            ("pageSize", "100"),
            ("status", "running"),
            ("phase", "paused"),
            ("region", "eu-west"),
            ("externalMatchId", "cup/1 ü"),
            ("dateFrom", "2026-09-21T00:00:00.001Z"),
            ("dateTo", "2026-09-21"),
        ]
    )
    day_ms = 1_789_948_800_000
    assert query == MatchListQuery(
        page=3,
        page_size=100,
        status=ServerStatus.RUNNING,
        phase=PublicPhase.PAUSED,
        region="eu-west",
        external_match_id="cup/1 ü",
        from_ms=day_ms + 1,
        before_ms=day_ms + 24 * 60 * 60 * 1000,
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("page", "0", "must be a whole number from 1 to 1000000000"),
        ("pageSize", "101", "must be a whole number from 1 to 100"),
        ("pageSize", "x", "must be a whole number from 1 to 100"),
        ("status", "live", "must be one of allocating, pending, running, failed, stopped"),
        (
            "phase",
            "running",
            "must be one of allocating, waiting_for_players, starting, live, paused, between_maps, ended",
        ),
        ("region", "", "must not be empty"),
        ("region", "x" * 65, "must be 1 to 64 characters"),
        ("region", "a\x00", "must not contain control characters (found U+0000)"),
        ("region", "\udcff", "must be percent-encoded UTF-8"),
        ("dateFrom", "today", "must be an ISO 8601 date"),
        ("limit", "5", "is not a known parameter"),
    ],
)
def test_message_for_an_invalid_parameter_names_it(name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        read_match_list_query([(name, value)])
    ((path, shown_message),) = shown(caught.value.faults)
    assert path == name
    assert shown_message.startswith(message)
    assert str(caught.value).startswith(f"{name} ")


def test_all_faults_are_reported() -> None:
    with pytest.raises(InvalidParamsError) as caught:
        read_match_list_query([("page", "0"), ("status", "x"), ("phase", "x")])
    assert [str(fault.path) for fault in caught.value.faults] == ["page", "status", "phase"]


def test_status_and_phase_select_by_one_of_them_or_exclude_each_other() -> None:
    for status, phase in itertools.product(ServerStatus, PublicPhase):
        query = MatchListQuery(status=status, phase=phase)
        possible = {
            ServerStatus.ALLOCATING: ["allocating"],
            ServerStatus.PENDING: ["allocating"],
            ServerStatus.RUNNING: ["waiting_for_players", "starting", "live", "paused", "between_maps"],
            ServerStatus.STOPPED: ["ended"],
            ServerStatus.FAILED: ["ended"],
        }[status]
        assert query.is_empty is (phase not in possible)
        assert query.needs_phase is (status is ServerStatus.RUNNING)
    assert MatchListQuery(phase=PublicPhase.ENDED).needs_phase
    assert not MatchListQuery(status=ServerStatus.RUNNING).needs_phase
