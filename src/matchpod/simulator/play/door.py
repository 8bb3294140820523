"""How does somebody come in, take a team, speak and go? The lines of each step, and who stands on the server.

The order is the log's: connected, validated, entered, switched from team. Whoever is gone does nothing any more:
every step for a player who is not here is passed over, so that plans made for him need not be called off.
"""

from __future__ import annotations

from bisect import insort
from operator import attrgetter

from matchpod.cs2.log_lines.player_lines import (
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
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.player import UNASSIGNED, Person, Player

DEFAULT_SEATS = 64
"""What a CS2 server seats unless told otherwise."""

FIRST_NUMBER = 1
"""Number 0 is the TV's."""

BY_USER = "NETWORK_DISCONNECT_DISCONNECT_BY_USER"
EXITING = "NETWORK_DISCONNECT_EXITING"
KICKED = "NETWORK_DISCONNECT_KICKED"
LOOP_DEACTIVATE = "NETWORK_DISCONNECT_LOOPDEACTIVATE"
"""A map change, and also players who leave the score board after the end."""

_user_id = attrgetter("user_id")


class Door:
    """Everybody comes and goes here."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self.seats = DEFAULT_SEATS

    def connect(self, person: Person) -> Player | None:
        """Somebody opens a connection, under the lowest free number; None when every seat is taken.

        He may be gone again when this returns: a watcher can kick him at once.
        """
        arena = self._arena
        if len(arena.players) >= self.seats:
            return None
        player = Player(person, self._free_number(), connected_at_ms=arena.agenda.now_ms)
        insort(arena.players, player, key=_user_id)
        arena.log.write(Connected(player.token, person.address))
        for watcher in tuple(arena.watchers):
            if player in arena.players:
                watcher.player_connected(player)
        return player

    def validate(self, player: Player) -> None:
        """Steam confirms who he is."""
        if player in self._arena.players:
            self._arena.log.write(Validated(player.token))

    def enter(self, player: Player) -> None:
        """He has loaded the map."""
        arena = self._arena
        if player not in arena.players or player.is_in_game:
            return
        arena.log.write(Entered(player.token))
        player.is_in_game = True
        player.team = UNASSIGNED
        for watcher in tuple(arena.watchers):
            if player in arena.players:
                watcher.player_entered(player)

    def join(self, player: Player, team: str) -> None:
        """He takes a team, or the one the plugin holds him to. A living player dies of it, as he does in the game."""
        arena = self._arena
        if player not in arena.players:
            return
        team = arena.team_of(player) or team
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
            arena.book.left(player, arena.agenda.now_ms)
        for watcher in tuple(arena.watchers):
            if player in arena.players:
                watcher.player_joined(player)

    def leave(self, player: Player, reason: str) -> None:
        """He is gone, for a reason as the log names it."""
        arena = self._arena
        if player not in arena.players:
            return
        if player.is_alive:
            self._drop_bomb(player)
        arena.log.write(Disconnected(player.token, reason))
        if player.is_alive:
            arena.log.write(Suicide(player.token, player.position, "world"))
        arena.players.remove(player)
        player.is_alive = False
        player.is_in_game = False
        if player.side is not None:
            arena.book.left(player, arena.agenda.now_ms)
        for watcher in tuple(arena.watchers):
            watcher.player_left(player, reason)

    def kick(self, player: Player, message: str) -> None:
        """Throw him out. The message is for his screen: CS2 does not log it."""
        self.leave(player, KICKED)

    def say(self, player: Player, text: str, *, is_team_only: bool = False) -> None:
        """He writes into the chat."""
        arena = self._arena
        if player not in arena.players:
            return
        arena.log.write(Chat(player.token, is_team_only, text))
        for watcher in tuple(arena.watchers):
            watcher.player_said(player, text)

    def rename(self, player: Player, name: str) -> None:
        """He takes another name; the lines after this one know him by it."""
        if player not in self._arena.players or name == player.person.name:
            return
        self._arena.log.write(ChangedName(player.token, name))
        player.rename(name)

    def find(self, user_id: int) -> Player | None:
        """Who has this number now."""
        return next((player for player in self._arena.players if player.user_id == user_id), None)

    def _free_number(self) -> int:
        number = FIRST_NUMBER
        for player in self._arena.players:
            if player.user_id == number:
                number += 1
        return number

    def _drop_bomb(self, player: Player) -> None:
        if player.has_bomb:
            player.has_bomb = False
            self._arena.log.write(Triggered(player.token, "Dropped_The_Bomb"))

    def _die_of_team_change(self, player: Player) -> None:
        """The pair of lines that a change from side to side prints: he hits himself with nothing, and is dead."""
        token, place = player.token, player.position
        self._arena.log.write(
            Attacked(token, place, token, place, "", damage=1, damage_armor=0, health=0, armor=0, hitgroup="GENERIC")
        )
        self._arena.log.write(Suicide(token, place, "world"))
        player.is_alive = False
        player.health = 0
        self._arena.book.died(player, self._arena.agenda.now_ms)
