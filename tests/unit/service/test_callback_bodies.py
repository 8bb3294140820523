"""The bodies of callbacks, byte for byte."""

from __future__ import annotations

import json

import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome
from matchpod.service.callback_bodies import CallbackSubject, match_canceled, match_over

SUBJECT = CallbackSubject(server_id="srv_1", session_id="5e0c", external_match_id="cup-7")
AT_MS = 1_763_196_000_045
HEAD = '"gameId":"cs2","externalMatchId":"cup-7","serverId":"srv_1","sessionId":"5e0c"'
TIME = '"timestamp":"2025-11-15T08:40:00.045Z"'


def test_finished_match_contains_its_result_byte_for_byte() -> None:
    result = b'{ "winner" : "team1",\n "duration": 1.50, "name": "\\u00e9" }'
    expected = f'{{"eventType":"match_over",{HEAD},{TIME},"result":'.encode() + result + b"}"
    assert match_over(SUBJECT, at_ms=AT_MS, result=result) == expected


def test_canceled_match_contains_only_its_reason() -> None:
    expected = f'{{"eventType":"match_canceled",{HEAD},{TIME},"reason":"canceled_by_user"}}'.encode()
    assert match_canceled(SUBJECT, Outcome(at_ms=AT_MS, reason=CancelReason.CANCELED_BY_USER)) == expected


def test_incomplete_roster_lists_missing_and_connected_players() -> None:
    outcome = Outcome(at_ms=AT_MS, reason=CancelReason.INCOMPLETE_ROSTER, missing_players=("76561",))
    body = match_canceled(SUBJECT, outcome)
    extra = '"reason":"incomplete_roster","missingPlayers":["76561"],"connectedPlayers":[]'
    assert body == f'{{"eventType":"match_canceled",{HEAD},{TIME},{extra}}}'.encode()


@pytest.mark.parametrize("reason", sorted(set(CancelReason) - {CancelReason.INCOMPLETE_ROSTER}))
def test_other_reasons_omit_the_player_lists(reason: CancelReason) -> None:
    outcome = Outcome(at_ms=AT_MS, reason=reason, missing_players=("1",), connected_players=("2",))
    body = match_canceled(SUBJECT, outcome)
    assert list(json.loads(body)) == [
        "eventType",
        "gameId",
        "externalMatchId",
        "serverId",
        "sessionId",
        "timestamp",
        "reason",
    ]


def test_match_without_external_id_has_null() -> None:
    subject = CallbackSubject(server_id="srv_1", session_id="5e0c")
    canceled = match_canceled(subject, Outcome(at_ms=0, reason=CancelReason.SERVER_LOST))
    for body in (match_over(subject, at_ms=0, result=b"{}"), canceled):
        assert json.loads(body)["externalMatchId"] is None
        assert json.loads(body)["timestamp"] == "1970-01-01T00:00:00.000Z"


def test_same_match_has_the_same_bytes() -> None:
    assert match_over(SUBJECT, at_ms=1, result=b"{}") == match_over(SUBJECT, at_ms=1, result=b"{}")
