"""Define game events: frozen values that describe what happened, independent of the source that reported it.

The package `cs2` creates events, and `core` applies them in the order in which they were read. `at_ms` is the time on
the server's own clock, converted to UTC by the reader. It is reliable for durations, and the same bytes always give the
same time. `cs2` sets `is_enemy` from the sides that the log prints for both players; in free-for-all, all other players
are enemies.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cs2_protocol.game import PlayerId, RoundEndReason, Side, Team


class Event(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Base class of all events."""

    at_ms: int


class NamedEvent(Event, frozen=True):
    """An event that carries the current name of a player."""

    player_id: PlayerId
    name: str


# --- the server and its players ---------------------------------------------------------------------------------


class MapLoading(Event, frozen=True):
    """The server started to load a map; all players are about to disconnect and reconnect."""

    map_name: str


class ServerRestarted(Event, frozen=True):
    """The server process was replaced. Log lines that the old process had not sent are lost."""


class LogGap(Event, frozen=True):
    """Log bytes were lost: the map's statistics are incomplete. `is_freeze`: freeze time had begun before the loss."""

    missing_bytes: int
    is_freeze: bool = False


class PlayerConnected(NamedEvent, frozen=True):
    """A client opened a connection; it may still be loading the map."""

    user_id: int


class PlayerEntered(NamedEvent, frozen=True):
    """A client finished loading and is in the game."""

    user_id: int


class PlayerJoinedSide(NamedEvent, frozen=True):
    """A player joined a side; `side` is None if spectating or unassigned. `team` is the caller's team, if known."""

    side: Side | None
    team: Team | None


class PlayerDisconnected(NamedEvent, frozen=True):
    """A client disconnected. `is_map_change`: the logged reason is that of a map change or of a quit to the menu."""

    reason: str
    is_map_change: bool


class PlayersSeen(Event, frozen=True):
    """The players on the console's list, polled after log lines were lost. `load_ms` is the load time of a client."""

    names: dict[PlayerId, str]
    load_ms: int


class PlayerRenamed(NamedEvent, frozen=True):
    """A player changed their name."""


class ChatMessage(NamedEvent, frozen=True):
    """A player wrote a chat message. The text is untrusted."""

    is_team_only: bool
    text: str


class ServerSaid(Event, frozen=True):
    """The server sent a chat message to all players from its console."""

    text: str


class CommandLogged(Event, frozen=True):
    """The server logged a command that was sent to its console. The text is hidden, but its size in bytes is known."""

    size: int


# --- the flow of a map ------------------------------------------------------------------------------------------


class WarmupBegan(Event, frozen=True):
    """The server returned to warmup before its map ended: after a crash, a map change or an administrator's command."""


class MapLive(Event, frozen=True):
    """The map is live: later events count. Its duration begins at `since_ms`, when its match start was logged.

    If the log begins mid-map, `rounds_played` is above 0 and earlier rounds are unknown; the score is the current one.
    """

    map_name: str
    since_ms: int
    team1_side: Side
    team1_name: str | None = None
    team2_name: str | None = None
    rounds_played: int = 0
    team1_score: int = 0
    team2_score: int = 0


class RoundStarted(Event, frozen=True):
    """Freeze time ended. The line-ups are the players on each team's side at that moment, as far as they are known.

    `is_cut`: lines of the freeze time are lost. `unseen` players are in no line-up: they were on the server before
    lines were lost, and no log line has mentioned them since.
    """

    round_number: int
    team1: tuple[PlayerId, ...]
    team2: tuple[PlayerId, ...]
    team1_side: Side
    is_certain: bool = True
    is_cut: bool = False
    unseen: tuple[PlayerId, ...] = ()


class LineupGrown(Event, frozen=True):
    """A player who has been on a team since the start of the round was seen for the first time.

    `was_unseen`: no line had mentioned the player since lines were lost; they were on the team in all rounds since the
    loss. `is_return`: the player had left, and the lines about their return are missing.
    """

    player_id: PlayerId
    team: Team
    was_unseen: bool = False
    is_return: bool = False


class LineupShrunk(Event, frozen=True):
    """A player is no longer on the server, and the line of their disconnect is lost."""

    player_id: PlayerId


