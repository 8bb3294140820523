"""What does an item of a timeline say? One shape a type, field for field as callers read it."""

from __future__ import annotations

import msgspec

from matchpod.core.events import RoundEndReason
from matchpod.core.model import PlayerId, Side, Team, Winner
from matchpod.core.played_map import MapStatus
from matchpod.core.result_shapes import AntiCheatEntry, Score


class Person(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Who did something. `steamId` is null for a bot; of somebody who is not listed nothing is said."""

    steam_id: PlayerId | None
    name: str
    team: Team | None
    """Null where everyone plays for himself, and where nobody knows yet."""


class Item(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", gc=False):
    """Something that happened; `seq` grows by one from 1 on each map."""

    seq: int
    timestamp: str
    """By the server's clock. Order is that of `seq`: the end of a map is believed later than it happened."""
    round_number: int | None
    """The round being played, else the one before; null before the first."""


class MapLiveItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="map_live"):
    """The map counts from here. One more on the same map: it was restarted, and counts anew."""

    map_name: str
    team1_side: Side | None
    """Null where everyone plays for himself."""
    score: Score | None
    """Above 0:0 where the server was heard in the middle of the map only; null in a deathmatch."""


class RoundStartItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="round_start"):
    """Freeze time is over."""

    team1_side: Side | None


class RoundEndItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="round_end"):
    """A round was decided; the winner is null after a draw, and where everyone plays for himself."""

    winner: Team | None
    winner_side: Side | None
    reason: RoundEndReason
    score: Score | None


class KillItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="kill"):
    """One player killed another."""

    killer: Person
    victim: Person
    weapon: str
    team_kill: bool
    headshot: bool
    wallbang: bool
    through_smoke: bool
    attacker_blind: bool
    noscope: bool
    in_air: bool
    distance: float | None
    """In game units."""


class AssistItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="assist"):
    """Somebody helped to kill an enemy; it follows the kill."""

    player: Person
    victim: Person
    flash: bool
    """He blinded the victim instead of hurting him."""


class BombPlantedItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="bomb_planted"):
    """The bomb is down."""

    player: Person
    site: str | None


class BombDefusedItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="bomb_defused"):
    """The bomb was defused; the player is null when nobody can be named for it."""

    player: Person | None


class BombExplodedItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="bomb_exploded"):
    """The bomb went off."""


class PlayerConnectedItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="player_connected"):
    """A player came to the server; he may still be loading the map."""

    player: Person


class PlayerDisconnectedItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="player_disconnected"):
    """A player left the server; the reason is the server's word, and empty where it gave none."""

    player: Person
    reason: str


class ChatItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="chat"):
    """A player wrote something: text of a stranger, never to be trusted."""

    player: Person
    text: str
    team_only: bool


class PausedItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="paused"):
    """Play stops at the next freeze time; `by` is the server's word for who asked."""

    by: str


class UnpausedItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="unpaused"):
    """Play goes on."""

    by: str


class SideSwapItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="side_swap"):
    """The teams changed sides."""

    team1_side: Side | None


class RoundRestoredItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="round_restored"):
    """The map went back: only its first rounds still count. What happened meanwhile stays in the timeline."""

    rounds_kept: int
    score: Score | None


class AntiCheatItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="anti_cheat"):
    """A detection: a lead for people, never a verdict."""

    detection: AntiCheatEntry


class MapEndItem(Item, frozen=True, kw_only=True, rename="camel", gc=False, tag="map_end"):
    """The map is over: finished with its final score, or cancelled as it stood."""

    status: MapStatus
    winner: Winner | None
    score: Score | None


TimelineItem = (
    MapLiveItem
    | RoundStartItem
    | RoundEndItem
    | KillItem
    | AssistItem
    | BombPlantedItem
    | BombDefusedItem
    | BombExplodedItem
    | PlayerConnectedItem
    | PlayerDisconnectedItem
    | ChatItem
    | PausedItem
    | UnpausedItem
    | SideSwapItem
    | RoundRestoredItem
    | AntiCheatItem
    | MapEndItem
)
