"""Count combat in the open round of a map: damage, kills, deaths, assists, grenades and the bomb.

Only events in the log are counted; nothing is estimated. Events that the game itself does not count are left out too.
"""

from __future__ import annotations

import sys
from typing import Final, Protocol

from cs2_protocol.game import PlayerId
from cs2_protocol.weapons import PISTOLS, SNIPERS, UTILITY, is_knife
from matchpod.core import events as ev
from matchpod.core.stats.player_round import PlayerRound
from matchpod.core.stats.round_record import Defuse, Fall, Plant, RoundRecord

FULL_HEALTH: Final = 100

MAX_TRACKED: Final = 1024
"""Maximum number of players whose health is tracked. A server has far fewer, but a log can contain forged ids. If it is
exceeded, the health of all players is forgotten."""

_THROWN: Final = {kind: f"{kind}_thrown" for kind in ev.GrenadeKind}
"""For each grenade type, the name of the counter of its throws."""


class Play(Protocol):
    """The state that combat changes: the open round, and the health of its players."""

    has_respawns: bool
    open_round: RoundRecord | None
    health: dict[PlayerId, int]
    died_at_ms: dict[PlayerId, int]

    def record(self) -> RoundRecord:
        """Return the open round, or open a new round."""
        ...

    def count_fall(self) -> None:
        """Add one to the map's number of kills and deaths."""
        ...


def count_damage(play: Play, event: ev.Damage) -> None:
    """Count the damage of a hit, and update the victim's health."""
    victim = event.victim
    before = play.health.get(victim, FULL_HEALTH)
    # A hit on a dead player at the time of death is a late pellet; otherwise the player has respawned.
    if before <= 0 and (event.health > 0 or event.at_ms != play.died_at_ms.get(victim)):
        before = FULL_HEALTH
    play.health[victim] = event.health
    if len(play.health) > MAX_TRACKED:
        play.health.clear()
    if event.health <= 0:
        _set_dead(play, victim, event.at_ms)
    if not event.is_enemy:
        return
    record, attacker = play.record(), event.attacker
    counts = record.counts(attacker)
    lost = health_lost(event.damage, before, event.health)
    counts.damage += lost
    if lost and not play.has_respawns:
        record.add_damage(attacker, victim, lost)
    if event.weapon in UTILITY:
        counts.utility_damage += lost


def count_kill(play: Play, event: ev.Kill) -> None:
    record, killer = play.record(), event.killer
    weapon = sys.intern(event.weapon)  # many kills have the same weapon
    play.count_fall()
    _set_dead(play, event.victim, event.at_ms)
    record.add_fall(Fall(event.at_ms, event.victim, killer, event.is_enemy, weapon=weapon))
    counts = record.counts(killer)
    if not event.is_enemy:
        counts.team_kills += 1
        return
    counts.kills += 1
    counts.headshots += event.is_headshot
    counts.pistol_kills += weapon in PISTOLS
    counts.sniper_kills += weapon in SNIPERS
    counts.knife_kills += is_knife(weapon)
    record.add_weapon_kill(killer, weapon)


def count_death(play: Play, event: ev.Death) -> None:
    """Count a death without a killer."""
    # Deaths in freeze time do not count, because a change of sides is logged as a suicide.
    # A death by the bomb is logged twice: as a death by the bomb and as a suicide.
    # After the decision of a round, the game does not count a death by the bomb (4 of 4 real cases).
    record, player_id = play.open_round, event.player_id
    if record is None:
        return
    if record.is_out(player_id):
        record.kill_leaver(event.at_ms, player_id, event.cause)
        return
    play.count_fall()
    _set_dead(play, player_id, event.at_ms)
    helper = record.helper_against(player_id) if event.cause in UTILITY else None
    is_death = not (event.cause == ev.BOMB and record.is_decided)
    record.add_fall(Fall(event.at_ms, player_id, is_death=is_death, weapon=event.cause, helper=helper))
    if helper is not None:
        record.counts(helper).assists += 1


def count_departure(play: Play, event: ev.PlayerGone) -> None:
    """Record that a player who left is out of the round."""
    record = play.open_round
    play.health.pop(event.player_id, None)  # a player who rejoins has full health
    if record is not None and not record.is_out(event.player_id):
        record.add_fall(Fall(event.at_ms, event.player_id, is_death=False, has_left=True))


def count_assist(play: Play, event: ev.Assist) -> None:
    if not event.is_enemy:
        return
    counts = _counts(play, event.player_id)
    counts.flash_assists += event.is_flash
    counts.assists += not event.is_flash


def count_blinded(play: Play, event: ev.Blinded) -> None:
    # The log includes blinded dead players (4 of 20 enemies in a real match); the game does not count them.
    if event.is_enemy and not play.record().is_out(event.victim):
        _counts(play, event.thrower).enemies_flashed += 1


def count_grenade(play: Play, event: ev.GrenadeThrown) -> None:
    counts, name = _counts(play, event.player_id), _THROWN[event.kind]
    setattr(counts, name, getattr(counts, name) + 1)


def count_chicken(play: Play, event: ev.ChickenKilled) -> None:
    _counts(play, event.player_id).chicken_kills += 1


def count_plant(play: Play, event: ev.BombPlanted) -> None:
    record = play.record()
    record.counts(event.player_id).bomb_plants += 1
    record.plant = Plant(event.at_ms, event.player_id, event.site)


def count_defuse(play: Play, event: ev.BombDefused) -> None:
    """Count a defuse; the player may be unknown."""
    record, player_id = play.open_round, event.player_id
    if player_id is not None:
        record = play.record()
        record.counts(player_id).bomb_defuses += 1
    if record is not None:
        record.defuse = Defuse(event.at_ms, player_id)


def count_economy(play: Play, event: ev.EconomyCounted) -> None:
    """Record money and equipment in the open round."""
    if play.open_round is not None and play.open_round.number == event.round_number:
        play.open_round.count_economy(event)


def health_lost(damage: int, before: int, after: int) -> int:
    """Return the health that a hit actually removed.

    The log truncates damage to an integer, so the actual loss of health can be 1 higher. Summed over a real match, the
    actual losses equal the game's own total exactly (10,341), while the logged damage, capped at the victim's health,
    is 1.5 % too low. The loss is limited to the logged damage plus 1, so that fall damage is not credited to the next
    attacker.
    """
    if after > before:  # the victim had more health than recorded; only the logged damage is known
        return damage
    return min(damage + 1, before - after)


def _set_dead(play: Play, player_id: PlayerId, at_ms: int) -> None:
    if len(play.died_at_ms) > MAX_TRACKED:
        play.died_at_ms.clear()
        play.health.clear()
    play.health[player_id] = 0
    play.died_at_ms[player_id] = at_ms


def _counts(play: Play, player_id: PlayerId) -> PlayerRound:
    return play.record().counts(player_id)
