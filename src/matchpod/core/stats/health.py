"""Compute the health that a hit removed from a player."""

from __future__ import annotations

FULL_HEALTH = 100


def health_lost(damage: int, before: int, after: int) -> int:
    """Return the health that a hit actually removed.

    The log truncates damage to an integer, so the loss of health can be 1 higher. Summed over a real match, this loss
    equals the game's own total exactly (10,341), while the logged damage capped at the health is 1.5 % short. The
    logged damage plus 1 remains the limit: fall damage must not be credited to the next attacker.
    """
    if after > before:  # the victim had more health than recorded; only the logged damage is known
        return damage
    return min(damage + 1, before - after)
