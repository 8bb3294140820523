"""Define the API shapes of timeline items, one per item type."""

from __future__ import annotations

import msgspec

from matchpod.core.events import RoundEndReason
from matchpod.core.model import PlayerId, Side, Team, Winner
from matchpod.core.played_map import MapStatus
from matchpod.core.result_shapes import AntiCheatEntry, Score


class Person(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A person in an item. `steamId` is null for a bot; an unlisted player has neither id nor name nor team."""

    steam_id: PlayerId | None
    name: str
    team: Team | None
    """Null in free-for-all, and if the team is not known yet."""


class TimelineItemBase(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", gc=False):
    """Common fields of all items; `seq` counts from 1 on each map."""

    seq: int
    timestamp: str
    """By the server's clock. Items are ordered by `seq`: the end of a map is confirmed later than it happened."""
    round_number: int | None
    """The current round, else the previous one; null before the first."""


class MapLiveItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="map_live"):
    """The map is live. A second item on the same map means that it was restarted."""

    map_name: str
    team1_side: Side | None
    """Null in free-for-all."""
    score: Score | None
    """Above 0:0 if the log was joined mid-map; null in a deathmatch."""


class RoundStartItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="round_start"):
    """Freeze time ended."""

    team1_side: Side | None


class RoundEndItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="round_end"):
    """A round was decided; the winner is null after a draw and in free-for-all."""

    winner: Team | None
    winner_side: Side | None
    reason: RoundEndReason
    score: Score | None


class KillItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="kill"):
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


class AssistItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="assist"):
    """A player assisted the kill of an enemy; the item follows the kill."""

    player: Person
    victim: Person
    flash: bool
    """True if the player blinded the victim instead of damaging it."""


class BombPlantedItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="bomb_planted"):
    """The bomb was planted."""

    player: Person
    site: str | None


class BombDefusedItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="bomb_defused"):
    """The bomb was defused; the player is null if unknown."""

    player: Person | None


class BombExplodedItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="bomb_exploded"):
    """The bomb exploded."""


class PlayerConnectedItem(
    TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="player_connected"
):
    """A player connected; they may still be loading the map."""

    player: Person


class PlayerDisconnectedItem(
    TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="player_disconnected"
):
    """A player left the server; the reason is the one logged by the server, or empty."""

    player: Person
    reason: str


class ChatItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="chat"):
    """A player wrote a chat message. The text is untrusted."""

    player: Person
    text: str
    team_only: bool


class PausedItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="paused"):
    """Play stops at the next freeze time; `by` is the source of the pause as logged."""

    by: str


class UnpausedItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="unpaused"):
    """Play resumed."""

    by: str


class SideSwapItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="side_swap"):
    """The teams changed sides."""

    team1_side: Side | None


class RoundRestoredItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="round_restored"):
    """A backup was restored: only the first `roundsKept` rounds still count. Items of dropped rounds stay."""

    rounds_kept: int
    score: Score | None


class AntiCheatItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="anti_cheat"):
    """A detection: a hint for human review, never a verdict."""

    detection: AntiCheatEntry


class MapEndItem(TimelineItemBase, frozen=True, kw_only=True, rename="camel", gc=False, tag="map_end"):
    """The map is over: finished with its final score, or cancelled with the score at that time."""

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
