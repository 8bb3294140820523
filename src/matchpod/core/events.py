"""What happened in the game? One frozen value a fact, in the words of the rules, whoever reported it.

`cs2` makes these, `core` folds them. `at_ms` is the server's own clock, moved to UTC by the reader: good for
differences, and the same for the same bytes. Order is the order in which things happened.
Combat is between player ids; `is_enemy` is decided by the reader, which alone knows sides and free-for-all.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from matchpod.core.model import PlayerId, Side, Team


class Event(msgspec.Struct, frozen=True, tag=True, gc=False):
    """A fact with its time."""

    at_ms: int


# --- the server and its players ---------------------------------------------------------------------------------


class MapLoading(Event, frozen=True):
    """The server begins to load a map; everybody is about to be disconnected and to come back."""

    map_name: str


class ServerRestarted(Event, frozen=True):
    """A new server process took over: whatever it had not told us is lost."""


class LogGap(Event, frozen=True):
    """Log bytes never arrived; numbers of the open map are not complete."""

    missing_bytes: int


class PlayerConnected(Event, frozen=True):
    """A client opened a connection; it may still be loading the map."""

    player_id: PlayerId
    name: str
    user_id: int


class PlayerEntered(Event, frozen=True):
    """A client finished loading and is in the game."""

    player_id: PlayerId
    name: str
    user_id: int


class PlayerJoinedSide(Event, frozen=True):
    """A player took a side; None is spectating or unassigned. `team` is the caller's team, where it is known."""

    player_id: PlayerId
    name: str
    side: Side | None
    team: Team | None


class PlayerDisconnected(Event, frozen=True):
    """A client is gone. `is_map_change`: the reason is one that a map change prints, but so does going to the menu."""

    player_id: PlayerId
    name: str
    reason: str
    is_map_change: bool


class PlayersSeen(Event, frozen=True):
    """Who is on the server, by its console, where the log lost lines; within `load_ms` a client may still load."""

    names: dict[PlayerId, str]
    load_ms: int


class PlayerRenamed(Event, frozen=True):
    """A player goes by another name from here on."""

    player_id: PlayerId
    name: str


class ChatSaid(Event, frozen=True):
    """A player wrote something. The text is hostile for ever."""

    player_id: PlayerId
    name: str
    is_team_only: bool
    text: str


# --- the flow of a map ------------------------------------------------------------------------------------------


class WarmupBegan(Event, frozen=True):
    """The server is back in warmup although its map had not ended: a crash, a changed map, an administrator."""


class MapLive(Event, frozen=True):
    """The map counts from here. `since_ms` is when the match restart printed, the start of its duration.

    `rounds_played` is above 0, and the score what it then was, when the log was joined mid-map: the rounds before are
    unknown.
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
    """Freeze time is over. The line-ups are who stood on a side of each team at that moment."""

    round_number: int
    team1: tuple[PlayerId, ...]
    team2: tuple[PlayerId, ...]
    team1_side: Side


class RoundEndReason(StrEnum):
    """How a round was decided; the words of the server's notices, without their prefix."""

    CTS_WIN = "CTs_Win"
    TERRORISTS_WIN = "Terrorists_Win"
    TARGET_BOMBED = "Target_Bombed"
    BOMB_DEFUSED = "Bomb_Defused"
    TARGET_SAVED = "Target_Saved"
    HOSTAGES_RESCUED = "All_Hostages_Rescued"
    HOSTAGES_NOT_RESCUED = "Hostages_Not_Rescued"
    CTS_SURRENDER = "CTs_Surrender"
    TERRORISTS_SURRENDER = "Terrorists_Surrender"
    DRAW = "Round_Draw"
    UNKNOWN = "unknown"


class RoundDecided(Event, frozen=True):
    """A round has a winner (None: a draw) and the map its new score. Kills may still follow until the next freeze."""

    round_number: int
    winner: Team | None
    winner_side: Side | None
    reason: RoundEndReason
    team1_score: int
    team2_score: int


class SidesSwapped(Event, frozen=True):
    """Halftime, or a half of overtime: the teams changed sides."""

    team1_side: Side


class RoundRestored(Event, frozen=True):
    """The map went back: only the first `rounds_kept` rounds still count. A restart is a new MapLive."""

    rounds_kept: int
    team1_score: int
    team2_score: int


class Paused(Event, frozen=True):
    """Play stops at the next freeze time; `by` is the server's word for who asked."""

    by: str


class Unpaused(Event, frozen=True):
    """Play goes on."""

    by: str


class MapEnded(Event, frozen=True):
    """The map is over and its score final. Nothing after it counts, unless a backup of the same map is restored.

    `winner` is set where the score does not tell: after a surrender.
    """

    map_name: str
    team1_score: int
    team2_score: int
    is_complete: bool = True
    winner: Team | None = None


