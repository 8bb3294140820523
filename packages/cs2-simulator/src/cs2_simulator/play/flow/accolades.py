"""Choose the awards of the end screen: each human player gets the award in which they rank best in their team.

It is not known how the game chooses and weighs its awards. Readers of the log do not need them.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from cs2_protocol.game import Side
from cs2_protocol.log_lines.world_lines import Accolade
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.counts.tally import Tally

_AWARDS = {
    "mvps": "mvps",
    "clutch_kills": "clutchkills",
    "first_kills": "firstkills",
    "utility_damage": "utilitydamage",
    "pistol_kills": "pistolkills",
    "enemies_flashed": "enemiesflashed",
    "headshots": "headshotkills",
    "assists": "assists",
    "damage": "damage",
    "chicken_kills": "chickenskilled",
}
"""Names of awards in the log, by counter. If a player has the same place in several counters, the first award is
given."""


def accolades(arena: Arena) -> Iterator[Accolade]:
    """Yield one award per human player. As in a real log, the CTs come first."""
    tallies = {tally.player_id: tally for tally in arena.book.tallies()}
    for side in (Side.CT, Side.T):
        people = [player for player in arena.players_on(side) if not player.person.is_bot]
        team = [tallies.get(player.person.player_id) or Tally() for player in people]
        for player, tally in zip(people, team, strict=True):
            _, place, counter = min(_ranks(tally, team), key=itemgetter(0, 1))
            value = f"{getattr(tally, counter):.6f}"
            yield Accolade(_AWARDS[counter], player.person.name, player.user_id, value, place, value)


def _ranks(tally: Tally, team: list[Tally]) -> Iterator[tuple[bool, int, str]]:
    """Yield, for each counter, whether the player's count is 0, and the player's place within the team."""
    for counter in _AWARDS:
        value = getattr(tally, counter)
        yield not value, 1 + sum(getattr(other, counter) > value for other in team), counter
