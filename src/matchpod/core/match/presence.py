"""Track which human players are, were or may be on the server. Bots are ignored.

With a roster, only listed players count. Unlisted players are kicked, and not tracked as players. Listed spectators and
coaches are guests: the match does not wait for them, and a server with only guests counts as empty. A client counts as
connected from its first log line, and is in the game once it has entered. A map change disconnects all players for a
while, so the time of the change is recorded; `alarms` decides how long the match waits for the players.
"""

from __future__ import annotations

import msgspec

from cs2_protocol.game import PlayerId, Side, Team, is_human
from matchpod.core.effects import UNKNOWN_USER_ID, Kick
from matchpod.core.events import (
    GameEvent,
    LogGap,
    MapLoading,
    PlayerConnected,
    PlayerDisconnected,
    PlayerEntered,
    PlayerJoinedSide,
    PlayerRenamed,
    PlayersSeen,
    RoundStarted,
    ServerRestarted,
)
from matchpod.core.match.roster import Roster

MAX_SEEN_PLAYERS = 1024
"""Maximum number of players tracked per match. Far fewer players join a server with 64 slots, but a log can contain
forged ids."""

NOT_LISTED = "You are not on the player list of this match"
"""Kick reason shown to a player who is not on the roster."""


class PlayerConnection(msgspec.Struct):
    """A client on the server. `entered_ms` is when it entered the map, `side` the side that it joined, or None.

    `loading_ms` is when it began to load the map; None once it has entered, and while it stays on a map that is over.
    """

    user_id: int
    name: str
    entered_ms: int | None = None
    side: Side | None = None
    loading_ms: int | None = None


