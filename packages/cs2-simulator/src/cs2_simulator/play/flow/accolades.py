"""Choose the awards of the end screen: one per human player, based on the statistics in the book.

How the game weighs its awards is not known. Here an award scores higher the rarer it is and the larger the player's
share of the team's total; as in the game, the place is the rank within the team.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from cs2_protocol.game import Side
from cs2_protocol.log_lines.reader import Line
from cs2_protocol.log_lines.world_lines import Accolade
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.counts.tally import Tally
from cs2_simulator.play.player import Player

CONSOLATIONS = 6
"""Number of consolation awards, `gimme_01` to `gimme_06`, for players who earned no other award."""

_AWARDS: tuple[tuple[str, float, Callable[[Tally], float]], ...] = (
    ("5k", 100, lambda tally: tally.aces),
    ("4k", 80, lambda tally: tally.quad_kills),
    ("3k", 50, lambda tally: tally.triple_kills),
    ("mvps", 45, lambda tally: tally.mvps),
    ("uniqueweaponkills", 40, lambda tally: len(tally.weapon_kills)),
    ("clutchkills", 40, lambda tally: tally.clutch_kills),
    ("burndamage", 35, lambda tally: tally.burn_damage),
    ("utilitydamage", 35, lambda tally: tally.utility_damage),
    ("kills", 35, lambda tally: tally.kills),
    ("adr", 35, lambda tally: _ratio(tally.damage, tally.rounds_played)),
    ("hsp", 30, lambda tally: 100 * _ratio(tally.headshots, tally.kills)),
    ("firstkills", 30, lambda tally: tally.first_kills),
    ("sniperkills", 30, lambda tally: tally.sniper_kills),
    ("pistolkills", 30, lambda tally: tally.pistol_kills),
    ("headshotkills", 30, lambda tally: tally.headshots),
    ("assists", 30, lambda tally: tally.assists),
    ("enemiesflashed", 30, lambda tally: tally.enemies_flashed),
    ("objective", 30, lambda tally: tally.bomb_plants + tally.bomb_defuses),
    ("bombcarrierkills", 25, lambda tally: tally.carrier_kills),
    ("knifekills", 25, lambda tally: tally.knife_kills),
    ("taserkills", 25, lambda tally: tally.weapon_kills.get("taser", 0)),
    ("killswhileblind", 20, lambda tally: tally.blind_kills),
    ("damage", 20, lambda tally: tally.damage),
    ("roundssurvived", 20, lambda tally: tally.rounds_survived),
    ("chickenskilled", 5, lambda tally: tally.chicken_kills),
)
"""Name in the log, weight, value. Awards for money, time and voice are missing: the book does not count those."""


def accolades(arena: Arena) -> Iterator[Line]:
    """Yield one award per human player, CTs first as in a real log."""
    tallies = {tally.player_id: tally for tally in arena.book.tallies()}
    consolations = 0
    for side in (Side.CT, Side.T):
        people = sorted((p for p in arena.players_on(side) if not p.person.is_bot), key=lambda player: player.user_id)
        team = [tallies.get(p.person.player_id) or Tally() for p in people]
        values = [[value(tally) for tally in team] for _, _, value in _AWARDS]
        for index, player in enumerate(people):
            award = _best_award(player, index, values)
            if award is None:
                award = _accolade(player, f"gimme_{consolations % CONSOLATIONS + 1:02d}", 0, place=1, score=0)
                consolations += 1
            yield award


def _best_award(player: Player, index: int, values: list[list[float]]) -> Accolade | None:
    """Return the award with the player's best place, and of those the highest score; None if all values are 0."""
    best: tuple[int, float, str, float] | None = None
    for (name, weight, _), team_values in zip(_AWARDS, values, strict=True):
        value = team_values[index]
        if value <= 0:
            continue
        place = 1 + sum(other > value for other in team_values)
        score = weight * value / sum(team_values)
        if best is None or (place, -score) < (best[0], -best[1]):
            best = place, score, name, value
    if best is None:
        return None
    return _accolade(player, best[2], best[3], place=best[0], score=best[1])


def _accolade(player: Player, award: str, value: float, *, place: int, score: float) -> Accolade:
    return Accolade(award, player.person.name, player.user_id, _format_single(value), place, _format_single(score))


def _format_single(number: float) -> str:
    """Format a number with single precision as the game does: two thirds of a hundred are 66.666664."""
    (single,) = struct.unpack("f", struct.pack("f", number))
    return f"{single:.6f}"


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
