"""Define the API shapes of timeline items, one per item type."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from cs2_protocol.game import PlayerId, RoundEndReason, Side, Team
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import Winner
from matchpod.core.views.result_shapes import AntiCheatEntry, MapName, PlayerName, PlayerTeam, Score, SidesDecidedBy


class Person(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A person in an item. `steamId` is null for a bot; an unlisted player has neither id nor name nor team."""

    steam_id: Annotated[
        PlayerId | None,
        Meta(description="The 64-bit player ID; null for a bot, and for a player who is not on the list of players."),
    ]
    name: PlayerName
    team: PlayerTeam
    """Null in free-for-all, and if the team is not known yet."""


Actor = Annotated[Person, Meta(description="The player who did it.")]
Victim = Annotated[Person, Meta(description="The player who was killed.")]
Team1Side = Annotated[Side | None, Meta(description="The side of the first team; null without teams, or if unknown.")]
RequestedBy = Annotated[str, Meta(description="Who requested it, as named by the server.")]


class TimelineItemBase(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", gc=False):
    """Common fields of all items; `seq` counts from 1 on each map."""

    seq: Annotated[int, Meta(description="The number of the item on its map, from 1 without gaps.")]
    timestamp: Annotated[
        str, Meta(description="By the server's clock, ISO 8601 in UTC. Items are in the order of `seq`.")
    ]
    round_number: Annotated[
        int | None, Meta(description="The current round, or the last one between rounds; null before the first.")
    ]


class MapLiveItem(TimelineItemBase, frozen=True, kw_only=True, tag="map_live"):
    """The map is live. A second item on the same map means that it was restarted."""

    map_name: MapName
    team1_side: Team1Side
    sides_by: SidesDecidedBy = None
    """Missing in items of earlier versions."""
    score: Annotated[
        Score | None, Meta(description="Above 0:0 if the log started in the middle of the map; null in a deathmatch.")
    ]


class RoundStartItem(TimelineItemBase, frozen=True, kw_only=True, tag="round_start"):
    """Freeze time ended."""

    team1_side: Team1Side


class RoundEndItem(TimelineItemBase, frozen=True, kw_only=True, tag="round_end"):
    """A round was decided; the winner is null after a draw, in free-for-all, and if lost lines hide it."""

    winner: Annotated[Team | None, Meta(description="The team that won; null after a draw, and if there are no teams.")]
    winner_side: Annotated[Side | None, Meta(description="The side that won; null after a draw.")]
    reason: Annotated[RoundEndReason, Meta(description="What decided the round.")]
    score: Annotated[Score | None, Meta(description="The score including this round; null in a deathmatch.")]


class KillItem(TimelineItemBase, frozen=True, kw_only=True, tag="kill"):
    """One player killed another."""

    killer: Annotated[Person, Meta(description="The player who killed.")]
    victim: Victim
    weapon: Annotated[str, Meta(description="The name of the weapon in the game.")]
    team_kill: Annotated[bool, Meta(description="Whether both were in the same team.")]
    headshot: Annotated[bool, Meta(description="Whether it was a headshot.")]
    wallbang: Annotated[bool, Meta(description="Whether it was through a wall.")]
    through_smoke: Annotated[bool, Meta(description="Whether it was through smoke.")]
    attacker_blind: Annotated[bool, Meta(description="Whether the killer was blinded.")]
    noscope: Annotated[bool, Meta(description="Whether it was with an unscoped sniper rifle.")]
    in_air: Annotated[bool, Meta(description="Whether the killer was in the air.")]
    distance: Annotated[float | None, Meta(description="In game units; null if unknown.")]


class DeathItem(TimelineItemBase, frozen=True, kw_only=True, tag="death"):
    """A player died without a killer: by a fall, the bomb, their own grenade or suicide."""

    player: Annotated[Person, Meta(description="The player who died.")]
    cause: Annotated[str, Meta(description="The weapon or cause as named by the server; `bomb` for the bomb.")]


class AssistItem(TimelineItemBase, frozen=True, kw_only=True, tag="assist"):
    """A player assisted the kill of an enemy; the item follows the kill."""

    player: Actor
    victim: Victim
    flash: Annotated[bool, Meta(description="Whether the player assisted by blinding the victim, not by damage.")]


class BombPlantedItem(TimelineItemBase, frozen=True, kw_only=True, tag="bomb_planted"):
    """The bomb was planted."""

    player: Actor
    site: Annotated[str | None, Meta(description="The bomb site as named by the server; null if unknown.")]


class BombDefusedItem(TimelineItemBase, frozen=True, kw_only=True, tag="bomb_defused"):
    """The bomb was defused; the player is null if unknown."""

    player: Annotated[Person | None, Meta(description="The player who did it; null if unknown.")]


class BombExplodedItem(TimelineItemBase, frozen=True, kw_only=True, tag="bomb_exploded"):
    """The bomb exploded."""


class PlayerConnectedItem(TimelineItemBase, frozen=True, kw_only=True, tag="player_connected"):
    """A player connected; they may still be loading the map."""

    player: Actor


class PlayerDisconnectedItem(TimelineItemBase, frozen=True, kw_only=True, tag="player_disconnected"):
    """A player left the server. The reason is from the server's log, or empty."""

    player: Actor
    reason: Annotated[str, Meta(description="The reason given by the server, or empty.")]


class ChatItem(TimelineItemBase, frozen=True, kw_only=True, tag="chat"):
    """A player wrote a chat message. The text is untrusted."""

    player: Actor
    text: Annotated[str, Meta(description="The message. It is untrusted: display it as plain text only.")]
    team_only: Annotated[bool, Meta(description="Whether only the player's team can read it.")]


class PausedItem(TimelineItemBase, frozen=True, kw_only=True, tag="paused"):
    """Play stops at the next freeze time; `by` is the source of the pause as logged."""

    by: RequestedBy
    called_by: Annotated[
        Person | None, Meta(description="The player who called the vote for a timeout; null if unknown.")
    ] = None


class UnpausedItem(TimelineItemBase, frozen=True, kw_only=True, tag="unpaused"):
    """Play resumed."""

    by: RequestedBy


class SideSwapItem(TimelineItemBase, frozen=True, kw_only=True, tag="side_swap"):
    """The teams changed sides."""

    team1_side: Team1Side


class RoundRestoredItem(TimelineItemBase, frozen=True, kw_only=True, tag="round_restored"):
    """A backup was restored: only the first `roundsKept` rounds still count. Items of dropped rounds stay."""

    rounds_kept: Annotated[int, Meta(description="The number of rounds that still count.")]
    score: Annotated[Score | None, Meta(description="The restored score; null in a deathmatch.")]


class AntiCheatItem(TimelineItemBase, frozen=True, kw_only=True, tag="anti_cheat"):
    """A detection: a hint for human review, never a verdict."""

    detection: Annotated[AntiCheatEntry, Meta(description="The detection of the anti-cheat.")]


class ActionItem(TimelineItemBase, frozen=True, kw_only=True, tag="action"):
    """A person asked for an action on the match, or it is done or failed."""

    action_id: Annotated[str, Meta(description="The id of the action.")]
    action: Annotated[str, Meta(description="What was asked for, such as `restore`. There may be more later.")]
    fields: Annotated[dict[str, str | int], Meta(description="The fields of the request that its type has.")] = {}
    state: Annotated[str, Meta(description="`requested`, then `done` or `failed`.")]
    detail: Annotated[str | None, Meta(description="Why it failed; null otherwise.")]
    reason: Annotated[str | None, Meta(description="As given in the request, or null.")]
    by: Annotated[str | None, Meta(description="As given in the request, or null.")]


class MapEndItem(TimelineItemBase, frozen=True, kw_only=True, tag="map_end"):
    """The map is over: finished with its final score, or cancelled with the score at that time."""

    status: Annotated[
        MapStatus, Meta(description="`finished` with the final score, or `cancelled` with the score so far.")
    ]
    winner: Annotated[
        Winner | None,
        Meta(description="`team1`, `team2` or `tie`; null if undecided or cancelled, and in a deathmatch."),
    ]
    score: Annotated[Score | None, Meta(description="Rounds won; null in a deathmatch.")]


TimelineItem = (
    MapLiveItem | RoundStartItem | RoundEndItem | KillItem | DeathItem | AssistItem | BombPlantedItem | BombDefusedItem
    | BombExplodedItem | PlayerConnectedItem | PlayerDisconnectedItem | ChatItem | PausedItem | UnpausedItem
    | SideSwapItem | RoundRestoredItem | AntiCheatItem | ActionItem | MapEndItem
)  # fmt: skip
