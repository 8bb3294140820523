"""Let players connect, join a team, chat and leave, and log each step.

The steps are in the order of a real log: connected, validated, entered, switched from team. A player who returns during
the same map gets back their user id, money and team; `switched from team` is not logged then. A step for a player who
has already left is ignored, so scheduled steps need not be cancelled.
"""

from __future__ import annotations

from bisect import insort
from itertools import count
from operator import attrgetter

from cs2_protocol.log_lines.player_lines import (
    Attacked,
    ChangedName,
    Chat,
    Connected,
    Disconnected,
    Entered,
    Suicide,
    SwitchedTeam,
    Triggered,
    Validated,
)
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.fights.economy import reward_for_departure
from cs2_simulator.play.player import SPECTATOR, UNASSIGNED, Participant, Player

DEFAULT_MAX_PLAYERS = 64
"""The default player limit of a CS2 server."""

FIRST_USER_ID = 1
"""Lowest user id of a player. User id 0 belongs to SourceTV."""

BY_USER = "NETWORK_DISCONNECT_DISCONNECT_BY_USER"
EXITING = "NETWORK_DISCONNECT_EXITING"
KICKED = "NETWORK_DISCONNECT_KICKED"
KICKED_IDLE = "NETWORK_DISCONNECT_KICKED_IDLE"
TIMED_OUT = "NETWORK_DISCONNECT_TIMEDOUT"
LOOP_DEACTIVATE = "NETWORK_DISCONNECT_LOOPDEACTIVATE"
"""Disconnect reason at a map change, also logged for players who leave from the scoreboard after the end of the map."""

_user_id = attrgetter("user_id")


class Door:
    """Connects and disconnects the players of one server."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self.max_players = DEFAULT_MAX_PLAYERS

    def connect(self, person: Participant) -> Player | None:
        """Connect a person with their previous user id, else the lowest free one; return None if the server is full.

        The player may already have left when this returns: a `Watcher` may kick the player at once.
        """
        arena = self._arena
        if len(arena.players) >= self.max_players:
            return None
        player = self._return(person) or Player(person, self._free_user_id())
        player.connected_at_ms = arena.agenda.now_ms
        insort(arena.players, player, key=_user_id)
        arena.log.write(Connected(player.token, person.address))
        arena.notify(lambda watcher: watcher.player_connected(player), about=player)
        return player

    def validate(self, player: Player) -> None:
        """Log that Steam confirmed the player's account."""
        if player in self._arena.players:
            self._arena.log.write(Validated(player.token))

    def enter(self, player: Player) -> None:
        arena = self._arena
        if player not in arena.players or player.is_in_game:
            return
        arena.log.write(Entered(player.token))
        player.is_in_game = True
        player.team, player.kept_team = player.kept_team or UNASSIGNED, ""
        arena.notify(lambda watcher: watcher.player_entered(player), about=player)
        if player.side is not None:
            self._resume(player)

    def join(self, player: Player, team: str, *, is_forced: bool = False) -> None:
        """Put a player on a team, or on the team that the plugin requires.

        As in the game, the change of team kills a living player.

        `is_forced` is set by the plugin itself, which may move players to any team.
        """
        arena = self._arena
        if player not in arena.players:
            return
        if not is_forced:
            team = arena.required_team(player) or team
        if team == player.team:
            return
        if player.is_alive:
            self._drop_bomb(player)
        had_side = player.side is not None
        arena.log.write(SwitchedTeam(player.teamless_token, player.team or UNASSIGNED, team))
        player.team = team
        if player.is_alive:
            self._die_of_team_change(player)
        if had_side:
            arena.book.player_left(player)
        self._notify_joined(player)

    def leave(self, player: Player, reason: str) -> None:
        """Disconnect a player; `reason` is the text in the log.

        A living player dies when leaving, but a bot does not.
        """
        arena = self._arena
        if player not in arena.players:
            return
        if player.is_alive:
            self._drop_bomb(player)
        arena.log.write(Disconnected(player.token, reason))
        arena.players.remove(player)
        if player.is_alive:
            reward_for_departure(arena, player)
            if not player.person.is_bot:
                arena.log.write(Suicide(player.token, player.position, "world"))
                arena.book.died(player)
                player.died_leaving = True
        player.is_alive = player.is_in_game = False
        player.team = player.kept_team or player.team
        if player.team not in ("", UNASSIGNED, SPECTATOR):
            arena.book.player_left(player)
            insort(arena.absent, player, key=_user_id)
        arena.notify(lambda watcher: watcher.player_left(player, reason))
        if player in arena.absent:
            arena.plan_last_line(player)

    def kick(self, player: Player) -> None:
        self.leave(player, KICKED)

    def say(self, player: Player, text: str, *, is_team_only: bool = False) -> None:
        arena = self._arena
        if player not in arena.players:
            return
        arena.log.write(Chat(player.token, is_team_only, text))
        arena.notify(lambda watcher: watcher.player_chatted(player, text))

    def rename(self, player: Player, name: str) -> None:
        """Change a player's name, which is used in later log lines."""
        if player not in self._arena.players or name == player.person.name:
            return
        self._arena.log.write(ChangedName(player.token, name))
        player.rename(name)

    def find(self, user_id: int) -> Player | None:
        return next((player for player in self._arena.players if player.user_id == user_id), None)

    def _return(self, person: Participant) -> Player | None:
        """Return a new `Player` for a person who returns to this map, with the kept state; None if nothing was kept."""
        arena = self._arena
        left = next((player for player in arena.absent if player.person.account == person.account), None)
        if left is None or person.is_bot:
            return None
        arena.absent.remove(left)
        return Player(person, left.user_id, kept_team=left.team, money=left.money)

    def _resume(self, player: Player) -> None:
        """Let a returned player continue on their previous team, unless the plugin requires another team."""
        required = self._arena.required_team(player)
        if required is not None and required != player.team:
            self.join(player, required)
        else:
            self._notify_joined(player)

    def _notify_joined(self, player: Player) -> None:
        self._arena.notify(lambda watcher: watcher.player_joined(player), about=player)

    def _free_user_id(self) -> int:
        taken = {player.user_id for player in (*self._arena.players, *self._arena.absent)}
        return next(user_id for user_id in count(FIRST_USER_ID) if user_id not in taken)

    def _drop_bomb(self, player: Player) -> None:
        if player.has_bomb:
            player.has_bomb = False
            self._arena.log.write(Triggered(player.token, "Dropped_The_Bomb"))

    def _die_of_team_change(self, player: Player) -> None:
        """Log the lines for a living player who changes sides: a hit on themselves without a weapon, and a suicide."""
        token, place = player.token, player.position
        self._arena.log.write(
            Attacked(token, place, token, place, "", damage=1, damage_armor=0, health=0, armor=0, hitgroup="GENERIC")
        )
        self._arena.log.write(Suicide(token, place, "world"))
        player.is_alive = False
        player.health = 0
        self._arena.book.died(player)
