"""Define the API shapes of the rounds of a map.

Numbers that were not measured are null, never 0.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from cs2_protocol.game import PlayerId, RoundEndReason, Side, Team
from matchpod.core.stats.buy_types import BuyType
from matchpod.core.views import result_shapes as shapes
from matchpod.core.views.timeline_items import Person, Victim


class FirstKill(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The first kill of an enemy in a round."""

    timestamp: shapes.IsoTime
    killer: Annotated[Person, Meta(description="The player who killed.")]
    victim: Victim
    weapon: Annotated[str, Meta(description="The name of the weapon in the game.")]


class BombPlant(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The bomb was planted."""

    timestamp: shapes.IsoTime
    player: Annotated[Person, Meta(description="The player who planted.")]
    site: Annotated[str | None, Meta(description="The bomb site as named by the server; null if unknown.")]


class BombDefuse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The bomb was defused."""

    timestamp: shapes.IsoTime
    player: Annotated[Person | None, Meta(description="The player who defused; null if unknown.")]


Money = Annotated[int | None, Meta(description="Money at the start of freeze time; null if not in the log.")]
Spent = Annotated[
    int | None, Meta(description="Money spent in this round, without what was sold back; null if not in the log.")
]
EquipmentValue = Annotated[
    int | None,
    Meta(description="Value of what was carried out of the buy zone, by the game's prices; null if not in the log."),
]


class RoundTeam(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One team in a round, including its bots."""

    side: Annotated[Side | None, Meta(description="Its side in this round; null if unknown.")]
    survivors: Annotated[
        int | None,
        Meta(
            description="Players of the line-up who were alive and present when the round was decided; now, in the"
            " current round. Null if the line-up is unknown or players respawn."
        ),
    ]
    kills: Annotated[int, Meta(description="Enemies killed by its players.")]
    damage_dealt: Annotated[int, Meta(description="Damage to enemies by its players.")]
    money: Money
    spent: Spent
    equipment_value: EquipmentValue
    """`money`, `spent` and `equipment_value` are sums over the line-up; null if the value of one player is null."""
    buy_type: Annotated[
        BuyType | None, Meta(description="How the team bought, by money and equipment; null if they leave it open.")
    ]


class RoundPlayer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The statistics of a player in a round."""

    steam_id: shapes.SteamId
    name: shapes.PlayerName
    team: shapes.PlayerTeam
    survived: Annotated[
        bool | None,
        Meta(description="Whether the player is one of the survivors; null if not in the line-up, or if unknown."),
    ]
    kills: shapes.Kills
    deaths: shapes.Deaths
    assists: shapes.Assists
    headshots: shapes.Headshots
    damage_dealt: shapes.DamageDealt
    utility_damage: Annotated[int, Meta(description="Damage to enemies by grenades and fire.")]
    money: Money
    spent: Spent
    equipment_value: EquipmentValue


class DamagePair(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The damage of one player to one enemy in a round."""

    attacker_steam_id: shapes.SteamId
    victim_steam_id: Annotated[
        PlayerId | None, Meta(description="The enemy; null for all bots and all players who are not listed, together.")
    ]
    damage: Annotated[int, Meta(description="The health that the enemy lost.")]


class RoundEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One round of a map."""

    number: Annotated[int, Meta(description="The number of the round, from 1.")]
    complete: Annotated[
        bool, Meta(description="Whether no log lines of this round are missing; if not, numbers may be wrong.")
    ]
    started_at: Annotated[str | None, Meta(description="When freeze time ended; null if unknown.")]
    ended_at: Annotated[str | None, Meta(description="When the round was decided; null before, and if unknown.")]
    duration: Annotated[float | None, Meta(description="From `startedAt` to `endedAt`, in seconds; or null.")]
    winner: Annotated[Team | None, Meta(description="The team that won; null after a draw, and before the end.")]
    winner_side: Annotated[Side | None, Meta(description="The side that won; null after a draw, and before the end.")]
    reason: Annotated[RoundEndReason | None, Meta(description="What decided the round; null before the end.")]
    score: Annotated[shapes.Score | None, Meta(description="The score including this round; null before the end.")]
    first_kill: Annotated[
        FirstKill | None, Meta(description="The first kill of an enemy before the decision; null if there is none.")
    ]
    plant: Annotated[BombPlant | None, Meta(description="Null if the bomb was not planted.")]
    defuse: Annotated[BombDefuse | None, Meta(description="Null if the bomb was not defused.")]
    team1: Annotated[RoundTeam, Meta(description="The first team.")]
    team2: Annotated[RoundTeam, Meta(description="The second team.")]
    players: Annotated[
        tuple[RoundPlayer, ...], Meta(description="The players of the result who took part, most kills first.")
    ]
    damage_pairs: Annotated[
        tuple[DamagePair, ...], Meta(description="Who damaged which enemy; those of a player add up to `damageDealt`.")
    ]


# --- stored rounds, of any version --------------------------------------------------------------------------------


class StoredFirstKill(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The first kill of a stored round."""

    killer: Person
    victim: Person


class StoredRoundTeam(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One team in a stored round. Fields that the version did not store are None."""

    side: Side | None = None
    survivors: int | None = None
    equipment_value: int | None = None
    buy_type: BuyType | None = None


class StoredRoundPlayer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A player of a stored round."""

    steam_id: PlayerId
    name: str = ""
    team: Team | None = None


class StoredDamagePair(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The damage of one player to one enemy in a stored round."""

    attacker_steam_id: PlayerId
    victim_steam_id: PlayerId | None = None
    damage: int


class StoredRound(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A stored round of any version. Fields that the version did not store are None or empty."""

    number: int
    complete: bool = True
    winner: Team | None = None
    winner_side: Side | None = None
    reason: RoundEndReason | None = None
    score: shapes.Score | None = None
    first_kill: StoredFirstKill | None = None
    team1: StoredRoundTeam = StoredRoundTeam()
    team2: StoredRoundTeam = StoredRoundTeam()
    players: tuple[StoredRoundPlayer, ...] = ()
    damage_pairs: tuple[StoredDamagePair, ...] = ()
