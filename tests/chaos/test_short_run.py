"""Short runs of chaos, pods and an upgrade: nothing is lost, doubled, leaked or counted wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.judge import judge
from tests.chaos.plan import PLAYED, FaultKind, Mix, Receiver, make_plan
from tests.chaos.pods import Size, play_on_pods
from tests.chaos.rounds import Round
from tests.chaos.session import play_reference
from tests.chaos.upgrade import measure_upgrade
from tests.last_release import NoHistoryError

SEED = 7
MIX = Mix(
    matches=9,
    kills=3,
    length_s=5,
    faults=(FaultKind.SERVER_KILL, FaultKind.SERVER_PAUSE, FaultKind.RESTART),
    kinds=("duel", "overtime", "spoofer", "deathmatch", "crash", "series"),
    cancel_share=0.2,
    bad_receiver_share=0.4,
    bad_receivers=(Receiver.FAIL_ONCE, Receiver.RESET_ONCE, Receiver.HUGE, Receiver.REDIRECT),
)
"""Without faults that only take time: receivers that hang, and servers that hang."""


@pytest.mark.soak
async def test_no_match_is_lost_doubled_leaked_or_wrong_in_a_round_of_faults(tmp_path: Path) -> None:
    plan = make_plan(SEED, MIX)
    games = {match.game for match in plan.matches if match.game.kind in PLAYED}
    reference = await play_reference(tmp_path / "reference", sorted(games, key=str))
    seen = await Round(plan, tmp_path / "chaos").run()
    verdict = judge(plan, seen, reference)
    assert verdict.violations == ()
    assert seen.injected.count(FaultKind.KILL) == MIX.kills
    assert sum(verdict.ends.values()) == MIX.matches


@pytest.mark.soak
async def test_every_match_ends_once_and_no_pod_is_left(tmp_path: Path) -> None:
    seen: list[str] = []
    is_clean, figures = await play_on_pods(tmp_path, Size(matches=6, pods=3), 4, seen.append)
    assert is_clean, "\n".join([*seen[-30:], *figures])


@pytest.mark.soak
async def test_rolling_upgrade_and_rollback_lose_no_match_and_no_request(tmp_path: Path) -> None:
    said: list[str] = []
    try:
        is_clean, _ = await measure_upgrade(tmp_path, 4, said.append, rest_s=5.0)
    except NoHistoryError as exc:
        pytest.skip(str(exc))
    assert is_clean, "\n".join(said)
