"""The bodies of callbacks, byte for byte."""

from __future__ import annotations

import json

import pytest

from matchpod.service.callback_bodies import CallbackSubject, match_canceled, match_over

SUBJECT = CallbackSubject(server_id="srv_1", session_id="5e0c", external_match_id="cup-7")
AT_MS = 1_763_196_000_045
HEAD = '"gameId":"cs2","externalMatchId":"cup-7","serverId":"srv_1","sessionId":"5e0c"'
TIME = '"timestamp":"2025-11-15T08:40:00.045Z"'


def test_a_match_that_is_over_carries_its_result_byte_for_byte() -> None:
    result = b'{ "winner" : "team1",\n "duration": 1.50, "name": "\\u00e9" }'
    expected = f'{{"eventType":"match_over",{HEAD},{TIME},"result":'.encode() + result + b"}"
    assert match_over(SUBJECT, at_ms=AT_MS, result=result) == expected


def test_a_canceled_match_tells_its_reason_only() -> None:
    expected = f'{{"eventType":"match_canceled",{HEAD},{TIME},"reason":"canceled_by_user"}}'.encode()
    assert match_canceled(SUBJECT, at_ms=AT_MS, reason="canceled_by_user") == expected


def test_an_incomplete_roster_tells_who_was_missing() -> None:
    body = match_canceled(
        SUBJECT, at_ms=AT_MS, reason="incomplete_roster", missing_players=("76561",), connected_players=()
    )
    extra = '"reason":"incomplete_roster","missingPlayers":["76561"],"connectedPlayers":[]'
    assert body == f'{{"eventType":"match_canceled",{HEAD},{TIME},{extra}}}'.encode()


@pytest.mark.parametrize("reason", ["no_players_joined", "all_players_left", "server_lost", "of our own"])
def test_other_reasons_have_no_lists_even_when_given(reason: str) -> None:
    body = match_canceled(SUBJECT, at_ms=AT_MS, reason=reason, missing_players=("1",), connected_players=("2",))
    assert list(json.loads(body)) == [
        "eventType",
        "gameId",
        "externalMatchId",
        "serverId",
        "sessionId",
        "timestamp",
        "reason",
    ]


def test_a_match_without_external_id_says_null() -> None:
    subject = CallbackSubject(server_id="srv_1", session_id="5e0c")
    for body in (match_over(subject, at_ms=0, result=b"{}"), match_canceled(subject, at_ms=0, reason="server_lost")):
        assert json.loads(body)["externalMatchId"] is None
        assert json.loads(body)["timestamp"] == "1970-01-01T00:00:00.000Z"


def test_the_same_match_has_the_same_bytes() -> None:
    assert match_over(SUBJECT, at_ms=1, result=b"{}") == match_over(SUBJECT, at_ms=1, result=b"{}")
