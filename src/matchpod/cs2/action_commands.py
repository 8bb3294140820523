"""Build the console commands of an action, and read the server's answers.

Servers with the match plugin (MatchZy 0.8.15) get the plugin's own commands, so that players cannot end an admin's
pause and the plugin's list of players is right. The plugin's answers have a prefix and colors around a sentence, so
answers are searched for known sentences.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

import msgspec

from cs2_protocol.console_commands import bare, command, quoted
from cs2_protocol.game import PlayerId
from matchpod.core.match.actions import ActionRequest, ActionType, ServerVerdict
from matchpod.core.match.roster import Roster, RosterRole
from matchpod.core.model import GameSettings

_PLUGIN_LISTS: Final = {
    RosterRole.TEAM1: "team1",
    RosterRole.TEAM2: "team2",
    RosterRole.COACH1: "team1",
    RosterRole.COACH2: "team2",
    RosterRole.SPECTATOR: "spec",
}
"""For each role, the plugin's list that contains its people. Coaches are listed with the players of their team."""


class CommandAnswer(msgspec.Struct, frozen=True):
    """What an answer of the server means. `detail` is the reason if the server rejected the command."""

    verdict: ServerVerdict
    detail: str | None = None


_ALREADY_LISTED: Final = "failed to add player"

# For each rejection: its sentence in the answer, the verdict (LATER if a retry may succeed), the reason for people.
_REFUSALS: Final = (
    ("during halftime", ServerVerdict.LATER, "The plugin rejects this while the teams change sides."),
    ("tactical timeout is active", ServerVerdict.LATER, "The plugin rejects this during a tactical timeout."),
    ("after the game has ended", ServerVerdict.REFUSED, "The map is over."),
    ("match is already paused", ServerVerdict.REFUSED, "Play is paused already."),
    ("match is already started", ServerVerdict.REFUSED, "Play has started already."),
    ("no match is setup", ServerVerdict.REFUSED, "The plugin has no match loaded."),
    (_ALREADY_LISTED, ServerVerdict.REFUSED, "The plugin lists this person in a team already."),
    ("does not exist, please make sure", ServerVerdict.REFUSED, "The plugin has no backup of this round."),
    ("invalid value for restore", ServerVerdict.REFUSED, "The plugin has no backup of this round."),
    ("failed to load file", ServerVerdict.REFUSED, "The server could not load the backup."),
)


def action_commands(action: ActionRequest, settings: GameSettings, roster: Roster) -> tuple[str, ...]:
    """Return the commands of an action, in order; empty if no command has to be sent.

    There is no command for `kick`: players are kicked by user id, and the id has to be queried first.
    """
    is_plugin = settings.uses_plugin
    match action.type:
        case ActionType.PAUSE:
            return (command("css_forcepause" if is_plugin else "mp_pause_match"),)
        case ActionType.UNPAUSE:
            # The plugin ends only pauses that it knows of, so the game's own command is sent too.
            return (*((command("css_forceunpause"),) if is_plugin else ()), command("mp_unpause_match"))
        case ActionType.RESTORE:
            return (command("css_restore", bare((action.round or 1) - 1)),)
        case ActionType.SAY:
            return (command("say", quoted(action.said)),)
        case ActionType.ADD_PLAYER if is_plugin and action.steam_id is not None:
            return (add_player_command(action.steam_id, roster),)
        case ActionType.REMOVE_PLAYER if is_plugin and action.steam_id is not None:
            return (_remove_player_command(action.steam_id),)
        case ActionType.REPLACE_PLAYER if is_plugin and action.in_ is not None and action.out is not None:
            # Add the new player first. If the plugin rejects the new player, the other player is still listed.
            return (add_player_command(action.in_, roster), _remove_player_command(action.out))
        case _:
            return ()


def add_player_command(player_id: PlayerId, roster: Roster) -> str:
    """Return the command that adds a person to the plugin's list for the person's current role."""
    role = roster.role_of(player_id)
    # An empty name keeps the player's own name.
    return command("matchzy_addplayer", bare(player_id), _PLUGIN_LISTS[role or RosterRole.SPECTATOR], quoted(""))


def roster_commands(settings: GameSettings, roster: Roster, *, but: Container[PlayerId | None] = ()) -> tuple[str, ...]:
    """Return the commands that add the people missing from the plugin's match file to its list, except people in `but`.

    Removed people stay on the plugin's list, but the service keeps them off the server.
    """
    created = Roster.of(settings).roles
    added = [player for player in roster.roles if player not in created and player not in but]
    return tuple(add_player_command(player, roster) for player in added)


def read_answers(action: ActionRequest, answers: Sequence[str], *, may_be_listed: bool = False) -> CommandAnswer:
    """Read the answers to the commands of an action. An answer without a known rejection means acceptance.

    `may_be_listed`: the person may already be on the right list, so a rejection because they are listed is ignored.
    """
    for answer in answers:
        said = "".join(character for character in answer if character.isprintable()).lower()
        for sentence, verdict, detail in _REFUSALS:
            if sentence in said and not (may_be_listed and sentence == _ALREADY_LISTED):
                return CommandAnswer(verdict, detail)
    return CommandAnswer(ServerVerdict.ACCEPTED)


def is_on_plugin_list(action: ActionRequest, settings: GameSettings, roster: Roster) -> bool:
    """True if a person returns to their earlier plugin list, which may still have them: team2's list never shrinks."""
    player = action.in_ if action.type is ActionType.REPLACE_PLAYER else action.steam_id
    if player is None:
        return False
    before = Roster.of(settings).role_of(player) or roster.former.get(player)
    role = roster.role_of(player)
    return before is not None and role is not None and _PLUGIN_LISTS.get(before) == _PLUGIN_LISTS.get(role)


def _remove_player_command(player_id: PlayerId) -> str:
    return command("matchzy_removeplayer", bare(player_id))