class RoundDecided(Event, frozen=True):
    """A round was decided, and the map has a new score. Kills may follow until the next freeze time.

    `winner_side` is None for a draw. If only `winner` is None, it is unknown which team was on that side, and the score
    is the last certain score. `is_last`: the map ends with this score, by the rules of the match.
    """

    round_number: int
    winner: Team | None
    winner_side: Side | None
    reason: RoundEndReason
    team1_score: int
    team2_score: int
    is_last: bool = False


class SidesSwapped(Event, frozen=True):
    """The teams changed sides, at halftime or in overtime."""

    team1_side: Side


class RoundRestored(Event, frozen=True):
    """A backup was restored: only the first `rounds_kept` rounds still count. A restart is a new MapLive instead.

    `is_inferred`: the lines about the restore are lost, but the score shows it. `may_be_new`: the match may have been
    restarted instead, so the kept rounds may not be the rounds that led to the score.
    """

    rounds_kept: int
    team1_score: int
    team2_score: int
    is_inferred: bool = False
    may_be_new: bool = False


class PauseEvent(Event, frozen=True):
    """The beginning or the end of a pause; `by` is who or what caused it, as logged."""

    by: str

    @property
    def is_timeout(self) -> bool:
        """True for the tactical timeout of a team. Such a timeout ends by itself."""
        return self.by.startswith("TimeOut")


class Paused(PauseEvent, frozen=True):
    """Play stops at the next freeze time; `caller` is the player who called the vote, if there was a vote."""

    caller: PlayerId | None = None


class Unpaused(PauseEvent, frozen=True):
    """The end of a pause was requested, or play resumed. The server logs both; only the request has a source."""


class MapEnded(Event, frozen=True):
    """The map ended and its score is final. No later play counts, unless a backup of the same map is restored.

    `is_complete` is False if the log may lack the last rounds. `winner` is set only after a surrender. If the winner is
    not known, the score is the last certain score.
    """

    map_name: str
    team1_score: int
    team2_score: int
    is_complete: bool = True
    winner: Team | None = None
    is_winner_known: bool = True
    team1_name: str | None = None
    team2_name: str | None = None


# --- combat -----------------------------------------------------------------------------------------------------


class Damage(Event, frozen=True):
    """A hit on a player. `damage` may exceed the victim's health; `health` is the victim's remaining health."""

    attacker: PlayerId
    victim: PlayerId
    weapon: str
    hitgroup: str
    damage: int
    health: int
    is_enemy: bool


class Kill(Event, frozen=True):
    """One player killed another; a suicide is a Death. `distance` is in game units, None if unknown."""

    killer: PlayerId
    victim: PlayerId
    weapon: str
    is_enemy: bool
    is_headshot: bool = False
    is_wallbang: bool = False
    is_through_smoke: bool = False
    is_blind: bool = False
    is_noscope: bool = False
    is_in_air: bool = False
    distance: float | None = None


BOMB = "bomb"
"""The cause of a death by the bomb."""


class Death(Event, frozen=True):
    """A player died by suicide, the world or the bomb; no player is credited with a kill."""

    player_id: PlayerId
    cause: str


class PlayerGone(Event, frozen=True):
    """A player left the server during a round; if they were alive, their death follows at the same time."""

    player_id: PlayerId


class Assist(Event, frozen=True):
    """A player assisted a kill: in a flash assist by blinding the victim, otherwise by damaging the victim."""

    player_id: PlayerId
    victim: PlayerId
    is_flash: bool
    is_enemy: bool


class Blinded(Event, frozen=True):
    """A flashbang blinded a player: an enemy, a teammate or the thrower."""

    victim: PlayerId
    thrower: PlayerId
    seconds: float
    is_enemy: bool


class GrenadeKind(StrEnum):
    """Grenade types as named in the leaderboard; `molly` is the fire grenade of either side."""

    HE = "he"
    FLASH = "flash"
    SMOKE = "smoke"
    MOLLY = "molly"
    DECOY = "decoy"


class GrenadeThrown(Event, frozen=True):
    player_id: PlayerId
    kind: GrenadeKind


class ChickenKilled(Event, frozen=True):
    player_id: PlayerId
    weapon: str


class BombPlanted(Event, frozen=True):
    player_id: PlayerId
    site: str | None


