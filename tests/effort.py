"""Set how many cases tests try: a few fixed ones in `make test`, many random ones in `make soak`.

`make soak` sets MATCHPOD_SOAK_SEED. All randomness of a run depends on it, so a failure can be reproduced by setting it
again, together with `--hypothesis-seed`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from random import Random
from typing import TypeVar

from hypothesis import settings

_T = TypeVar("_T")

_TEST_EXAMPLES = 25
"""Examples of a property in `make test`, unless it says how many."""

SOAK_FACTOR = 5
"""A round of `make soak` tries this many times as many cases as `make test`."""
EXAMPLES_FACTOR = 10
"""The same for examples of a property, which are cheap."""

_SEED = os.environ.get("MATCHPOD_SOAK_SEED")

IS_SOAK = _SEED is not None


def times(count: int) -> int:
    """Return the number of repetitions for a test that `make test` repeats `count` times."""
    return count * SOAK_FACTOR if IS_SOAK else count


def sized(test: int, soak: int) -> int:
    """Return `test` in `make test` and `soak` in `make soak`, for counts that are worth more than SOAK_FACTOR."""
    return soak if IS_SOAK else test


def examples(count: int) -> settings:
    """Return the hypothesis settings for a property that `make test` tries on `count` examples."""
    return settings(max_examples=count * EXAMPLES_FACTOR if IS_SOAK else count)


def some_of(cases: Iterable[_T], count: int) -> list[_T]:
    """Choose this many cases in `make test`, always the same; all in `make soak`."""
    every = list(cases)
    return every if IS_SOAK else Random(count).sample(every, count)


def seeds(count: int) -> list[int]:
    """Return seeds for simulated matches: 1 to `count` in `make test`, more and random ones in `make soak`."""
    if _SEED is None:
        return list(range(1, count + 1))
    return Random(_SEED).sample(range(1, 1_000_000), times(count))


def seeded_random(name: str) -> Random:
    """Return a random generator for one test: the same in every `make test`, different in every round of `make soak`."""
    return Random(f"{name} {_SEED or ''}")


def register_profiles() -> None:
    """Register the hypothesis profiles, without a deadline: deterministic in `make test`, random in `make soak`."""
    settings.register_profile("test", derandomize=True, database=None, deadline=None, max_examples=_TEST_EXAMPLES)
    settings.register_profile("soak", database=None, deadline=None, print_blob=True, max_examples=500)
    settings.load_profile("soak" if IS_SOAK else "test")
