"""Set how many cases tests try: a few fixed ones in `make test`, many random ones in `make soak`.

`make soak` sets MATCHPOD_SOAK_SEED. All randomness of a run depends on it, so a failure can be reproduced by setting it
again, together with `--hypothesis-seed`.
"""

from __future__ import annotations

import os
from random import Random

from hypothesis import settings

SOAK_FACTOR = 5
"""A round of `make soak` tries this many times as many cases as `make test`."""
EXAMPLES_FACTOR = 10
"""The same for examples of a property, which are cheap."""

SEED = os.environ.get("MATCHPOD_SOAK_SEED")

IS_SOAK = SEED is not None


def times(count: int) -> int:
    """Return the number of repetitions for a test that `make test` repeats `count` times."""
    return count * SOAK_FACTOR if IS_SOAK else count


def sized(test: int, soak: int) -> int:
    """Return `test` in `make test` and `soak` in `make soak`, for counts that are worth more than SOAK_FACTOR."""
    return soak if IS_SOAK else test


def examples(count: int) -> settings:
    """Return the hypothesis settings for a property that `make test` tries on `count` examples."""
    return settings(max_examples=count * EXAMPLES_FACTOR if IS_SOAK else count)


def seeds(count: int) -> list[int]:
    """Return seeds for simulated matches: 1 to `count` in `make test`, more and random ones in `make soak`."""
    if SEED is None:
        return list(range(1, count + 1))
    return Random(SEED).sample(range(1, 1_000_000), times(count))
