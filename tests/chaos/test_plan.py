"""A plan depends only on its seed, and contains what its mix asks for."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from matchpod.storage.heartbeats import DEAD_MS
from tests.chaos.plan import FREEZE_S, MATCH_OVER, SERVER_LOST, FaultKind, Mix, make_plan

MIX = Mix(matches=30, kills=6, length_s=20, replicas=2, faults=(FaultKind.FREEZE, FaultKind.SERVER_KILL))


def test_same_seed_gives_the_same_plan() -> None:
    assert make_plan(7, MIX) == make_plan(7, MIX)
    assert make_plan(7, MIX) != make_plan(8, MIX)


@pytest.mark.parametrize("seed", range(20))
def test_plan_contains_what_its_mix_asks_for(seed: int) -> None:
    plan = make_plan(seed, MIX)
    assert len({match.name for match in plan.matches}) == MIX.matches
    assert {match.game.kind for match in plan.matches} == set(MIX.kinds)
    assert Counter(fault.kind for fault in plan.faults) == {
        FaultKind.KILL: MIX.kills,
        FaultKind.FREEZE: 1,
        FaultKind.SERVER_KILL: 1,
    }
    names = {match.name for match in plan.matches}
    assert all(fault.match in names for fault in plan.faults if fault.match is not None)
    assert all(0 <= fault.at_s <= MIX.length_s for fault in plan.faults)


def test_restarted_server_is_a_lost_server_and_nothing_else() -> None:
    plan = make_plan(7, msgspec.structs.replace(MIX, faults=(FaultKind.SERVER_RESTART,), cancel_share=0.0))
    (restart,) = [fault for fault in plan.faults if fault.kind is FaultKind.SERVER_RESTART]
    (match,) = [match for match in plan.matches if match.name == restart.match]
    assert plan.expected_ends(match) == {MATCH_OVER, SERVER_LOST}


def test_freeze_is_longer_than_a_lease() -> None:
    assert FREEZE_S * 1000 > 2 * DEAD_MS