class Presence(msgspec.Struct, kw_only=True):
    """The human players of a match.

    `turned_away` has the user ids of unlisted people who tried to join. `empty_since_ms` is when the last player left;
    None while a player is connected, and before the first player connects. `is_map_over` is True from the end of a map
    until the next map loads. `loaded_map` is the map that was loaded last. `is_cut` is True if log lines were lost
    before that load; some players may then have left without a log line. `doubt_since_ms` is when log lines were last
    lost; None once the console's list of players matches the players tracked here. `seen` and `unseen` map a player to
    the time from which that list has contained or lacked them. `has_list` is True once that list has confirmed who is
    on the server since the last loss, even if clients are still loading. `left` has the players who left for another
    reason than a map change. `guests` has the spectators and coaches on the server. `excused` has the listed players
    without whom play was started; the match does not wait for them until they connect.
    """

    roster: Roster = Roster()
    connected: dict[PlayerId, PlayerConnection] = msgspec.field(default_factory=dict)
    ever_connected: list[PlayerId] = msgspec.field(default_factory=list)
    teams: dict[PlayerId, Team] = msgspec.field(default_factory=dict)
    turned_away: dict[PlayerId, int] = msgspec.field(default_factory=dict)
    empty_since_ms: int | None = None
    map_change_at_ms: int | None = None
    is_map_over: bool = False
    loaded_map: str = ""
    is_cut: bool = False
    doubt_since_ms: int | None = None
    has_list: bool = False
    seen: dict[PlayerId, int] = msgspec.field(default_factory=dict)
    unseen: dict[PlayerId, int] = msgspec.field(default_factory=dict)
    left: list[PlayerId] = msgspec.field(default_factory=list)
    guests: dict[PlayerId, PlayerConnection] = msgspec.field(default_factory=dict)
    excused: list[PlayerId] = msgspec.field(default_factory=list)

    @property
    def is_doubtful(self) -> bool:
        """True if log lines were lost, so that the console must be polled for its list of players (`PlayersSeen`)."""
        return self.doubt_since_ms is not None

    @property
    def awaits_list(self) -> bool:
        """True if log lines were lost, and the console's list has not yet confirmed who is on the server."""
        return self.is_doubtful and not self.has_list

    def mark_doubtful(self, now_ms: int) -> None:
        """Record that log lines about connecting or leaving players may have been lost."""
        self.doubt_since_ms, self.has_list = now_ms, False
        self.seen.clear()
        self.unseen.clear()

    def is_unlisted(self, player_id: PlayerId) -> bool:
        """True for a human who is not allowed on the server. Without a roster, all humans are allowed."""
        return not self.roster.is_let_in(player_id) and is_human(player_id)

    def is_outsider(self, player_id: PlayerId) -> bool:
        """True for a human whose statistics do not count: an unlisted person, a spectator or a coach."""
        return not self.roster.is_counted(player_id) and is_human(player_id)

    def user_id_of(self, player_id: PlayerId) -> int:
        """Return the latest known user id of a person. After lost log lines, the id may belong to another person."""
        known = self.connected.get(player_id) or self.guests.get(player_id)
        return self.turned_away.get(player_id, UNKNOWN_USER_ID) if known is None else known.user_id

    @property
    def awaited(self) -> tuple[PlayerId, ...]:
        """The listed players without whom play does not begin, in roster order."""
        listed = self.roster.players
        return tuple(player for player in listed if player not in self.excused) if self.excused else listed

    def excuse_absent(self) -> None:
        """Stop waiting for the listed players who are not connected. They are awaited again once they connect."""
        self.excused.extend(self.absent())

    def missing(self) -> tuple[PlayerId, ...]:
        """Return the awaited players who never connected, in roster order."""
        return tuple(player for player in self.awaited if player not in self.ever_connected)

    def missing_of_created(self) -> tuple[PlayerId, ...]:
        """Return the players listed at creation who never connected, except players whom an action removed."""
        listed = self.roster.players
        return tuple(who for who in self.roster.created if who in listed and who not in self.ever_connected)

    def joined_of_created(self) -> tuple[PlayerId, ...]:
        """Return the players listed at creation who connected at least once, except players whom an action removed."""
        listed = self.roster.players
        return tuple(who for who in self.roster.created if who in listed and who in self.ever_connected)

    def absent(self) -> tuple[PlayerId, ...]:
        """Return the awaited players who are not connected, in roster order."""
        return tuple(player for player in self.awaited if player not in self.connected)

    def not_here(self) -> tuple[PlayerId, ...]:
        """Return the listed players who are not connected, including players who are not awaited, in roster order."""
        return tuple(player for player in self.roster.players if player not in self.connected)

    def loading(self) -> tuple[PlayerId, ...]:
        """Return the awaited players whose clients are loading the map, in roster order."""
        return tuple(player for player in self.awaited if self._loading_ms(player) is not None)

    def loading_since_ms(self) -> int | None:
        """Return the latest time at which an awaited player who is loading began to load; None if none is loading."""
        return max((at_ms for player in self.awaited if (at_ms := self._loading_ms(player)) is not None), default=None)

    def is_team_here(self, team: Team, now_ms: int, *, load_ms: int) -> bool:
        """True if all awaited players of a team are on the server; False for a team without awaited players.

        A player who has been loading for `load_ms` does not count as being on the server.
        """
        members = [player for player in self.awaited if self.roster.team_of(player) is team]
        return bool(members) and all(self._is_here(player, now_ms - load_ms) for player in members)

    def _is_here(self, player_id: PlayerId, began_after_ms: int) -> bool:
        loading_ms = self._loading_ms(player_id)
        return player_id in self.connected and (loading_ms is None or loading_ms > began_after_ms)

    def loaded_by_ms(self, end_ms: int, load_ms: int) -> int:
        """Return `end_ms`, extended for awaited players who are still loading. Absent players prevent the extension.

        So do players who connected after `end_ms`, or had been loading for `load_ms` by that time.
        """
        began = [at_ms for player in self.awaited if (at_ms := self._loading_ms(player)) is not None]
        is_waiting = not self.absent() and all(at_ms <= end_ms < at_ms + load_ms for at_ms in began)
        return max(began) + load_ms if is_waiting and began else end_ms

    def _loading_ms(self, player_id: PlayerId) -> int | None:
        connection = self.connected.get(player_id)
        return None if connection is None else connection.loading_ms

    def complete_since_ms(self) -> int | None:
        """Return the time at which the last awaited player entered; None if any is missing, or no player is awaited."""
        awaited = self.awaited
        entered = [self.connected[player].entered_ms for player in awaited if player in self.connected]
        known = [at_ms for at_ms in entered if at_ms is not None]
        return max(known) if known and len(known) == len(awaited) else None

    def is_everyone_on_a_side(self) -> bool:
        """True if every awaited player is on a side."""
        return all(player in self.connected and self.connected[player].side is not None for player in self.awaited)

    def apply(self, event: GameEvent, now_ms: int) -> list[Kick]:
        """Apply an event; return kicks for players who are not on the roster."""
        match event:
            case PlayerConnected() | PlayerEntered() | PlayerJoinedSide():
                return self._arrive(event, now_ms)
            case PlayerDisconnected():
                self._leave(event, now_ms)
            case PlayerRenamed() if event.player_id in self.connected:
                self.connected[event.player_id].name = event.name
            case MapLoading() | ServerRestarted():
                self.loaded_map = event.map_name if isinstance(event, MapLoading) else ""
                self.is_cut = bool(self.connected) or self.is_doubtful
                self._disconnect_all(now_ms)
            case RoundStarted():
                self._connect_line_ups(event, now_ms)
            case LogGap() if self.is_doubtful:
                self.doubt_since_ms, self.has_list = now_ms, False  # keep `seen` and `unseen`
            case LogGap():
                self.mark_doubtful(now_ms)
            case PlayersSeen() if self.is_doubtful and not self.is_map_over:
                return self._reconcile(event, now_ms)
            case _:
                pass
        return []

    def change_roster(self, roster: Roster) -> list[Kick]:
        """Replace the roster; return kicks for people on the server who are no longer listed."""
        self.roster = roster
        here = {**self.connected, **self.guests}.items()
        return [Kick(player_id, found.user_id, NOT_LISTED) for player_id, found in here if self.is_unlisted(player_id)]

    def map_ended(self, now_ms: int) -> None:
        """Record that a map has ended, and that all players have to enter the next map."""
        self.is_map_over = True
        self.map_change_at_ms = now_ms
        for connection in self.connected.values():
            connection.entered_ms = connection.loading_ms = None
            connection.side = None

    def _arrive(self, event: PlayerConnected | PlayerEntered | PlayerJoinedSide, now_ms: int) -> list[Kick]:
        if not is_human(event.player_id):
            return []
        if self.is_unlisted(event.player_id):
            return [self._kick_unlisted(event)]
        if self.roster.is_guest(event.player_id):
            user_id = UNKNOWN_USER_ID if isinstance(event, PlayerJoinedSide) else event.user_id
            self._greet(event.player_id, event.name, user_id)
            return []
        match event:
            case PlayerConnected():
                self.seen.pop(event.player_id, None)  # the client has to load again
                self._connect(event.player_id, PlayerConnection(event.user_id, event.name, loading_ms=now_ms))
            case PlayerEntered():
                self._connect(event.player_id, PlayerConnection(event.user_id, event.name, now_ms, self._side(event)))
            case PlayerJoinedSide():
                self._join_side(event, now_ms)
        return []

    def _kick_unlisted(self, event: PlayerConnected | PlayerEntered | PlayerJoinedSide) -> Kick:
        # A kick may fail while the client is loading, so each later line about the client repeats it.
        if isinstance(event, PlayerJoinedSide):
            user_id = self.turned_away.get(event.player_id, UNKNOWN_USER_ID)
        else:
            user_id = event.user_id
            if len(self.turned_away) < MAX_SEEN_PLAYERS:
                self.turned_away[event.player_id] = user_id
        return Kick(event.player_id, user_id, NOT_LISTED)

    def _side(self, event: PlayerEntered) -> Side | None:
        known = self.connected.get(event.player_id)
        return known.side if known else None

    def _join_side(self, event: PlayerJoinedSide, now_ms: int) -> None:
        connection = self.connected.get(event.player_id)
        if connection is None:
            # Leaving a side is also logged for clients that have already disconnected. Joining a side is not.
            if event.side is None:
                return
            connection = PlayerConnection(UNKNOWN_USER_ID, event.name)
            self._connect(event.player_id, connection)
        if event.team is not None and event.player_id in self.ever_connected:
            self.teams[event.player_id] = event.team
        connection.name = event.name
        connection.side = event.side
        # After a map ends, the game still moves players between sides, even if they have not entered the next map.
        if connection.entered_ms is None and event.side is not None and not self.is_map_over:
            connection.entered_ms, connection.loading_ms = now_ms, None

    def _connect(self, player_id: PlayerId, connection: PlayerConnection) -> None:
        if player_id not in self.ever_connected:
            if len(self.ever_connected) >= MAX_SEEN_PLAYERS:
                return
            self.ever_connected.append(player_id)
        self.connected[player_id] = connection
        for group in (self.left, self.excused):
            if player_id in group:
                group.remove(player_id)
        self.empty_since_ms = None

    def _greet(self, player_id: PlayerId, name: str, user_id: int) -> None:
        known = self.guests.get(player_id)
        if known is None:
            self.guests[player_id] = PlayerConnection(user_id, name)
        else:
            known.name, known.user_id = name, known.user_id if user_id == UNKNOWN_USER_ID else user_id

    def _leave(self, event: PlayerDisconnected, now_ms: int) -> None:
        self.guests.pop(event.player_id, None)
        self.turned_away.pop(event.player_id, None)
        self.seen.pop(event.player_id, None)
        if not event.is_map_change:
            self._mark_left(event.player_id)  # even if the player was still loading the map
        if self.connected.pop(event.player_id, None) is None:
            return
        if event.is_map_change:
            self.map_change_at_ms = now_ms
        if not self.connected:
            self.empty_since_ms = now_ms

    def _mark_left(self, player_id: PlayerId) -> None:
        if player_id in self.ever_connected and player_id not in self.left:
            self.left.append(player_id)

    def _disconnect_all(self, now_ms: int) -> None:
        if self.connected:
            self.connected.clear()
            self.empty_since_ms = now_ms
        self.turned_away.clear()
        self.guests.clear()
        self.seen.clear()
        self.map_change_at_ms = now_ms
        self.is_map_over = False

    def _reconcile(self, event: PlayersSeen, now_ms: int) -> list[Kick]:
        """Apply the console's list of players. Players who are new on the list count as connected at once.

        Players who have been on the list for `load_ms` have entered; players missing from it for `load_ms` have left.
        """
        kicks = []
        for player_id, name in event.names.items():
            if self.is_unlisted(player_id):
                kicks.append(Kick(player_id, UNKNOWN_USER_ID, NOT_LISTED))
            elif self.roster.is_guest(player_id):
                self._greet(player_id, name, UNKNOWN_USER_ID)
            elif is_human(player_id):
                self._update_listed(player_id, name, now_ms, load_ms=event.load_ms)
        for player_id in [known for known in self.guests if known not in event.names]:
            del self.guests[player_id]
        for player_id in [known for known in self.connected if known not in event.names]:
            self.seen.pop(player_id, None)
            if now_ms - self.unseen.setdefault(player_id, now_ms) >= event.load_ms:
                del self.connected[player_id]
                self._mark_left(player_id)
                if not self.connected:
                    self.empty_since_ms = now_ms
        is_load_time_over = self.doubt_since_ms is None or now_ms - self.doubt_since_ms >= event.load_ms
        if is_load_time_over and all(known in event.names for known in self.connected):
            self.has_list = self.has_list or all(map(self._is_certain, self.connected.values()))
            if all(player.entered_ms is not None for player in self.connected.values()):
                self.doubt_since_ms = None
        return kicks

    def _is_certain(self, connection: PlayerConnection) -> bool:
        """False if the line about the player's entry may be lost, because the client connected before the loss."""
        began_ms, is_logged = connection.loading_ms, connection.user_id != UNKNOWN_USER_ID
        has_begun = is_logged and began_ms is not None and began_ms > (self.doubt_since_ms or 0)
        return connection.entered_ms is not None or has_begun

    def _update_listed(self, player_id: PlayerId, name: str, now_ms: int, *, load_ms: int) -> None:
        self.unseen.pop(player_id, None)
        first_seen_ms = self.seen.setdefault(player_id, now_ms)
        if player_id not in self.connected:
            self._connect(player_id, PlayerConnection(UNKNOWN_USER_ID, name, loading_ms=now_ms))
        connection = self.connected.get(player_id)
        if connection is not None and connection.entered_ms is None and now_ms - first_seen_ms >= load_ms:
            connection.entered_ms, connection.loading_ms = now_ms, None

    def _connect_line_ups(self, event: RoundStarted, now_ms: int) -> None:
        # Players in a round are connected, even if their connect lines are lost: a match in play must not look empty.
        for player_id in (*event.team1, *event.team2):
            if is_human(player_id) and player_id not in self.connected and not self.is_outsider(player_id):
                self._connect(player_id, PlayerConnection(UNKNOWN_USER_ID, "", now_ms))
