"""Turn combat, grenade and bomb lines of live rounds into events.

CS2 does not log `Defused_The_Bomb`: 0 lines for 6 real defuses. The defuser is the last player who began to defuse and
is still alive when the server reports the defuse. If several players may be the defuser, the reward paid in the same
tick shows which of them it is.
"""

from __future__ import annotations

import math

import msgspec

from cs2_protocol.game import PlayerId, RoundEndReason
from cs2_protocol.log_lines import player_lines as lines
from cs2_protocol.log_lines.player_token import PlayerToken
from matchpod.core import events
from matchpod.core.events import GameEvent, GrenadeKind

DEFUSE_REWARD = 300
"""Money paid to the defuser in the tick of the defuse."""

MAX_WEAPON_CHARS = 64
"""Maximum length of stored weapon names; longer names are cut. The longest name in the game has 20 characters."""

MAX_DEFUSING = 64
"""Maximum number of players stored as defusing: all slots of a server. If a forged log has more, the player who began
first is dropped."""

_LAUNCHED = {
    "hegrenade": GrenadeKind.HE,
    "flashgrenade": GrenadeKind.FLASH,
    "smokegrenade": GrenadeKind.SMOKE,
    "molotov": GrenadeKind.MOLLY,
    "decoygrenade": GrenadeKind.DECOY,
}
_LANDED = {
    "hegrenade": GrenadeKind.HE,
    "flashbang": GrenadeKind.FLASH,
    "smokegrenade": GrenadeKind.SMOKE,
    "molotov": GrenadeKind.MOLLY,
    "decoy": GrenadeKind.DECOY,
}


class Combat(msgspec.Struct):
    """The state that is kept between combat lines."""

    is_free_for_all: bool = False
    defusing: list[PlayerId] = []
    paid: PlayerId = ""
    paid_at_ms: int = 0
    is_defuse_logged: bool = False
    has_launch_lines: bool = False

    def new_round(self) -> None:
        """Reset the bomb state."""
        self.defusing = []
        self.is_defuse_logged = False

    def attacked(self, at_ms: int, line: lines.Attacked) -> GameEvent:
        """Return a hit on an enemy, a teammate or oneself. All hits are needed to track remaining health."""
        victim = line.victim
        return events.Damage(
            at_ms, line.player.player_id, victim.player_id, line.weapon, line.hitgroup, line.damage, line.health,
            self._are_enemies(line.player, victim),
        )  # fmt: skip

    def killed(self, at_ms: int, line: lines.Killed) -> GameEvent:
        """Return a kill, or a death if the killer is the victim."""
        killer, victim = line.player, line.victim
        self._stop_defusing(victim.player_id)
        weapon = line.weapon[:MAX_WEAPON_CHARS]
        if killer.player_id == victim.player_id:
            return events.Death(at_ms, victim.player_id, weapon)
        words = line.modifiers
        return events.Kill(
            at_ms,
            killer.player_id,
            victim.player_id,
            weapon,
            self._are_enemies(killer, victim),
            is_headshot="headshot" in words,
            is_wallbang="penetrated" in words,
            is_through_smoke="throughsmoke" in words,
            is_blind="attackerblind" in words,
            is_noscope="noscope" in words,
            is_in_air="attackerinair" in words,
            distance=_distance(line.position, line.victim_position),
        )

    def suicide(self, at_ms: int, line: lines.Suicide) -> GameEvent:
        """Return a death by suicide or by the world, or the death of a player who left while alive."""
        self._stop_defusing(line.player.player_id)
        return events.Death(at_ms, line.player.player_id, line.weapon[:MAX_WEAPON_CHARS])

    def bomb_death(self, at_ms: int, line: lines.BombDeath) -> GameEvent:
        """Return a death by the bomb. The suicide line that follows is about the same death."""
        self._stop_defusing(line.player.player_id)
        return events.Death(at_ms, line.player.player_id, events.BOMB)

    def player_left(self, at_ms: int, player_id: PlayerId) -> GameEvent:
        """Return the event of a player who left during play. A suicide line follows if the player was alive."""
        self._stop_defusing(player_id)
        return events.PlayerGone(at_ms, player_id)

    def assisted(self, at_ms: int, line: lines.Assisted) -> GameEvent:
        is_enemy = self._are_enemies(line.player, line.victim)
        return events.Assist(at_ms, line.player.player_id, line.victim.player_id, line.is_flash, is_enemy)

    def blinded(self, at_ms: int, line: lines.BlindedBy) -> GameEvent:
        """Return the event of a player blinded by a flashbang."""
        is_enemy = self._are_enemies(line.player, line.thrower)
        return events.Blinded(at_ms, line.player.player_id, line.thrower.player_id, float(line.seconds), is_enemy)

    def launched(self, at_ms: int, line: lines.GrenadeLaunched) -> GameEvent:
        """Return a grenade throw; the grammar allows only the five known grenades."""
        self.has_launch_lines = True
        return events.GrenadeThrown(at_ms, line.player.player_id, _LAUNCHED[line.grenade])

    def landed(self, at_ms: int, line: lines.GrenadeLanded) -> GameEvent | None:
        """Return a grenade throw in a CS:GO log, which has no launch lines; None in other logs."""
        kind = _LANDED.get(line.grenade)
        if self.has_launch_lines or kind is None:
            return None
        return events.GrenadeThrown(at_ms, line.player.player_id, kind)

    def killed_other(self, at_ms: int, line: lines.KilledOther) -> GameEvent | None:
        """Return the kill of a chicken; None for the destruction of windows and props."""
        return events.ChickenKilled(at_ms, line.player.player_id, line.weapon) if line.thing == "chicken" else None

    def triggered(self, at_ms: int, line: lines.Triggered) -> GameEvent | None:
        """Handle a bomb plant, a logged defuse, or the start of a defuse."""
        player_id = line.player.player_id
        match line.trigger:
            case "Planted_The_Bomb":
                return events.BombPlanted(at_ms, player_id, line.site)
            case "Begin_Bomb_Defuse_With_Kit" | "Begin_Bomb_Defuse_Without_Kit":
                self._stop_defusing(player_id)
                self.defusing.append(player_id)
                del self.defusing[:-MAX_DEFUSING]
            case "Defused_The_Bomb":
                self.is_defuse_logged = True
                return events.BombDefused(at_ms, player_id)
        return None

    def record_payment(self, at_ms: int, line: lines.MoneyChange) -> None:
        """Record that a defusing player was paid the defuse reward."""
        if line.player.player_id in self.defusing:
            self.paid, self.paid_at_ms = line.player.player_id, at_ms

    def bomb_end(self, at_ms: int, reason: RoundEndReason) -> GameEvent | None:
        """Return the explosion or defuse that decided a round; None if there was none, or if the defuse was logged."""
        if reason is RoundEndReason.TARGET_BOMBED:
            return events.BombExploded(at_ms)
        if reason is not RoundEndReason.BOMB_DEFUSED or self.is_defuse_logged:
            return None
        if self.paid in self.defusing and self.paid_at_ms == at_ms:
            return events.BombDefused(at_ms, self.paid)
        return events.BombDefused(at_ms, self.defusing[-1] if self.defusing else None)

    def _stop_defusing(self, player_id: PlayerId) -> None:
        if player_id in self.defusing:
            self.defusing.remove(player_id)

    def _are_enemies(self, first: PlayerToken, second: PlayerToken) -> bool:
        if first.player_id == second.player_id:
            return False
        return self.is_free_for_all or first.side is not second.side


def _distance(first: str, second: str) -> float:
    return round(math.dist([int(n) for n in first.split()], [int(n) for n in second.split()]), 1)
