"""Compute the statistics of a whole round: first kills, trades, clutches, multi-kills and KAST.

The statistics are computed when the round closes, from the order in which players dropped out. The computation is
idempotent. Kills after the decision count as kills, for trades and for multi-kills, but not for first kills or
clutches. A round with respawns has none of these statistics.
"""

from __future__ import annotations

from cs2_protocol.game import PlayerId, Team
from matchpod.core.stats.player_round import PlayerRound
from matchpod.core.stats.round_record import Fall, RoundRecord

# Maximum time in ms from a death to its trade kill. Public tools use 1.5 s to 5 s, mostly 5 s.
TRADE_WINDOW_MS = 5000

_CLUTCHES = ("clutch1v1", "clutch1v2", "clutch1v3", "clutch1v4", "clutch1v5")
_MULTI_KILLS = {2: "double_kills", 3: "triple_kills", 4: "quad_kills", 5: "aces"}
_COMPUTED = (
    *("first_kills", "first_deaths", "trade_kills", "traded_deaths", "clutch_kills", "kast_rounds"),
    *_CLUTCHES,
    *_MULTI_KILLS.values(),
)


def compute_totals(record: RoundRecord) -> None:
    """Set those counters of each player that depend on the whole round."""
    for counts in record.players.values():
        for name in _COMPUTED:
            setattr(counts, name, 0)
    if record.has_respawns:
        return
    falls_in_play = record.falls[: record.falls_when_decided]
    _compute_first_kills(record, falls_in_play)
    _compute_trades(record)
    _compute_clutches(record, falls_in_play)
    for counts in record.players.values():
        _compute_multi_kill(counts)
    _compute_kast(record, falls_in_play)


def _compute_first_kills(record: RoundRecord, falls: list[Fall]) -> None:
    # A team kill is not a first kill, but its victim can be the first death, as in the game's own count.
    first = record.first_kill()
    if first is not None and first.killer is not None:
        record.counts(first.killer).first_kills = 1
    for fall in falls:
        if fall.is_death:
            record.counts(fall.victim).first_deaths = 1
            break


def _compute_trades(record: RoundRecord) -> None:
    for index, revenge in enumerate(record.falls):
        if revenge.killer is None or not revenge.is_enemy:
            continue
        avenged = [fall for fall in record.falls[:index] if _is_trade(record, fall, revenge)]
        if avenged:
            record.counts(revenge.killer).trade_kills += 1
        for fall in avenged:
            record.counts(fall.victim).traded_deaths = 1


def _is_trade(record: RoundRecord, fall: Fall, revenge: Fall) -> bool:
    """True if `revenge` kills, within the trade window, the enemy who killed a teammate in `fall`."""
    if fall.killer != revenge.victim or not fall.is_enemy or revenge.at_ms - fall.at_ms > TRADE_WINDOW_MS:
        return False
    if revenge.killer is None or revenge.killer == fall.victim:  # a grenade of the dead player: not a trade
        return False
    team = record.team_of(revenge.killer)
    return team is not None and team is record.team_of(fall.victim)


def _compute_clutches(record: RoundRecord, falls: list[Fall]) -> None:
    alive: dict[Team, set[PlayerId]] = {Team.TEAM1: set(record.team1), Team.TEAM2: set(record.team2)}
    for fall in falls:
        if fall.killer is not None and fall.is_enemy:
            killers_team = record.team_of(fall.killer)
            if killers_team is not None and alive[killers_team] == {fall.killer}:
                record.counts(fall.killer).clutch_kills += 1
        team = record.team_of(fall.victim)
        if team is None or fall.victim not in alive[team]:
            continue
        alive[team].discard(fall.victim)
        enemies = len(alive[team.other])
        # A clutch counts the enemies alive when the team is down to one player. The team must win; the player may die.
        if len(alive[team]) == 1 and enemies >= 1 and record.winner is team:
            (last_alive,) = alive[team]
            setattr(record.counts(last_alive), _CLUTCHES[min(enemies, len(_CLUTCHES)) - 1], 1)


def _compute_multi_kill(counts: PlayerRound) -> None:
    name = _MULTI_KILLS.get(min(counts.kills, 5))
    if name is not None:
        setattr(counts, name, 1)


def _compute_kast(record: RoundRecord, falls: list[Fall]) -> None:
    fallen = {fall.victim for fall in falls}
    for player_id in record.team1 + record.team2:
        counts = record.counts(player_id)
        # Flash assists do not count as assists in KAST, as in the match plugins.
        is_kast = counts.kills or counts.assists or counts.traded_deaths or player_id not in fallen
        counts.kast_rounds = 1 if is_kast else 0
