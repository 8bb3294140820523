"""The commands of actions, and what the answers of the match plugin mean."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from matchpod.core.match.actions import ActionRequest, ActionType, ServerVerdict
from matchpod.core.match.roster import Roster, RosterRole
from matchpod.core.model import GameSettings
from matchpod.cs2.action_commands import action_commands, is_on_plugin_list, read_answers, roster_commands
from tests.unit.core.match_driver import ANN, BEN, CAT, deathmatch, duel


def action(action_type: ActionType, **fields: Any) -> ActionRequest:
    return msgspec.structs.replace(ActionRequest(id="action_1", type=action_type), **fields)


@pytest.mark.parametrize(
    ("wanted", "commands"),
    [
        (action(ActionType.PAUSE), ("css_forcepause",)),
        (action(ActionType.UNPAUSE), ("css_forceunpause", "mp_unpause_match")),
        (action(ActionType.RESTORE, round=9), ("css_restore 8",)),
        (action(ActionType.SAY, text="Good luck"), ('say "Good luck               "',)),
        (action(ActionType.KICK, steam_id=ANN), ()),
        (action(ActionType.REMOVE_PLAYER, steam_id=ANN), (f"matchzy_removeplayer {ANN}",)),
        (action(ActionType.EXTEND_JOIN, seconds=60), ()),
    ],
)
def test_plugin_has_its_own_commands(wanted: ActionRequest, commands: tuple[str, ...]) -> None:
    assert action_commands(wanted, duel(), Roster.of(duel())) == commands


@pytest.mark.parametrize(
    ("role", "plugin_list"),
    [("team1", "team1"), ("team2", "team2"), ("coach1", "team1"), ("coach2", "team2"), ("spectator", "spec")],
)
def test_plugin_lists_a_person_by_their_role(role: str, plugin_list: str) -> None:
    roster = Roster.of(duel()).add(CAT, RosterRole(role))
    wanted = action(ActionType.ADD_PLAYER, steam_id=CAT, role=RosterRole(role))
    assert action_commands(wanted, duel(), roster) == (f'matchzy_addplayer {CAT} {plugin_list} ""',)


def test_substitute_is_listed_before_the_other_is_removed() -> None:
    roster = Roster.of(duel()).replace(ANN, CAT)
    wanted = action(ActionType.REPLACE_PLAYER, out=ANN, in_=CAT)
    assert action_commands(wanted, duel(), roster) == (
        f'matchzy_addplayer {CAT} team1 ""',
        f"matchzy_removeplayer {ANN}",
    )
    assert roster_commands(duel(), roster) == (f'matchzy_addplayer {CAT} team1 ""',)


@pytest.mark.parametrize(
    ("kind", "commands"),
    [
        (ActionType.PAUSE, ("mp_pause_match",)),
        (ActionType.UNPAUSE, ("mp_unpause_match",)),
        (ActionType.ADD_PLAYER, ()),
        (ActionType.REMOVE_PLAYER, ()),
    ],
)
def test_server_without_the_plugin_gets_the_commands_of_the_game(kind: ActionType, commands: tuple[str, ...]) -> None:
    settings: GameSettings = deathmatch(ANN, BEN)
    assert action_commands(action(kind, steam_id=ANN), settings, Roster.of(settings)) == commands


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("", ServerVerdict.ACCEPTED),
        ("[\x04MatchZy\x01] \x01\x0b\x01\x04Admin\x01 has paused the match!\n", ServerVerdict.ACCEPTED),
        ("Player  added to team1 successfully!", ServerVerdict.ACCEPTED),
        (
            "Cannot add players during halftime. Please wait until the next round starts.",
            ServerVerdict.LATER,
        ),
        ("[\x04MatchZy\x01] You cannot load a backup during halftime.\n", ServerVerdict.LATER),
        ("[MatchZy] You cannot use this command when tactical timeout is active.", ServerVerdict.LATER),
        ("[MatchZy] You cannot use this command after the game has ended.", ServerVerdict.REFUSED),
        ("[MatchZy] Match is already paused!", ServerVerdict.REFUSED),
        ("No match is setup!", ServerVerdict.REFUSED),
        (
            "Backup file matchzy_1_0_round09.json does not exist, please make sure you are restoring a valid backup.",
            ServerVerdict.REFUSED,
        ),
        ("Failed to add player  to team1. They may already be on a team", ServerVerdict.REFUSED),
    ],
)
def test_answer_is_read_for_its_sentence(answer: str, verdict: ServerVerdict) -> None:
    found = read_answers(action(ActionType.ADD_PLAYER, steam_id=CAT), (answer,))
    assert found.verdict is verdict
    assert (found.detail is None) == (verdict is ServerVerdict.ACCEPTED)


def test_one_refused_command_of_several_is_a_refusal() -> None:
    wanted = action(ActionType.REPLACE_PLAYER, out=ANN, in_=CAT)
    assert read_answers(wanted, ("No match is setup!", "")).verdict is ServerVerdict.REFUSED


def test_person_whom_the_plugin_has_kept_on_its_list_may_return() -> None:
    """It never takes anybody off the list of team2."""
    back = action(ActionType.ADD_PLAYER, steam_id=BEN, role=RosterRole.TEAM2)
    gone = Roster.of(duel()).remove(BEN)
    failed = ("Failed to add player  to team2. They may already be on a team",)
    may_be_listed = is_on_plugin_list(back, duel(), gone.add(BEN, RosterRole.TEAM2))
    assert may_be_listed
    assert read_answers(back, failed, may_be_listed=may_be_listed).verdict is ServerVerdict.ACCEPTED
    assert not is_on_plugin_list(back, duel(), gone.add(BEN, RosterRole.TEAM1)), "the plugin would seat them in team2"
