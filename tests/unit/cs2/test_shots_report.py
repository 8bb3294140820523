"""Tests of reports of shots: what a plugin may send, and what is rejected with a reason."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.cs2.shots_report import (
    MAX_PLAYERS,
    PlayerShots,
    RoundShots,
    ShotsReport,
    ShotsReportError,
    read_shots_report,
)

ID = "76561198000000001"


def body(*, map_number: object = 1, **fields: object) -> bytes:
    player = {"steamId": ID, "shotsFired": 41, "shotsHit": 9}
    return json.dumps({"mapNumber": map_number, "rounds": [{"roundNumber": 3, "players": [player], **fields}]}).encode()


def test_report_has_the_counts_of_each_round() -> None:
    counted = RoundShots(round_number=3, players=(PlayerShots(ID, 41, 9),))
    assert read_shots_report(body()) == ShotsReport(map_number=1, rounds=(counted,))


@pytest.mark.parametrize("steam_id", [ID, "[U:1:39734273]", "STEAM_1:1:19867136"])
def test_every_format_of_a_steam_id_is_accepted(steam_id: str) -> None:
    report = read_shots_report(body(players=[{"steamId": steam_id, "shotsFired": 0, "shotsHit": 0}]))
    assert report.rounds[0].players[0].steam_id == steam_id


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"map_number": 0}, "mapNumber"),
        ({"map_number": 6}, "mapNumber"),
        ({"roundNumber": 0}, "roundNumber"),
        ({"roundNumber": 3.5}, "roundNumber"),
        ({"players": [{"steamId": "7" * 33, "shotsFired": 1, "shotsHit": 0}]}, "steamId"),
        ({"players": [{"steamId": ID, "shotsFired": -1, "shotsHit": 0}]}, "shotsFired"),
        ({"players": [{"steamId": ID, "shotsFired": 1}]}, "shotsHit"),
        ({"players": [{"steamId": ID, "shotsFired": 0, "shotsHit": 0}] * (MAX_PLAYERS + 1)}, "length <= 64"),
        ({"players": None}, "players"),
    ],
)
def test_invalid_report_is_rejected_with_the_reason(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(ShotsReportError, match=reason):
        read_shots_report(body(**fields))


@pytest.mark.parametrize(
    "players",
    [
        (PlayerShots(ID, 1, 2),),
        (PlayerShots("BOT", 1, 0),),
        (PlayerShots(ID, 1, 0), PlayerShots("[U:1:39734273]", 2, 0)),
    ],
    ids=["more hits than shots", "not a player", "a player twice"],
)
def test_round_with_an_impossible_entry_is_not_counted(players: tuple[PlayerShots, ...]) -> None:
    assert RoundShots(1, players).by_player() is None


@given(st.binary(max_size=200))
def test_other_bytes_are_rejected(noise: bytes) -> None:
    with pytest.raises(ShotsReportError):
        read_shots_report(noise)


def test_deep_json_is_rejected() -> None:
    with pytest.raises(ShotsReportError):
        read_shots_report(b"[" * 100_000)
