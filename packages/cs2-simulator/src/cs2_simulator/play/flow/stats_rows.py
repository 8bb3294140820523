"""Build the `round_stats` block that the game logs at the start of a freeze time.

The values come from the book of statistics. The game itself prints values after `blindk` under wrong labels: build
10603 prints burn damage under `bombk`, HE damage under `firedmg`, kills of bomb carriers under `uniquek`, weapons with
kills under `dinks`.
"""

from __future__ import annotations

from collections.abc import Iterator

from cs2_protocol.game import Side
from cs2_protocol.log_lines.reader import Line
from cs2_protocol.log_lines.world_grammar import STATS_BEGIN, STATS_END, STATS_NAME, STATS_PLAYERS
from cs2_protocol.log_lines.world_lines import StatsField, StatsMark, StatsPlayer
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.counts.tally import OF_COACH, Tally
from cs2_simulator.play.player import SPECTATOR

FIELDS = (
    "             accountid,   team,  money,  kills, deaths,assists,    dmg,    hsp,    kdr,    adr,    mvp,     ef,"
    "     ud,     3k,     4k,     5k,clutchk, firstk,pistolk,sniperk, blindk,  bombk,firedmg,uniquek,  dinks,chickenk"
)

TEAM_NUMBERS = {SPECTATOR: 1, Side.T.value: 2, Side.CT.value: 3}
"""Values of the `team` column. All other players, including those still loading, have 0."""

_DINKS = 0
"""Value of the `dinks` column: headshots stopped by a helmet are not simulated. In a real match it is 0 to 2."""


def stats_block(arena: Arena, *, round_number: int, ct_score: int, t_score: int) -> Iterator[Line]:
    """Yield the block before a round, if it is enabled. It has one row per player, ordered by user id.

    Players who have left are listed while their user id is kept for their return.
    """
    variables = arena.variables
    if not variables.is_on("sv_log_roundstats"):
        return
    yield StatsMark(STATS_BEGIN)
    yield StatsMark(STATS_NAME)
    yield StatsField("round_number", str(round_number))
    yield StatsField("score_t", str(t_score))
    yield StatsField("score_ct", str(ct_score))
    yield StatsField("map", arena.map_name)
    yield StatsField("server", variables.text("hostname"))
    yield StatsField("fields", FIELDS)
    yield StatsMark(STATS_PLAYERS)
    for user_id, columns in _rows(arena):
        yield StatsPlayer(user_id, columns)
    yield StatsMark(STATS_END)


def _rows(arena: Arena) -> Iterator[tuple[int, str]]:
    players = sorted((*arena.players, *arena.absent), key=lambda player: player.user_id)
    zeros = Tally()
    # SourceTV is not a player, but has a row. Its user id is 0.
    if arena.variables.is_on("tv_enable") and not (players and players[0].user_id == 0):
        yield 0, _row(0, 0, arena.variables.whole("mp_startmoney"), zeros)
    tallies, rounds = _tallies_of_rounds_before(arena), arena.book.rounds_played()
    for player in players:
        person = player.person
        tally = tallies.get(person.player_id, OF_COACH if player.is_coach and rounds else zeros)
        undone = arena.book.undone_damage[person.player_id]
        team = TEAM_NUMBERS.get(player.kept_team or player.team, 0)
        row = _row(person.account, team, player.money, tally, rounds=rounds, undone_damage=undone)
        yield player.user_id, row


def _tallies_of_rounds_before(arena: Arena) -> dict[str, Tally]:
    """Return the tallies by player. Before the first decided round there are none, so a deathmatch shows zeros."""
    book = arena.book
    if not book.is_open or book.rounds_played() == 0:
        return {}
    return {tally.player_id: tally for tally in book.tallies()}


def _row(account: int, team: int, money: int, tally: Tally, *, rounds: int = 0, undone_damage: int = 0) -> str:
    kills, deaths = tally.kills, tally.deaths
    hs_percent = 100 * tally.headshots / kills if kills else 0.0
    # In a real log, a row with 2 kills and no death has the value 0.00 here, not 2.00.
    kd_ratio = kills / deaths if deaths else 0.0
    # After a restore, `dmg` still contains the damage of the undone rounds, while `adr` does not. The game divides by
    # all rounds of the map, even if the player was absent: 4 blocks of a real log, with a player who left, show this.
    # Rounding gives all 105 values of a real log; truncating gives only 47 of them.
    adr = round(tally.damage / rounds) if rounds else 0
    counts = (
        tally.mvps, tally.enemies_flashed, tally.utility_damage, tally.triple_kills, tally.quad_kills, tally.aces,
        tally.clutch_kills, tally.first_kills, tally.pistol_kills, tally.sniper_kills, tally.blind_kills,
    )  # fmt: skip
    return (
        f"{account:20d},{team:7d},{money:7d},{kills:7d},{deaths:7d},{tally.assists:7d},"
        f"{tally.damage + undone_damage:7.2f},{hs_percent:7.2f},{kd_ratio:7.2f},{adr:7d},"
        + ",".join(f"{count:7d}" for count in counts)
        + f",{tally.burn_damage:.6f},{tally.he_damage:.6f},{tally.carrier_kills:7d}"
        f",{len(tally.weapon_kills):7d},{_DINKS:7d}"
    )