class BombDefused(Event, frozen=True):
    """The bomb was defused; `player_id` is None if the player is unknown."""

    player_id: PlayerId | None


class BombExploded(Event, frozen=True):
    """The bomb exploded."""


class EconomyCounted(Event, frozen=True):
    """Money at the start of a round, money spent so far, and the value of equipment carried out of the buy zone.

    Each event replaces the previous event. If `has_money_lines`, players without an entry in `spent` spent nothing.
    """

    round_number: int
    money: dict[PlayerId, int] = {}
    spent: dict[PlayerId, int] = {}
    equipment: dict[PlayerId, int] = {}
    has_money_lines: bool = False


# --- reports of the game and its plugins ------------------------------------------------------------------------


class GameCount(msgspec.Struct, frozen=True, gc=False):
    """The game's own statistics of one player over all played rounds. Columns with wrong labels are left out."""

    player_id: PlayerId
    money: int
    kills: int
    deaths: int
    assists: int
    damage: float
    hs_percent: float
    adr: float
    mvps: int
    enemies_flashed: int
    utility_damage: float
    triple_kills: int
    quad_kills: int
    aces: int
    clutch_kills: int
    first_kills: int
    pistol_kills: int
    sniper_kills: int
    blind_kills: int


class GameCounted(Event, frozen=True):
    """The game logged its own statistics at the start of a freeze time, for the rounds before `round_number`."""

    round_number: int
    players: tuple[GameCount, ...]


class MvpNamed(Event, frozen=True):
    """The plugin reported how often a player has been MVP on this map, as a total after a round."""

    round_number: int
    player_id: PlayerId
    mvps: int


class ShotsCounted(Event, frozen=True):
    """A plugin's count of shots in one round: fired and hit, for each player. The log does not contain shots.

    An event without players announces that a plugin counts shots. It erases an earlier count only if `is_newest`.
    """

    map_number: int
    round_number: int
    shots: dict[PlayerId, tuple[int, int]]
    is_newest: bool = False


class LiveReported(Event, frozen=True):
    """The plugin reported which map of the series is live; the log says when a map is live, but not its number."""

    map_number: int


class ResultReported(Event, frozen=True):
    """The plugin reported the final score of a map. The log may lack this score."""

    map_number: int
    team1_score: int
    team2_score: int


class SeriesReported(Event, frozen=True):
    """The plugin reported the end of the series, with the number of maps each team won."""

    team1_maps: int
    team2_maps: int


class CheatSuspected(Event, frozen=True):
    """A detection, ours or a plugin's: a hint for human review, never a verdict."""

    player_id: PlayerId
    kind: str
    reason: str
    weapon: str = "unknown"
    name: str = ""


GameEvent = (
    MapLoading | ServerRestarted | LogGap | PlayerConnected | PlayerEntered | PlayerJoinedSide | PlayerDisconnected
    | PlayersSeen | PlayerRenamed | ChatMessage | ServerSaid | CommandLogged | WarmupBegan | MapLive | RoundStarted
    | LineupGrown | LineupShrunk | RoundDecided | SidesSwapped | RoundRestored | Paused | Unpaused | MapEnded | Damage
    | Kill | Death | PlayerGone | Assist | Blinded | GrenadeThrown | ChickenKilled | BombPlanted | BombDefused
    | BombExploded | EconomyCounted | GameCounted | MvpNamed | ShotsCounted | CheatSuspected | LiveReported
    | ResultReported | SeriesReported
)  # fmt: skip

COMBAT_EVENTS = frozenset((Damage, Kill, Death, PlayerGone, Assist, Blinded, GrenadeThrown, LineupGrown, LineupShrunk,
                           ChickenKilled, BombPlanted, BombDefused, BombExploded, EconomyCounted))  # fmt: skip
"""The types of combat events: about 90 % of all events. They affect only statistics and detections, so `Match.apply`
has a fast path for them."""

PRESENCE_EVENTS = frozenset((MapLoading, ServerRestarted, LogGap, PlayerConnected, PlayerEntered, PlayerJoinedSide,
                             PlayerDisconnected, PlayersSeen, PlayerRenamed))  # fmt: skip
"""The types of events about who is on the server. They count even during the server's setup, when play does not
count."""