# --- combat -----------------------------------------------------------------------------------------------------


class Damage(Event, frozen=True):
    """A hit. `damage` is what the weapon dealt, uncapped; `health` is what the victim had left afterwards."""

    attacker: PlayerId
    victim: PlayerId
    weapon: str
    hitgroup: str
    damage: int
    health: int
    is_enemy: bool


class Kill(Event, frozen=True):
    """One player killed another (never himself: that is a Death). `distance` is in game units, where it is known."""

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


class Death(Event, frozen=True):
    """A player died by his own hand, the world or the bomb; nobody gets the kill."""

    player_id: PlayerId
    cause: str


class PlayerGone(Event, frozen=True):
    """A player left the server alive: out of the round, but no death."""

    player_id: PlayerId


class Assist(Event, frozen=True):
    """Helped to kill; a flash assist blinded the victim instead of hurting him."""

    player_id: PlayerId
    victim: PlayerId
    is_flash: bool
    is_enemy: bool


class Blinded(Event, frozen=True):
    """A flashbang blinded someone, friend, foe or its own thrower."""

    victim: PlayerId
    thrower: PlayerId
    seconds: float
    is_enemy: bool


class GrenadeKind(StrEnum):
    """Grenades as the leaderboard names them; fire bombs of both sides are `molly`."""

    HE = "he"
    FLASH = "flash"
    SMOKE = "smoke"
    MOLLY = "molly"
    DECOY = "decoy"


class GrenadeThrown(Event, frozen=True):
    """A grenade left a hand."""

    player_id: PlayerId
    kind: GrenadeKind


class ChickenKilled(Event, frozen=True):
    """A chicken died."""

    player_id: PlayerId
    weapon: str


class BombPlanted(Event, frozen=True):
    """The bomb is down."""

    player_id: PlayerId
    site: str | None


class BombDefused(Event, frozen=True):
    """The bomb was defused; None when nobody can be named for it."""

    player_id: PlayerId | None


class BombExploded(Event, frozen=True):
    """The bomb went off."""


# --- what others counted ----------------------------------------------------------------------------------------


class GameCount(msgspec.Struct, frozen=True, gc=False):
    """The game's own numbers for one player over the rounds before the block. Only columns with a proven meaning."""

    player_id: PlayerId
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
    """The game printed its own statistics at a freeze start, for the rounds before `round_number`."""

    round_number: int
    players: tuple[GameCount, ...]


class MvpNamed(Event, frozen=True):
    """The plugin's running MVP count of a player after a round."""

    round_number: int
    player_id: PlayerId
    mvps: int


class ShotsCounted(Event, frozen=True):
    """A plugin's running count of shots on the open map; logs alone never tell."""

    player_id: PlayerId
    fired: int
    hit: int


class LiveReported(Event, frozen=True):
    """The plugin begins or plays this map of the series: the log tells when it counts, but not which one it is."""

    map_number: int


class ResultReported(Event, frozen=True):
    """The plugin's final score of a map, whether or not the log tells one."""

    map_number: int
    team1_score: int
    team2_score: int


class SeriesReported(Event, frozen=True):
    """The plugin says that the series is over, and how many maps each team has won."""

    team1_maps: int
    team2_maps: int


class CheatSuspected(Event, frozen=True):
    """A detection, ours or a plugin's: a lead for people, never a verdict."""

    player_id: PlayerId
    kind: str
    reason: str
    weapon: str = "unknown"
    name: str = ""


GameEvent = (
    MapLoading | ServerRestarted | LogGap | PlayerConnected | PlayerEntered | PlayerJoinedSide
    | PlayerDisconnected | PlayersSeen | PlayerRenamed | ChatSaid | WarmupBegan | MapLive | RoundStarted
    | RoundDecided | SidesSwapped | RoundRestored | Paused | Unpaused | MapEnded | Damage | Kill | Death
    | PlayerGone | Assist | Blinded | GrenadeThrown | ChickenKilled | BombPlanted | BombDefused | BombExploded
    | GameCounted | MvpNamed | ShotsCounted | CheatSuspected | LiveReported | ResultReported | SeriesReported
)  # fmt: skip

COMBAT_EVENTS = frozenset((Damage, Kill, Death, PlayerGone, Assist, Blinded, GrenadeThrown,
                           ChickenKilled, BombPlanted, BombDefused, BombExploded))  # fmt: skip
"""Nine of ten events of a match. They change statistics and nothing else, so the fold lets them through at once."""

PRESENCE_EVENTS = frozenset((MapLoading, ServerRestarted, LogGap, PlayerConnected, PlayerEntered, PlayerJoinedSide,
                             PlayerDisconnected, PlayersSeen, PlayerRenamed))  # fmt: skip
"""Who is on the server. They count even while it is set up, when nothing that is played does."""
