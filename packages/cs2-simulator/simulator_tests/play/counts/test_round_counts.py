"""Test the simulator's own statistics of a round, rule by rule."""

from __future__ import annotations

import pytest

from simulator_tests.play.counts.counted_round import BookAndTeams
from simulator_tests.play.counts.round_rules import RULES, check


@pytest.mark.parametrize(("script", "size", "counts"), RULES)
def test_book_follows_the_rules_of_a_round(script: str, size: int, counts: dict[str, int]) -> None:
    game = BookAndTeams(size)
    game.play(script)
    found: dict[str, int] = {}
    for player in (*game.ours, *game.theirs):
        tally = game.tally(player)
        found |= {f"{player.person.name}_{name}": getattr(tally, name) for name in tally.__struct_fields__}
    check(found, counts)


def test_death_by_the_bomb_counts_only_before_the_decision() -> None:
    game = BookAndTeams()
    game.book.killed_by_bomb(game.ours[0])
    game.book.round_decided(2, None)
    game.book.killed_by_bomb(game.ours[1])
    assert (game.tally(game.ours[0]).deaths, game.tally(game.ours[1]).deaths) == (1, 0)
