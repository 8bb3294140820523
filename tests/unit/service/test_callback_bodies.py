"""The bodies of callbacks, byte for byte."""

from __future__ import annotations

import json

import msgspec
import pytest

from cs2_protocol.game import Team
from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.marks import encode_marks
from matchpod.service.callback_bodies import callback_body
from matchpod.storage.servers import ServerSummary

SERVER = ServerSummary(
    settings=b"{}",
    id="srv_1",
    game_id="5e0c",
    org_id="org_1",
    region="eu",
    phase=ServerPhase.RUNNING,
    status=ServerStatus.RUNNING,
    external_match_id="cup-7",
    created_at_ms=1,
)
AT_MS = 1_763_196_000_045
HEAD = '"gameId":"cs2","externalMatchId":"cup-7","serverId":"srv_1","sessionId":"5e0c"'
TIME = '"timestamp":"2025-11-15T08:40:00.045Z"'


def test_finished_match_contains_its_result_byte_for_byte() -> None:
    result = b'{ "winner" : "team1",\n "duration": 1.50, "name": "\\u00e9" }'
    expected = f'{{"eventType":"match_over",{HEAD},{TIME},"result":'.encode() + result + b"}"
    assert callback_body(SERVER, Outcome(at_ms=AT_MS), result) == expected


def test_labels_and_simulation_come_before_the_result() -> None:
    row = msgspec.structs.replace(SERVER, marks=encode_marks({"event": "finals"}, is_simulated=True))
    marks = '"labels":{"event":"finals"},"simulated":true'
    expected = f'{{"eventType":"match_over",{HEAD},{TIME},{marks},"result":{{}}}}'.encode()
    assert callback_body(row, Outcome(at_ms=AT_MS), b"{}") == expected


def test_forfeited_match_says_so() -> None:
    expected = f'{{"eventType":"match_over",{HEAD},{TIME},"result":{{}},"forfeit":true}}'.encode()
    assert callback_body(SERVER, Outcome(at_ms=AT_MS, forfeited_to=Team.TEAM1), b"{}") == expected


def test_canceled_match_contains_only_its_reason() -> None:
    expected = f'{{"eventType":"match_canceled",{HEAD},{TIME},"reason":"canceled_by_user"}}'.encode()
    assert callback_body(SERVER, Outcome(at_ms=AT_MS, reason=CancelReason.CANCELED_BY_USER), None) == expected


@pytest.mark.parametrize("is_complete", [True, False])
def test_match_canceled_during_play_says_whether_its_log_is_complete(*, is_complete: bool) -> None:
    outcome = Outcome(at_ms=AT_MS, reason=CancelReason.ALL_PLAYERS_LEFT, is_log_complete=is_complete)
    assert json.loads(callback_body(SERVER, outcome, None))["logComplete"] is is_complete


def test_incomplete_roster_lists_missing_connected_and_absent_players() -> None:
    outcome = Outcome(
        at_ms=AT_MS,
        reason=CancelReason.INCOMPLETE_ROSTER,
        missing_players=("76561",),
        absent_players=("76561", "76562"),
    )
    body = callback_body(SERVER, outcome, None)
    extra = '"reason":"incomplete_roster","missingPlayers":["76561"],"connectedPlayers":[],"absentPlayers":["76561","76562"]'
    assert body == f'{{"eventType":"match_canceled",{HEAD},{TIME},{extra}}}'.encode()


@pytest.mark.parametrize("reason", sorted(set(CancelReason) - {CancelReason.INCOMPLETE_ROSTER}))
def test_other_reasons_omit_the_player_lists(reason: CancelReason) -> None:
    outcome = Outcome(at_ms=AT_MS, reason=reason, missing_players=("1",), connected_players=("2",))
    body = callback_body(SERVER, outcome, None)
    assert list(json.loads(body)) == [
        "eventType",
        "gameId",
        "externalMatchId",
        "serverId",
        "sessionId",
        "timestamp",
        "reason",
    ]


def test_external_id_of_a_match_without_one_is_null() -> None:
    server = msgspec.structs.replace(SERVER, external_match_id=None)
    canceled = callback_body(server, Outcome(at_ms=0, reason=CancelReason.SERVER_LOST), None)
    for body in (callback_body(server, Outcome(at_ms=0), b"{}"), canceled):
        assert json.loads(body)["externalMatchId"] is None
        assert json.loads(body)["timestamp"] == "1970-01-01T00:00:00.000Z"
