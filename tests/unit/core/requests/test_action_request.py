"""The body of a request for an action: its fields depend on its type, and all faults are listed."""

from __future__ import annotations

import pytest

from cs2_protocol.game import Team
from matchpod.core.errors import InvalidParamsError
from matchpod.core.match.actions import ACTIONS, ActionRequest, ActionType
from matchpod.core.match.roster import RosterRole
from matchpod.core.requests.action_request import VALUES, read_action_id, read_action_request

ANN, BEN = "76561198000000001", "76561198000000002"
VALUES_OF_FIELDS = {
    "round": 9, "text": "Hello", "steamId": ANN, "as": "team1", "out": ANN, "in": BEN, "seconds": 60, "winner": "team2",
}  # fmt: skip


def body_of(action_type: ActionType) -> dict[str, object]:
    fields = {field.name: VALUES_OF_FIELDS[field.name] for field in ACTIONS[action_type].fields}
    return {"type": action_type.value, **fields}


def faults_of(body: object) -> set[tuple[str, str]]:
    with pytest.raises(InvalidParamsError) as raised:
        read_action_request(body, "action_1")
    return {(str(fault.path), fault.message) for fault in raised.value.faults}


@pytest.mark.parametrize("action_type", ActionType)
def test_action_with_the_fields_of_its_type_is_valid(action_type: ActionType) -> None:
    found = read_action_request({**body_of(action_type), "reason": "why", "by": "ann"}, "action_1")
    assert (found.id, found.type, found.reason, found.by) == ("action_1", action_type, "why", "ann")
    assert {"type": action_type.value, **found.fields()} == body_of(action_type)


@pytest.mark.parametrize("action_type", ActionType)
def test_action_needs_its_fields_and_no_others(action_type: ActionType) -> None:
    own = {field.name for field in ACTIONS[action_type].fields}
    others = {name: value for name, value in VALUES_OF_FIELDS.items() if name not in own}
    expected = {(name, "is required") for name in own}
    expected |= {(name, f"is not a field of the action {action_type}") for name in others}
    assert faults_of({"type": action_type.value, **others}) == expected


def test_fields_are_read_as_their_types() -> None:
    found = read_action_request({"type": "addPlayer", "steamId": ANN, "as": "coach2"}, "action_1")
    assert found == ActionRequest(id="action_1", type=ActionType.ADD_PLAYER, steam_id=ANN, role=RosterRole.COACH2)
    forfeit = read_action_request({"type": "forfeit", "winner": "team1", "reason": None}, "action_1")
    assert (forfeit.winner, forfeit.reason) == (Team.TEAM1, None)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ([], ""),
        ({}, "type"),
        ({"type": "pauze"}, "type"),
        ({"type": "pause", "wy": "x"}, "wy"),
        ({"type": "restore", "round": 0}, "round"),
        ({"type": "restore", "round": 501}, "round"),
        ({"type": "restore", "round": "9"}, "round"),
        ({"type": "extendJoin", "seconds": 9}, "seconds"),
        ({"type": "extendJoin", "seconds": 3601}, "seconds"),
        ({"type": "kick", "steamId": "1"}, "steamId"),
        ({"type": "say", "text": "a; quit"}, "text"),
        ({"type": "say", "text": 'a" b'}, "text"),
        ({"type": "say", "text": "x" * 129}, "text"),
        ({"type": "say", "text": "a\nb"}, "text"),
        ({"type": "pause", "reason": "x" * 10_000}, "reason"),
        ({"type": "pause", "by": "\u202e"}, "by"),
    ],
)
def test_invalid_body_is_rejected_with_the_path(body: object, path: str) -> None:
    assert {found for found, _ in faults_of(body)} == {path}


def test_every_field_of_the_table_can_be_read() -> None:
    named = {field.name for rule in ACTIONS.values() for field in rule.fields}
    assert named == {field.name for field in VALUES} == set(VALUES_OF_FIELDS)


@pytest.mark.parametrize(("text", "is_valid"), [(f"action_{'0' * 26}", True), ("action_1", False), ("srv_1", False)])
def test_id_of_an_action(text: str, is_valid: bool) -> None:
    assert (read_action_id(text) is not None) is is_valid
