"""Set how many cases tests try, with what only the tests of the service need."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TypeVar

from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from protocol_tests.effort import IS_SOAK, SEED, examples, seeds, sized, times

__all__ = ["IS_SOAK", "examples", "register_profiles", "seeded_random", "seeds", "sized", "some_of", "times"]

_T = TypeVar("_T")

_TEST_EXAMPLES = 15
"""Examples of a property in `make test`, unless it says how many."""


def some_of(cases: Iterable[_T], count: int) -> list[_T]:
    """Choose this many cases in `make test`, always the same; all in `make soak`."""
    every = list(cases)
    return every if IS_SOAK else Random(count).sample(every, count)


def seeded_random(name: str) -> Random:
    """Return a random generator for one test: the same in every `make test`, different in every round of `make soak`."""
    return Random(f"{name} {SEED or ''}")


def register_profiles() -> None:
    """Register the hypothesis profiles, without a deadline: deterministic in `make test`, random in `make soak`."""
    settings.register_profile("test", derandomize=True, database=None, deadline=None, max_examples=_TEST_EXAMPLES)
    settings.register_profile("soak", database=None, deadline=None, print_blob=True, max_examples=500)
    settings.load_profile("soak" if IS_SOAK else "test")
    if not IS_SOAK:
        # Else each process reads all our sources for constants to try, which takes seconds, and what a test tries depends
        # on the modules that tests before it have loaded.
        providers._get_local_constants = Constants
