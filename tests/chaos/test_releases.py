"""A match that is disturbed by the release of its server before is found."""

from __future__ import annotations

import os
import socket
from typing import Any

import msgspec
import pytest

from tests.chaos.releases import Checked, judge_checked, judge_result, pid_of

UNDISTURBED = Checked(
    password="sesame",
    log_token="token",
    late=("logaddress_list_http", "status"),
    listeners="http://127.0.0.1/ingest/logs/token",
    found_password="sv_password = sesame",
)


def test_undisturbed_match_is_accepted() -> None:
    assert judge_checked(UNDISTURBED) == []


@pytest.mark.parametrize(
    "change",
    [
        {"late": ("status", 'kickid 1 "The match is over"')},
        {"late": ("css_endmatch",)},
        {"late": ('sv_password ""',)},
        {"late": ("logaddress_delall_http",)},
        {"tries": 1},
        {"listeners": ""},
        {"found_password": "sv_password = "},
        {"players": 3},
    ],
    ids=str,
)
def test_each_disturbance_is_found(change: dict[str, Any]) -> None:
    assert len(judge_checked(msgspec.structs.replace(UNDISTURBED, **change))) == 1


def test_match_must_end_once_with_a_complete_result() -> None:
    def callback(*, complete: bool = True, **fields: object) -> bytes:
        return msgspec.json.encode({"eventType": "match_over", "result": {"maps": [{"complete": complete}]}, **fields})

    assert judge_result([callback()]) == []
    assert judge_result([]) == ["0 callbacks arrived"]
    assert judge_result([callback(), callback()]) == ["2 callbacks arrived"]
    assert judge_result([callback(complete=False)]) == ["its result is not complete"]
    canceled = callback(eventType="match_canceled", reason="server_lost")
    assert judge_result([canceled]) == ["it ended with server_lost"]


def test_process_of_a_connection_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert pid_of(client.getsockname()[1], [1, os.getpid()]) == os.getpid()
        assert pid_of(client.getsockname()[1], []) is None
