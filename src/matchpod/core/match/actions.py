"""Define the actions that a person can take on an open match: their fields, their states and when each is possible.

`ACTIONS` has one rule per action type. Request validation, the list of possible actions, the command line, the buttons
of the console and the page in the docs are built from these rules. `match_actions` tracks the state of each action, and
`match` makes the changes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from cs2_protocol.game import PlayerId, Team
from matchpod.core.match.phases import MatchPhase
from matchpod.core.match.roster import RosterRole

CONFIRM_MS: Final = 60_000
"""Timeout in ms for the server's confirmation of an action. It is not shortened in accelerated matches, because the
plugin may reject a command for several seconds before it accepts a retry."""

MAX_ROUND_MS: Final = 600_000
"""Timeout in ms for confirming a pause that is requested during a round: the pause begins only after the round."""

MIN_SAID_BYTES: Final = 24
"""Minimum size of a chat text in bytes; shorter texts are padded with spaces. The `say` command is then longer than any
console query, so that it can be recognized by its size where the log hides its text."""

MAX_ACTIONS: Final = 500
"""Maximum number of actions per match: more than an admin needs, and few enough to be kept in the state of the
match."""


class ActionType(StrEnum):
    """The types of actions on an open match."""

    PAUSE = "pause"
    UNPAUSE = "unpause"
    RESTORE = "restore"
    SAY = "say"
    KICK = "kick"
    ADD_PLAYER = "addPlayer"
    REMOVE_PLAYER = "removePlayer"
    REPLACE_PLAYER = "replacePlayer"
    EXTEND_JOIN = "extendJoin"
    START = "start"
    FORFEIT = "forfeit"


class ActionState(StrEnum):
    """The state of an action."""

    REQUESTED = "requested"
    """Accepted; the process that drives the match has not sent it yet."""
    SENT = "sent"
    """Sent to the server, which has not confirmed it yet."""
    DONE = "done"
    """Confirmed by the server's log, or by its plugin."""
    FAILED = "failed"
    """Rejected, or not confirmed in time."""

    @property
    def is_final(self) -> bool:
        """True if the action is done or has failed, so that its state no longer changes."""
        return self in (ActionState.DONE, ActionState.FAILED)

    @property
    def rank(self) -> int:
        """The position of the state in the order above. An action never returns to a state of lower rank."""
        return list(ActionState).index(self)


class ActionRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A requested action, with only the fields of its type set. `by` is the requester on the caller's platform."""

    id: str
    type: ActionType
    round: int | None = None
    text: str | None = None
    steam_id: PlayerId | None = None
    role: RosterRole | None = msgspec.field(default=None, name="as")
    out: PlayerId | None = None
    in_: PlayerId | None = msgspec.field(default=None, name="in")
    seconds: int | None = None
    winner: Team | None = None
    reason: str | None = None
    by: str | None = None

    @property
    def said(self) -> str:
        """The chat text as it is sent to the console, padded to MIN_SAID_BYTES."""
        text = self.text or ""
        return text + " " * (MIN_SAID_BYTES - len(text.encode()))

    def fields(self) -> dict[str, str | int]:
        """Return the type-specific fields that are set, by their names in the API."""
        given: dict[str, str | int] = msgspec.to_builtins(self)
        return {name: value for name, value in given.items() if name not in ("id", "type", "reason", "by")}

    @property
    def moves(self) -> tuple[PlayerId | None, PlayerId | None]:
        """The person whom the action takes off the roster and the person whom it adds; each may be None."""
        match self.type:
            case ActionType.ADD_PLAYER:
                return None, self.steam_id
            case ActionType.REMOVE_PLAYER:
                return self.steam_id, None
            case _:
                return self.out, self.in_


class ActionRecord(msgspec.Struct, kw_only=True):
    """An action of a match and its state. Its times are on the clock of the timeouts (`MatchReader.match_ms`)."""

    action: ActionRequest
    requested_ms: int
    until_ms: int
    """Deadline for the server's confirmation. An action that is not confirmed by this time fails."""
    state: ActionState = ActionState.REQUESTED
    detail: str | None = None
    """Why the action failed or, while it is open, what it waits for."""
    role_before: RosterRole | None = None
    """The previous role of the person whom the action removes from the roster. It is restored if the action fails."""
    refusal: str | None = None
    """The server's latest reason for rejecting the action. The commands are retried until they are accepted or the
    action fails."""
    is_answered: bool = False
    """True once the server has accepted the commands. For some actions, more has to happen before they are done."""


class ActionChange(msgspec.Struct, frozen=True):
    """A change of the state or the detail of an action. The newest change of an action has its current state."""

    action_id: str
    state: ActionState
    detail: str | None = None

    def is_after(self, state: ActionState, detail: str | None) -> bool:
        """True if this change is newer than `state` and `detail`, an earlier observation of the same action."""
        return not state.is_final and (self.state, self.detail) != (state, detail) and self.state.rank >= state.rank


class ServerVerdict(StrEnum):
    """How the server answered the commands of an action."""

    ACCEPTED = "accepted"
    LATER = "later"
    """Rejected for now. A retry may succeed in a few seconds."""
    REFUSED = "refused"


class ActionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The server's answer to the commands of an action. If they were rejected, `detail` is the text of the answer."""

    action_id: str
    verdict: ServerVerdict
    detail: str | None = None


class Obstacle(msgspec.Struct, frozen=True, kw_only=True):
    """Why an action is not possible now, as a sentence. `retry_after_s` is set if it will probably be possible soon."""

    text: str
    retry_after_s: int | None = None


