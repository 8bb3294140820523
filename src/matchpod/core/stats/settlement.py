"""What does a whole round say about its players? First blood, trades, clutches, multi kills, KAST.

Worked out once, when the round closes, from the order in which players fell. Settling again gives the same. Kills
after the decision are kills, trades and part of multi kills, but change neither first blood nor clutches. A round in
which players come back says nothing.
"""

from __future__ import annotations

from matchpod.core.model import PlayerId, Team
from matchpod.core.stats.round_record import Fall, PlayerRound, RoundRecord

# Public tools use 1.5 s to 5 s; 5 s is the most common and the rating sites do not publish theirs.
TRADE_WINDOW_MS = 5000

_CLUTCHES = ("clutch1v1", "clutch1v2", "clutch1v3", "clutch1v4", "clutch1v5")
_MULTI_KILLS = {2: "double_kills", 3: "triple_kills", 4: "quad_kills", 5: "aces"}
_SETTLED = (
    *("first_kills", "first_deaths", "trade_kills", "traded_deaths", "clutch_kills", "kast_rounds"),
    *_CLUTCHES,
    *_MULTI_KILLS.values(),
)


def settle(record: RoundRecord) -> None:
    """Write into each player's counters what the round as a whole says."""
    for counts in record.players.values():
        for name in _SETTLED:
            setattr(counts, name, 0)
    if record.has_respawns:
        return
    falls_in_play = record.falls[: record.falls_when_decided]
    _settle_first_blood(record, falls_in_play)
    _settle_trades(record)
    _settle_clutches(record, falls_in_play)
    for counts in record.players.values():
        _settle_multi_kill(counts)
    _settle_kast(record, falls_in_play)


def _settle_first_blood(record: RoundRecord, falls: list[Fall]) -> None:
    # A team kill opens nothing for the killer, but its victim is the first to die: so counts the game.
    for fall in falls:
        if fall.killer is not None and fall.is_enemy:
            record.counts(fall.killer).first_kills = 1
            break
    for fall in falls:
        if fall.is_death:
            record.counts(fall.victim).first_deaths = 1
            break


def _settle_trades(record: RoundRecord) -> None:
    for index, revenge in enumerate(record.falls):
        if revenge.killer is None or not revenge.is_enemy:
            continue
        avenged = [fall for fall in record.falls[:index] if _is_trade(record, fall, revenge)]
        if avenged:
            record.counts(revenge.killer).trade_kills += 1
        for fall in avenged:
            record.counts(fall.victim).traded_deaths = 1


def _is_trade(record: RoundRecord, fall: Fall, revenge: Fall) -> bool:
    """True when `revenge` kills the killer of a team mate, in time."""
    if fall.killer != revenge.victim or not fall.is_enemy or revenge.at_ms - fall.at_ms > TRADE_WINDOW_MS:
        return False
    if revenge.killer is None or revenge.killer == fall.victim:  # a dead man's grenade avenges nobody but himself
        return False
    team = record.team_of(revenge.killer)
    return team is not None and team is record.team_of(fall.victim)


def _settle_clutches(record: RoundRecord, falls: list[Fall]) -> None:
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
        # The class is fixed at the moment the team drops to one; whether he survives does not matter, only the round.
        if len(alive[team]) == 1 and enemies >= 1 and record.winner is team:
            (last_alive,) = alive[team]
            setattr(record.counts(last_alive), _CLUTCHES[min(enemies, len(_CLUTCHES)) - 1], 1)


def _settle_multi_kill(counts: PlayerRound) -> None:
    name = _MULTI_KILLS.get(min(counts.kills, 5))
    if name is not None:
        setattr(counts, name, 1)


def _settle_kast(record: RoundRecord, falls: list[Fall]) -> None:
    fallen = {fall.victim for fall in falls}
    for player_id in record.team1 + record.team2:
        counts = record.counts(player_id)
        # Flash assists are no A: the match plugins do not count them either.
        has_part = counts.kills or counts.assists or counts.traded_deaths or player_id not in fallen
        counts.kast_rounds = 1 if has_part else 0
