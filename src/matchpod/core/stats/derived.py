"""Compute ratios from counters, rounded to two decimals. A denominator of zero never raises an error."""

from __future__ import annotations

# A public reconstruction of the impact rating; the official formula is not published.
_IMPACT_PER_KILL = 2.13
_IMPACT_PER_ASSIST = 0.42
_IMPACT_OFFSET = -0.41


def hs_percent(headshots: int, kills: int) -> float:
    """Percentage of kills that were headshots."""
    return _percent(headshots, kills)


def kd_ratio(kills: int, deaths: int) -> float:
    """Kills per death; the number of kills if there are no deaths."""
    return round(kills / max(deaths, 1), 2)


def adr(damage: int, rounds: int) -> float:
    """Average damage per round played; 0 if no round was played."""
    return round(damage / rounds, 2) if rounds > 0 else 0.0


def kast_percent(kast_rounds: int, rounds: int) -> float:
    """Percentage of rounds with a kill, an assist, survival or a traded death."""
    return _percent(kast_rounds, rounds)


def impact(kills: int, assists: int, rounds: int) -> float:
    """The impact rating; 0 if no round was played."""
    if rounds <= 0:
        return 0.0
    return round((_IMPACT_PER_KILL * kills + _IMPACT_PER_ASSIST * assists) / rounds + _IMPACT_OFFSET, 2)


def accuracy(hit: int | None, fired: int | None) -> float | None:
    """Percentage of shots that hit an enemy; None if shots were not counted."""
    if hit is None or fired is None:
        return None
    return _percent(hit, fired)


def kpm(kills: int, duration_s: float) -> float:
    """Kills per minute; 0 if the duration is 0."""
    return round(kills * 60 / duration_s, 2) if duration_s > 0 else 0.0


def _percent(part: int, whole: int) -> float:
    return round(part / whole * 100, 2) if whole > 0 else 0.0