class RestorePoint(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A round that can be restored, with the score at its beginning."""

    round: int
    rounds_kept: int
    team1: int
    team2: int

    @property
    def text(self) -> str:
        """The score and the round as a text for display, such as "3:2, round 6 begins"."""
        return f"{self.team1}:{self.team2}, round {self.round} begins"


class ActionField(msgspec.Struct, frozen=True, kw_only=True):
    """A field of an action type: its name in the API and its description (`text`)."""

    name: str
    text: str
    is_of_match: bool = False
    """True if the field identifies a person who is already in the match. Forms offer these people as choices."""


class ActionRule(msgspec.Struct, frozen=True, kw_only=True):
    """The rule of an action type: its texts, its fields, the match phases that allow it, and what else it requires."""

    type: ActionType
    label: str
    """The text of its button in the console."""
    text: str
    """One sentence that says what the action does."""
    done: str
    """The condition under which the action is done, as a clause at the end of a sentence."""
    phases: tuple[MatchPhase, ...]
    fields: tuple[ActionField, ...] = ()
    needs_plugin: bool = False
    needs_teams: bool = False
    needs_roster: bool = False
    is_single: bool = False
    """True if at most one action of this type can be open at a time."""


_WARMUP, _STARTING, _LIVE, _BETWEEN, _ = MatchPhase
_OPEN: Final = (_WARMUP, _STARTING, _LIVE, _BETWEEN)
_STEAM_ID: Final = ActionField(name="steamId", text="The 64-bit id of the player.", is_of_match=True)
_NEW: Final = msgspec.structs.replace(_STEAM_ID, is_of_match=False)
_ROLE: Final = ActionField(
    name="as",
    text="`team1`, `team2`, `spectator`, `coach1` or `coach2`; `player` in a match without teams.",
)

ACTIONS: Final[dict[ActionType, ActionRule]] = {
    rule.type: rule
    for rule in (
        ActionRule(
            type=ActionType.PAUSE,
            label="Pause",
            text="Pause play from the next freeze time on. Players cannot lift this pause.",
            done="the log says that the pause is on, and the round has ended",
            phases=(_LIVE,),
            is_single=True,
        ),
        ActionRule(
            type=ActionType.UNPAUSE,
            label="Resume",
            text="End a pause. A tactical timeout of a team ends by itself.",
            done="the log says that the pause is off",
            phases=(_LIVE,),
            is_single=True,
        ),
        ActionRule(
            type=ActionType.RESTORE,
            label="Restore a round",
            text="Play again from the beginning of a round. Play is paused afterwards.",
            done="the log says that the round was restored",
            phases=(_LIVE,),
            fields=(ActionField(name="round", text="The round that is played next; 1 restarts the map."),),
            needs_plugin=True,
            is_single=True,
        ),
        ActionRule(
            type=ActionType.SAY,
            label="Say",
            text="Send a text to the chat of all players.",
            done="the text is in the log",
            phases=_OPEN,
            fields=(ActionField(name="text", text="1 to 128 characters, checked like the name of a team."),),
        ),
        ActionRule(
            type=ActionType.KICK,
            label="Kick",
            text="Remove a player from the server. A listed player may come back.",
            done="the player has left",
            phases=_OPEN,
            fields=(_STEAM_ID,),
        ),
        ActionRule(
            type=ActionType.ADD_PLAYER,
            label="Add a player",
            text="List one more person: a player, a spectator or a coach.",
            done="the plugin has listed them; at once on a server without the plugin",
            phases=_OPEN,
            fields=(_NEW, _ROLE),
            needs_roster=True,
        ),
        ActionRule(
            type=ActionType.REMOVE_PLAYER,
            label="Remove a player",
            text="Take a person off the list and off the server. What they did still counts.",
            done="they are off the server and the plugin's list",
            phases=_OPEN,
            fields=(_STEAM_ID,),
            needs_roster=True,
        ),
        ActionRule(
            type=ActionType.REPLACE_PLAYER,
            label="Replace a player",
            text="Give the place of one person to another. Each keeps their own statistics.",
            done="the plugin has listed the new one and the other one is off the server",
            phases=_OPEN,
            fields=(
                ActionField(name="out", text="The 64-bit id of the person who leaves.", is_of_match=True),
                ActionField(name="in", text="The 64-bit id of the person who takes the place."),
            ),
            needs_roster=True,
        ),
        ActionRule(
            type=ActionType.EXTEND_JOIN,
            label="Extend the time to join",
            text="Add seconds to the current time to join.",
            done="it is accepted",
            phases=(_WARMUP, _STARTING, _BETWEEN),
            fields=(ActionField(name="seconds", text="10 to 3600."),),
        ),
        ActionRule(
            type=ActionType.START,
            label="Start",
            text="Start play without the players who are missing. They may still come in.",
            done="the map is live, or its knife round has begun",
            phases=(_WARMUP, _BETWEEN),
            is_single=True,
        ),
        ActionRule(
            type=ActionType.FORFEIT,
            label="Forfeit",
            text="End the match with the score so far and this winner.",
            done="the match has ended",
            phases=_OPEN,
            fields=(ActionField(name="winner", text="`team1` or `team2`."),),
            needs_teams=True,
            is_single=True,
        ),
    )
}
"""The rule of each action type."""


def label_of(action: str) -> str:
    """Return the button text of an action type, or its name in the API if this version does not know the type."""
    return ACTIONS[ActionType(action)].label if action in set(ActionType) else action
