"""Test that the counters of a player are summed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cs2_simulator.play.counts.tally import COUNTERS, Tally, add_all

counts = st.builds(
    lambda values, weapons: _tally(values, weapons),
    st.lists(st.integers(0, 9), min_size=len(COUNTERS), max_size=len(COUNTERS)),
    st.dictionaries(st.sampled_from(["ak47", "awp"]), st.integers(1, 5)),
)


def _tally(values: list[int], weapons: dict[str, int]) -> Tally:
    tally = Tally(player_id="1", name="Ann", team=1, weapon_kills=weapons)
    for counter, value in zip(COUNTERS, values, strict=True):
        setattr(tally, counter, value)
    return tally


@given(counts, counts)
def test_every_counter_is_summed(first: Tally, second: Tally) -> None:
    totals: dict[str, Tally] = {}
    add_all(totals, [first, second])
    total = totals["1"]
    assert all(getattr(total, name) == getattr(first, name) + getattr(second, name) for name in COUNTERS)
    assert sum(total.weapon_kills.values()) == sum(first.weapon_kills.values()) + sum(second.weapon_kills.values())


def test_missing_team_does_not_replace_a_team() -> None:
    total = Tally(player_id="1", name="Ann", team=1)
    total.add(Tally(player_id="1", name="Ann", team=0))
    assert total.team == 1
