"""API views of server rows."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.game import Side, Team
from matchpod.core.effects import CancelReason
from matchpod.core.model import GameSettings, MatchType, TeamRoster
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.match_progress import LiveState, MatchProgress
from matchpod.core.views.progress import PlayerState, PublicPhase, RosterPlayer, Sides, WaitingFor
from matchpod.service.reading.match_head import (
    Ending,
    ServerView,
    connect_command,
    created_view,
    match_view,
    server_view,
)
from tests.server_rows import server_row

ANN, BEN = "76561198000000001", "76561198000000002"
SETTINGS = GameSettings(
    match_type=MatchType.COMPETITIVE,
    maps=("de_dust2",),
    team1=TeamRoster("Reds", (ANN,)),
    team2=TeamRoster("Blues", (BEN,)),
)
LIVE = LiveState.of(
    MatchProgress(
        phase=PublicPhase.PAUSED,
        waiting_for=WaitingFor.PLAYERS_TO_RETURN,
        until_ms=1_790_000_600_000,
        roster=(RosterPlayer(steam_id=ANN, team=Team.TEAM1, state=PlayerState.CONNECTED),),
        sides=Sides(team1=Side.CT, team2=Side.T),
        round=7,
        heard_ms=1_790_000_000_123,
    ),
    match=b'{ "map" : null }',
)
ROW = server_row(
    game_id="a game",
    phase=ServerPhase.ALLOCATING,
    status=ServerStatus.ALLOCATING,
    settings=msgspec.json.encode(SETTINGS),
    callback_auth=b"auth",
    rcon_password=b"sealed",
    server_password=b"sealed",
    ip="10.0.0.1",
    port=27015,
    created_at_ms=1_790_000_000_000,
    next_at_ms=0,
)


def test_server_that_never_ran_has_no_address() -> None:
    view = server_view(ROW, rcon_password=None)
    assert (view.ip, view.port, view.rcon_password, view.connect) == (None, None, None, None)
    assert as_json(view)["match"] is None


def test_response_to_a_creation_has_neither_match_nor_roster() -> None:
    shown = as_json(created_view(ROW, rcon_password="pw"))
    assert shown["phase"] == "allocating"
    assert not shown.keys() & {"match", "roster", "deadline", "round", "sides", "lastHeardAt", "connect"}


def test_server_that_ran_keeps_its_address() -> None:
    ended = msgspec.structs.replace(
        ROW, running_at_ms=5, phase=ServerPhase.RELEASED, status=ServerStatus.STOPPED, ended_at_ms=9
    )
    view = server_view(ended, rcon_password=None)
    assert (view.ip, view.port, view.status) == ("10.0.0.1", 27015, ServerStatus.STOPPED)
    assert as_json(view)["match"] is None


def test_live_match_and_result_are_embedded_byte_for_byte() -> None:
    assert b'"match":{ "map" : null }' in msgspec.json.encode(server_view(ROW, rcon_password="pw", live=LIVE))
    assert b'"result":{"adr": 81.20}' in msgspec.json.encode(match_view(ROW, result=b'{"adr": 81.20}'))
    assert b'"result":null' in msgspec.json.encode(match_view(ROW, result=None))


def test_running_match_stands_where_its_server_says() -> None:
    shown = as_json(server_view(ROW, rcon_password="pw", live=LIVE))
    assert {name: shown[name] for name in ("phase", "deadline", "round", "sides", "roster", "lastHeardAt")} == {
        "phase": "paused",
        "deadline": {"waitingFor": "players_to_return", "until": "2026-09-21T14:23:20.000Z"},
        "round": 7,
        "sides": {"team1": "CT", "team2": "TERRORIST"},
        "roster": listed("connected", ANN),
        "lastHeardAt": "2026-09-21T14:13:20.123Z",
    }


def as_json(view: ServerView) -> dict[str, object]:
    return msgspec.json.decode(msgspec.json.encode(view), type=dict[str, object])


def listed(state: str, *players: str) -> list[dict[str, object]]:
    teams = {ANN: "team1", BEN: "team2"}
    return [{"steamId": one, "name": None, "team": teams[one], "state": state, "since": None} for one in players]


@pytest.mark.parametrize("phase", [ServerPhase.ALLOCATING, ServerPhase.PENDING])
def test_no_listed_player_has_joined_a_match_without_a_server(phase: ServerPhase) -> None:
    shown = as_json(server_view(msgspec.structs.replace(ROW, phase=phase), rcon_password=None))
    assert shown["roster"] == listed("never_joined", ANN, BEN)
    assert [shown[name] for name in ("deadline", "round", "sides", "lastHeardAt", "connect")] == [None] * 5


def test_pending_match_waits_for_a_free_server_until_its_deadline() -> None:
    pending = msgspec.structs.replace(ROW, phase=ServerPhase.PENDING, pending_until_ms=1_790_000_600_000)
    shown = as_json(server_view(pending, rcon_password=None))
    assert shown["deadline"] == {"waitingFor": "free_server", "until": "2026-09-21T14:23:20.000Z"}
    allocating = msgspec.structs.replace(pending, phase=ServerPhase.ALLOCATING)
    assert as_json(server_view(allocating, rcon_password=None))["deadline"] is None


@pytest.mark.parametrize(
    ("ending", "roster"),
    [
        (Ending(reason=CancelReason.NO_PLAYERS_JOINED), listed("never_joined", ANN, BEN)),
        (
            Ending(reason=CancelReason.INCOMPLETE_ROSTER, missing_players=(BEN,), connected_players=(ANN,)),
            listed("left", ANN) + listed("never_joined", BEN),
        ),
        (Ending(reason=CancelReason.CANCELED_BY_USER), None),
        (Ending(reason=CancelReason.ALL_PLAYERS_LEFT), None),
        (Ending(), None),
    ],
)
def test_roster_of_an_ended_match_is_known_only_if_its_outcome_says_who_joined(
    ending: Ending, roster: list[dict[str, object]] | None
) -> None:
    ended = msgspec.structs.replace(ROW, phase=ServerPhase.RELEASED, status=ServerStatus.STOPPED)
    shown = as_json(server_view(ended, rcon_password=None, ending=ending))
    assert (shown["phase"], shown["roster"]) == ("ended", roster)


def test_ended_match_is_shown_even_if_its_settings_are_unreadable() -> None:
    ended = msgspec.structs.replace(ROW, phase=ServerPhase.RELEASED, settings=b"[]")
    shown = as_json(server_view(ended, rcon_password=None))
    assert (shown["phase"], shown["roster"], shown["deadline"]) == ("ended", None, None)


@pytest.mark.parametrize(
    ("password", "command"),
    [
        (None, "connect 10.0.0.1:27015"),
        ("s3cret-1", "connect 10.0.0.1:27015; password s3cret-1"),
        ("open sesame", 'connect 10.0.0.1:27015; password "open sesame"'),
        ("a//b", 'connect 10.0.0.1:27015; password "a//b"'),
    ],
)
def test_connect_command_has_address_and_password(password: str | None, command: str) -> None:
    running = msgspec.structs.replace(ROW, phase=ServerPhase.RUNNING)
    assert connect_command(running, password) == command


def test_connect_command_has_an_ipv6_address_in_brackets() -> None:
    running = msgspec.structs.replace(ROW, phase=ServerPhase.RUNNING, ip="2001:db8::7")
    assert connect_command(running, None) == "connect [2001:db8::7]:27015"


@pytest.mark.parametrize("phase", [one for one in ServerPhase if one is not ServerPhase.RUNNING])
def test_server_that_is_not_running_has_no_connect_command(phase: ServerPhase) -> None:
    assert connect_command(msgspec.structs.replace(ROW, phase=phase), "pw") is None


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (ServerPhase.ALLOCATING, "allocating"),
        (ServerPhase.PENDING, "allocating"),
        (ServerPhase.RUNNING, "paused"),
        (ServerPhase.ENDING, "ended"),
        (ServerPhase.RELEASED, "ended"),
    ],
)
def test_phase_follows_from_the_row_of_the_server(phase: ServerPhase, expected: str) -> None:
    stored = PublicPhase.PAUSED if phase is ServerPhase.RUNNING else PublicPhase.ALLOCATING
    assert msgspec.structs.replace(ROW, phase=phase, match_phase=stored).public_phase == expected


@pytest.mark.parametrize("phase", ServerPhase)
def test_match_has_ended_in_the_phases_ending_and_released(phase: ServerPhase) -> None:
    row = msgspec.structs.replace(ROW, phase=phase)
    assert row.has_ended is (phase in (ServerPhase.ENDING, ServerPhase.RELEASED))
