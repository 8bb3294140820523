"""How much of a law is tried: a few fixed cases in `make test`, many random ones in `make soak`.

`make soak` sets MATCHPOD_SOAK_SEED. All chance of a run comes from that number, so a failure is repeated by setting it
again, together with `--hypothesis-seed`.
"""

from __future__ import annotations

import os
from random import Random

from hypothesis import settings

SOAK_FACTOR = 5
"""A round of `make soak` tries this many times as much as `make test`."""

_SEED = os.environ.get("MATCHPOD_SOAK_SEED")

IS_SOAK = _SEED is not None


def times(count: int) -> int:
    """How often to repeat something that `make test` repeats this often."""
    return count * SOAK_FACTOR if IS_SOAK else count


def examples(count: int) -> settings:
    """Hypothesis settings of a law that `make test` tries on this many examples."""
    return settings(max_examples=times(count))


def seeds(count: int) -> list[int]:
    """Seeds of simulated matches and the like: 1 to `count`, or as many times more random ones."""
    if _SEED is None:
        return list(range(1, count + 1))
    return Random(_SEED).sample(range(1, 1_000_000), times(count))


def chance(name: str) -> Random:
    """A source of chance for one test: the same in every `make test`, another one in every round of `make soak`."""
    return Random(f"{name} {_SEED or ''}")


def register_profiles() -> None:
    """Make hypothesis follow the same rule: deterministic, without a time limit per example."""
    settings.register_profile("test", derandomize=True, database=None, deadline=None)
    settings.register_profile("soak", database=None, deadline=None, print_blob=True, max_examples=times(100))
    settings.load_profile("soak" if IS_SOAK else "test")
