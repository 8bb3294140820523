"""Track the actions of a match: whether each is possible, its state, and the events that confirm it.

An action is done when the server's log or its plugin confirms it, never because a command was sent. Changes to the
match itself, such as to its roster, are made by `match` when the action is requested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cs2_protocol.game import PlayerId
from matchpod.core.events import (
    CommandLogged,
    GameEvent,
    MapLive,
    Paused,
    RoundDecided,
    RoundRestored,
    ServerSaid,
    Unpaused,
)
from matchpod.core.match.actions import (
    ACTIONS,
    CONFIRM_MS,
    MAX_ACTIONS,
    MAX_ROUND_MS,
    ActionChange,
    ActionRecord,
    ActionRequest,
    ActionState,
    ActionType,
    Obstacle,
    RestorePoint,
)
from matchpod.core.match.alarms import MatchAlarms
from matchpod.core.match.phases import MatchPhase
from matchpod.core.match.roster import RosterRole
from matchpod.core.model import MAX_LISTED_PLAYERS

AT_END: Final = "The match ended before this was done."
NOT_CONFIRMED: Final = "The server did not confirm the action in time."
DECIDED: Final = "Play has decided the match already."
REFUSED: Final = "The server rejected the action."
FROM_NEXT_ROUND: Final = "Play pauses when this round has ended."
LIFTED: Final = "The pause was lifted before play stopped."

_TOO_MANY: Final = Obstacle(text=f"A match can have at most {MAX_ACTIONS} actions.")
_OVER: Final = Obstacle(text="The match has ended.")
_OPEN_ROSTER: Final = Obstacle(text="This match has no list of players: everyone may join and play.")
_NO_PLUGIN: Final = Obstacle(text="This needs the match plugin, which runs matches with listed players only.")
_NO_TEAMS: Final = Obstacle(text="This match has no teams.")
_FULL: Final = Obstacle(text=f"A match can list at most {MAX_LISTED_PLAYERS} people.")
_LAST_PLAYER: Final = Obstacle(text="This is the last player on the list.")
_NOT_HERE: Final = Obstacle(text="This player is not on the server.")
_NOT_LISTED: Final = Obstacle(text="This person is not on the list of the match.")
_LISTED: Final = Obstacle(text="This person is on the list of the match already.")
_PAUSED: Final = Obstacle(text="Play is paused already, or will be in the next freeze time.")
_NOT_PAUSED: Final = Obstacle(text="Play is not paused.")
_TIMEOUT: Final = Obstacle(text="This is a tactical timeout of a team: it ends by itself.")
_NO_DEADLINE: Final = Obstacle(text="The time to join is not running.")
_LOADING: Final = Obstacle(text="The next map is not loaded yet.", retry_after_s=10)
_NOBODY_HERE: Final = Obstacle(text="No player is on the server.")
_PHASES: Final = {
    MatchPhase.WARMUP: Obstacle(text="No map is live yet: the match waits for its players."),
    MatchPhase.STARTING: Obstacle(text="Play is about to start.", retry_after_s=20),
    MatchPhase.LIVE: Obstacle(text="A map is live."),
    MatchPhase.BETWEEN_MAPS: Obstacle(text="No map is live: the next one is loading or waits for its players."),
    MatchPhase.OVER: _OVER,
}


class MatchActions(MatchAlarms, kw_only=True):
    """The state of a match, extended by its actions and by the rules for when they are possible and done."""

    # --- what is possible ------------------------------------------------------------------------------------------

    def obstacle(self, action_type: ActionType) -> Obstacle | None:
        """Return why actions of this type are impossible now, whatever their fields; None if some may be possible."""
        rule = ACTIONS[action_type]
        if self.phase not in rule.phases:
            return _PHASES[self.phase]
        if rule.needs_plugin and not self.settings.uses_plugin:
            return _NO_PLUGIN
        if rule.needs_teams and not self.settings.match_type.has_series:
            return _NO_TEAMS
        if rule.needs_roster and self.roster.is_open:
            return _OPEN_ROSTER
        if len(self.actions) >= MAX_ACTIONS:
            return _TOO_MANY
        if rule.is_single and any(record.action.type is action_type for record in self._open_actions()):
            return Obstacle(text="The same action was requested already, and is not done yet.", retry_after_s=5)
        found = _OBSTACLES.get(action_type)
        return None if found is None else found(self)

    def obstacle_to(self, action: ActionRequest) -> Obstacle | None:
        """Return why this action is not possible now; None if it is possible."""
        found = self.obstacle(action.type)
        check = _FIELD_OBSTACLES.get(action.type)
        return found or (None if check is None else check(self, action))

    def restorable(self) -> tuple[RestorePoint, ...]:
        """Return the rounds of the current map that can be restored; empty unless a map is live."""
        if self.phase is not MatchPhase.LIVE or not self.current_map.is_scored:
            return ()
        scores = {
            record.number: record.score for record in self.current_map.ledger.records() if record.score is not None
        }
        scores[0] = (0, 0)
        played = self.current_map.team1_score + self.current_map.team2_score
        return tuple(
            RestorePoint(round=kept + 1, rounds_kept=kept, team1=score[0], team2=score[1])
            for kept, score in sorted(scores.items())
            if kept <= played and sum(score) == kept
        )

    def _pause_obstacle(self) -> Obstacle | None:
        return _PAUSED if self.current_map.has_pause else None

    def _unpause_obstacle(self) -> Obstacle | None:
        is_coming = any(record.action.type is ActionType.PAUSE for record in self._open_actions())
        if self.current_map.has_pause or is_coming:
            return None
        return _TIMEOUT if self.current_map.has_timeout else _NOT_PAUSED

    def _extend_obstacle(self) -> Obstacle | None:
        return _NO_DEADLINE if self.join_deadline_ms() is None else None

    def _start_obstacle(self) -> Obstacle | None:
        if self.presence.is_map_over:
            return _LOADING
        return None if self.presence.connected else _NOBODY_HERE

    def _kick_obstacle(self, action: ActionRequest) -> Obstacle | None:
        return None if self._is_here(action.steam_id) else _NOT_HERE

    def _restore_obstacle(self, action: ActionRequest) -> Obstacle | None:
        points = self.restorable()
        if any(point.round == action.round for point in points):
            return None
        known = ", ".join(str(point.round) for point in points)
        return Obstacle(text=f"Round {action.round} cannot be restored. Rounds that can: {known or 'none'}.")

    def _add_obstacle(self, action: ActionRequest) -> Obstacle | None:
        role = action.role or RosterRole.PLAYER
        *first, last = possible = RosterRole.of_match(self.settings.match_type)
        if role not in possible:
            return Obstacle(text=f"In this match `as` can be {', '.join(first)} or {last}.")
        if self.roster.role_of(action.steam_id or "") is not None:
            return _LISTED
        return _FULL if len(self.roster.roles) >= MAX_LISTED_PLAYERS else None

    def _remove_obstacle(self, action: ActionRequest) -> Obstacle | None:
        role = self.roster.role_of(action.steam_id or "")
        if role is None:
            return _NOT_LISTED
        return _LAST_PLAYER if self.roster.players == (action.steam_id,) else None

    def _replace_obstacle(self, action: ActionRequest) -> Obstacle | None:
        if self.roster.role_of(action.out or "") is None:
            return _NOT_LISTED
        return None if self.roster.role_of(action.in_ or "") is None else _LISTED

    def _is_here(self, player_id: PlayerId | None) -> bool:
        presence = self.presence
        return any(player_id in group for group in (presence.connected, presence.guests, presence.turned_away))

    # --- the states of actions -------------------------------------------------------------------------------------

    def note_action_sent(self, action_id: str) -> None:
        """Record that an action was sent to the server, or is about to be."""
        record = self.open_action(action_id)
        if record is not None:
            record.refusal = None
            if record.state is ActionState.REQUESTED:
                self._change(record, ActionState.SENT, record.detail)

    def open_action(self, action_id: str) -> ActionRecord | None:
        """Return the action with this id if it is open (neither done nor failed), else None."""
        record = self.actions.get(action_id)
        return None if record is None or record.state.is_final else record

    def pending_action(self) -> ActionRecord | None:
        """Return the newest action that is neither done nor failed; None if there is none."""
        return self.actions[self.open_actions[-1]] if self.open_actions else None

    def unanswered_actions(self) -> list[ActionRecord]:
        """Return the open actions (neither done nor failed) that the server has not accepted yet."""
        return [record for record in self._open_actions() if not record.is_answered]

    def _open_actions(self) -> list[ActionRecord]:
        return [self.actions[action_id] for action_id in self.open_actions]

    def _add_action(self, action: ActionRequest, now_ms: int) -> ActionRecord:
        waits = action.type is ActionType.PAUSE and not self._can_pause_now()
        lasts_ms = MAX_ROUND_MS if waits else CONFIRM_MS
        record = ActionRecord(action=action, requested_ms=now_ms, until_ms=now_ms + lasts_ms)
        self.actions[action.id] = record
        self.open_actions.append(action.id)
        self.action_changes.append(ActionChange(action.id, record.state))
        return record

    def _refuse_action(self, action: ActionRequest, why: str, now_ms: int) -> None:
        """Record that an action failed: it was possible when the service accepted it, but is no longer possible."""
        if len(self.actions) < MAX_ACTIONS:
            self._finish_action(self._add_action(action, now_ms), why)
        else:
            self.action_changes.append(ActionChange(action.id, ActionState.FAILED, why))

    def _finish_action(self, record: ActionRecord, why: str | None = None) -> None:
        """Record that an action is done or, if `why` is given, that it failed for this reason."""
        self.open_actions.remove(record.action.id)
        self._change(record, ActionState.DONE if why is None else ActionState.FAILED, why)

    def _change(self, record: ActionRecord, state: ActionState, detail: str | None) -> None:
        if (record.state, record.detail) == (state, detail):
            return  # the server may log the same pause several times
        record.state, record.detail = state, detail
        self.action_changes.append(ActionChange(record.action.id, state, detail))

    def _end_actions(self) -> None:
        """Finish all open actions at the end of the match. A forfeit is done; all other actions have failed."""
        for record in self._open_actions():
            self._finish_action(record, None if record.action.type is ActionType.FORFEIT else AT_END)

    def _observe_actions(self, event: GameEvent, now_ms: int) -> None:
        """Finish the open actions that an event confirms, and follow the progress of requested pauses."""
        for record in self._open_actions():
            if self._is_proved(record, event):
                self._finish_action(record)
            elif record.action.type is ActionType.PAUSE:
                self._follow_pause(record, event, now_ms)

    def _follow_pause(self, record: ActionRecord, event: GameEvent, now_ms: int) -> None:
        match event:
            case Paused() if record.state is ActionState.SENT and not event.is_timeout:
                self._change(record, ActionState.SENT, FROM_NEXT_ROUND)
            case Unpaused() if record.detail == FROM_NEXT_ROUND and not event.is_timeout:
                self._finish_action(record, LIFTED)
            case RoundDecided() | Unpaused() if self._can_pause_now():
                record.until_ms = min(record.until_ms, now_ms + CONFIRM_MS)
            case _:
                pass

    def _can_pause_now(self) -> bool:
        """True between rounds and outside tactical timeouts, when a pause takes effect immediately."""
        return self.current_map.round_number is None and not self.current_map.has_timeout

    def _is_proved(self, record: ActionRecord, event: GameEvent) -> bool:
        action = record.action
        match action.type:
            case ActionType.UNPAUSE:
                return isinstance(event, Unpaused) and not event.is_timeout
            case ActionType.RESTORE:
                kept = (action.round or 1) - 1
                is_restart = kept == 0 and isinstance(event, MapLive)
                return is_restart or (isinstance(event, RoundRestored) and event.rounds_kept == kept)
            case ActionType.SAY:
                return record.state is ActionState.SENT and _is_said(action, event)
            case _:
                return self._is_carried_out(record)

    def _is_carried_out(self, record: ActionRecord) -> bool:
        """True if the state of the match shows that an action is done; False if only an event can confirm it."""
        action, played = record.action, self.current_map
        match action.type:
            case ActionType.PAUSE:
                # A pause that began before the action was sent is a different pause: players may be able to end it.
                return record.state is ActionState.SENT and played.has_pause and played.round_number is None
            case ActionType.START:
                return self.phase is MatchPhase.LIVE or self.knife.start is not None
            case ActionType.KICK:
                return not self._is_here(action.steam_id)
            case ActionType.ADD_PLAYER | ActionType.REMOVE_PLAYER | ActionType.REPLACE_PLAYER:
                leaves, _ = action.moves
                return (record.is_answered or not self.settings.uses_plugin) and not self._is_here(leaves)
            case _:
                return False


def _is_said(action: ActionRequest, event: GameEvent) -> bool:
    """True if an event shows that this action's text was sent to the chat. The game may cut off its end.

    Some servers log only the command, and the log hides its text. The command is then recognized by its size.
    """
    match event:
        case ServerSaid():
            return bool(event.text) and action.said.startswith(event.text)
        case CommandLogged():
            return event.size == len(f'say "{action.said}"'.encode())
        case _:
            return False


ROSTER_ACTIONS: Final = (ActionType.ADD_PLAYER, ActionType.REMOVE_PLAYER, ActionType.REPLACE_PLAYER)
"""The types of actions that change the roster."""

_OBSTACLES: Final[dict[ActionType, Callable[[MatchActions], Obstacle | None]]] = {
    ActionType.PAUSE: MatchActions._pause_obstacle,
    ActionType.UNPAUSE: MatchActions._unpause_obstacle,
    ActionType.EXTEND_JOIN: MatchActions._extend_obstacle,
    ActionType.START: MatchActions._start_obstacle,
}
_FIELD_OBSTACLES: Final[dict[ActionType, Callable[[MatchActions, ActionRequest], Obstacle | None]]] = {
    ActionType.KICK: MatchActions._kick_obstacle,
    ActionType.RESTORE: MatchActions._restore_obstacle,
    ActionType.ADD_PLAYER: MatchActions._add_obstacle,
    ActionType.REMOVE_PLAYER: MatchActions._remove_obstacle,
    ActionType.REPLACE_PLAYER: MatchActions._replace_obstacle,
}
