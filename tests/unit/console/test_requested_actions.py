"""The forms of the actions on a match, and what was requested in words."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import UNSET

from matchpod.console.requested_actions import (
    OTHER,
    TYPE,
    ActionForm,
    action_forms,
    action_lines,
    read_body,
    read_given,
    with_faults,
)
from matchpod.core.errors import ActionNotPossibleError, InvalidParamsError
from matchpod.core.match.actions import ACTIONS, ActionType, Obstacle
from matchpod.core.model import GameSettings, MatchType
from matchpod.core.requests.action_request import read_action_request
from matchpod.service.actions.views import MatchActionsView, RestorableRound, action_view, possible_actions
from matchpod.storage.match_actions import ActionRow

ID = "action_01m7rpspm3199exjszfwtqabtf"
ANN, BOB = "76561198000000001", "76561198000000002"
NAMES = ("Owls", "Foxes")
TYPED = {
    "round": "9",
    "text": " Hello all ",
    "steamId": ANN,
    "as": "coach2",
    "out": ANN,
    "in": "STEAM_0:0:19867137",
    "seconds": "60",
    "winner": "team2",
    "reason": "",
    "by": "Eva",
}
"""What is typed into the fields of all forms."""


def forms(match_type: MatchType = MatchType.COMPETITIVE) -> dict[ActionType, ActionForm]:
    actions = MatchActionsView(
        possible=tuple(possible_actions(Obstacle(text="Not now."))),
        restorable=tuple(
            RestorableRound(round=kept + 1, rounds_kept=kept, text=f"{kept}:0, round {kept + 1} begins")
            for kept in range(3)
        ),
        items=(),
    )
    settings = GameSettings(match_type=match_type, maps=("de_nuke",))
    return {form.type: form for form in action_forms(actions, settings, NAMES, ((ANN, "Ann, Owls"),))}


@pytest.mark.parametrize("action_type", ActionType)
def test_each_form_makes_a_request_that_the_service_reads(action_type: ActionType) -> None:
    form = forms()[action_type]
    assert form.obstacle == "Not now."
    assert [one.name for one in form.inputs] == [*(one.name for one in ACTIONS[action_type].fields), "reason", "by"]
    body = read_body(read_given({TYPE: action_type.value, **{one.name: TYPED[one.name] for one in form.inputs}}))
    request = read_action_request(body, ID)
    assert (request.type, request.reason, request.by) == (action_type, None, "Eva")
    assert list(request.fields()) == [one.name for one in ACTIONS[action_type].fields]
    assert request.in_ in (None, BOB)


def test_rounds_come_with_their_scores_and_the_newest_first() -> None:
    (rounds,) = (one for one in forms()[ActionType.RESTORE].inputs if one.name == "round")
    assert rounds.choices[0] == ("3", "2:0, round 3 begins")
    assert [value for value, _ in rounds.choices] == ["3", "2", "1"]


@pytest.mark.parametrize(
    ("match_type", "roles"),
    [
        (MatchType.COMPETITIVE, ["team1", "team2", "spectator", "coach1", "coach2"]),
        (MatchType.DEATHMATCH, ["player", "spectator"]),
    ],
)
def test_roles_are_those_of_the_match(match_type: MatchType, roles: list[str]) -> None:
    person, role, *_ = forms(match_type)[ActionType.ADD_PLAYER].inputs
    assert [value for value, _ in role.choices] == roles
    assert person.choices == ()  # who is added is not in the match yet


def test_faults_are_at_the_field_in_which_a_person_was_typed() -> None:
    given = read_given({TYPE: "replacePlayer", "out": OTHER, "outOther": "ann", "in": "", "by": "Eva"})
    with pytest.raises(InvalidParamsError) as caught:
        read_action_request(read_body(given), ID)
    form = with_faults(forms()[ActionType.REPLACE_PLAYER], given, caught.value)
    assert (list(form.faults), form.first_fault, form.general) == (["outOther", "in"], "outOther", ())
    assert [(address, label) for address, label, _ in form.summary("again-")] == [
        ("again-outOther", "Who leaves"),
        ("again-in", "Who takes the place"),
    ]
    assert form.obstacle == ""  # it may be possible when it is sent again


def test_form_says_why_its_action_was_not_possible() -> None:
    given = read_given({TYPE: "pause", "reason": "a cable"})
    form = with_faults(forms()[ActionType.PAUSE], given, ActionNotPossibleError("Play is paused already."))
    assert (form.general, form.faults, form.given["reason"]) == (("Play is paused already.",), {}, "a cable")


@pytest.mark.parametrize(
    ("action_type", "values"),
    [
        (ActionType.PAUSE, ()),
        (ActionType.RESTORE, ("round 9",)),
        (ActionType.SAY, ("Hello all",)),
        (ActionType.ADD_PLAYER, ("Ann", "coach of Foxes")),
        (ActionType.REPLACE_PLAYER, ("out: Ann", f"in: {BOB}")),
        (ActionType.EXTEND_JOIN, ("60 s",)),
        (ActionType.FORFEIT, ("Foxes",)),
    ],
)
def test_requested_action_is_told_in_words(action_type: ActionType, values: tuple[str, ...]) -> None:
    fields = {one.name: TYPED[one.name] for one in ACTIONS[action_type].fields}
    request = read_action_request(read_body(read_given({TYPE: action_type.value, **fields})), ID)
    row = ActionRow(
        id=ID,
        server_id="srv",
        requested_at_ms=1,
        changed_at_ms=2,
        created_by="key_1",
        request=msgspec.json.encode(request),
    )
    view = action_view(row, has_ended=False, shows_actor=True)
    (line,) = action_lines([view], NAMES, people={ANN: "Ann"}, who={"key_1": "console"})
    assert (line.label, line.values, line.who) == (ACTIONS[action_type].label, values, "console")


def test_action_of_a_later_version_is_shown_as_far_as_it_is_known() -> None:
    request = b'{"id":"x","type":"swapSides","as":"mascot","steamId":"%b","volume":7,"round":"all","by":"Eva"}'
    row = ActionRow(
        id=ID, server_id="s", requested_at_ms=1, changed_at_ms=1, created_by="key_1", request=request % ANN.encode()
    )
    view = action_view(row, has_ended=False, shows_actor=True)
    assert (view.type, view.steam_id, view.by, view.role, view.round) == ("swapSides", ANN, "Eva", UNSET, UNSET)
    (line,) = action_lines([view], NAMES, people={ANN: "Ann"}, who={})
    assert (line.label, line.values, line.by) == ("swapSides", ("Ann",), "Eva")
