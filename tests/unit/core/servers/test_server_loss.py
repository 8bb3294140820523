"""The table of docs/server-states.md, case by case."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from matchpod.core.servers.server_loss import (
    MAX_SHARED,
    FleetReport,
    LossLimits,
    ServerHealth,
    Signs,
    Silence,
    find_together,
    judge_server,
    newest_of_each_region,
    silence_notice,
)

LIMITS = LossLimits()
ALIVE, WAIT, LOST = ServerHealth.ALIVE, ServerHealth.WAIT, ServerHealth.LOST
UNKNOWN = Signs(fleet=FleetReport.UNKNOWN, silent_ms=0)


def signs(silent_s: float, fleet: FleetReport = FleetReport.UNKNOWN, *, asked_s: float = 0, **more: object) -> Signs:
    """What is observed of a server that is silent, and whose console was first asked that long ago."""
    times = {"silent_ms": round(silent_s * 1000), "unanswered_ms": round(asked_s * 1000)}
    return replace(UNKNOWN, fleet=fleet, **times, **more)


CASES: list[tuple[str, Signs, ServerHealth]] = [
    ("log arrives, or console answers", signs(1), ALIVE),
    ("log arrives, console refused for an hour", signs(1, asked_s=3600), ALIVE),
    ("quiet, not asked yet", signs(5), WAIT),
    ("silent for an hour, not asked yet", signs(3600), WAIT),
    ("silent for an hour, asked a moment ago", signs(3600, asked_s=3), WAIT),
    ("silent for 30 s, asked 20 s ago", signs(30, asked_s=20), WAIT),
    ("silent for 40 s, asked 29.9 s ago", signs(40, asked_s=29.9), WAIT),
    ("silent for 40 s, asked 30 s ago", signs(40, asked_s=30), LOST),
    ("process runs, asked 29 s ago", signs(39, FleetReport.ALIVE, asked_s=29), WAIT),
    ("process runs, asked 30 s ago", signs(40, FleetReport.ALIVE, asked_s=30), LOST),
    ("map loads, asked 119 s ago", signs(129, asked_s=119, load_ms=120_000), WAIT),
    ("map loads, asked 120 s ago", signs(130, asked_s=120, load_ms=120_000), LOST),
    ("map loads fast, asked 29 s ago", signs(39, asked_s=29, load_ms=15_000), WAIT),
    ("two silent, asked 31 s ago", signs(41, asked_s=31, together=2), WAIT),
    ("twenty silent, asked 60 s ago", signs(70, asked_s=60, together=20), WAIT),
    ("twenty silent, asked 90 s ago", signs(100, asked_s=90, together=20), LOST),
    ("twenty silent, asked 90 s ago, map loads", signs(100, asked_s=90, together=20, load_ms=120_000), WAIT),
    ("one of twenty posts again", signs(1, asked_s=60, together=20), ALIVE),
    ("process gone, log arrives", signs(0, FleetReport.GONE), LOST),
    ("pod deleted while twenty are silent", signs(9, FleetReport.GONE, together=20), LOST),
    ("process gone while a map loads", signs(9, FleetReport.GONE, load_ms=120_000), LOST),
    ("answers without posts for 179 s", signs(1, no_posts_ms=179_000), ALIVE),
    ("answers without posts for 180 s", signs(1, no_posts_ms=180_000), LOST),
]


@pytest.mark.parametrize(("seen", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_server_is_judged_by_the_table(seen: Signs, expected: ServerHealth) -> None:
    judged = judge_server(seen, LIMITS)
    assert judged.health is expected
    assert bool(judged.why) is (expected is not ALIVE)


def test_limits_follow_the_setting() -> None:
    quick = LossLimits(silence_ms=12_000)
    assert judge_server(signs(16, asked_s=11.9), quick).health is WAIT
    assert judge_server(signs(16, asked_s=12), quick).health is LOST
    assert judge_server(signs(40, asked_s=35.9, together=2), quick).health is WAIT
    assert judge_server(signs(40, asked_s=36, together=2), quick).health is LOST


def test_reason_says_how_many_are_silent() -> None:
    assert judge_server(signs(40, asked_s=30), LIMITS).why == "no sign of life for 40 s"
    together = judge_server(signs(100, asked_s=90, together=3), LIMITS)
    assert together.why == "no sign of life for 100 s, together with 2 others"


def test_servers_of_a_host_or_region_fall_silent_together_within_the_time_after_which_one_is_lost() -> None:
    one = Silence(region="eu", host="10.0.0.1", since_ms=100_000)
    others = {
        "region": Silence(region="eu", host="10.0.0.2", since_ms=130_000),
        "host": Silence(region="us", host="10.0.0.1", since_ms=70_000),
        "neither": Silence(region="us", host="10.0.0.3", since_ms=100_000),
        "earlier": Silence(region="eu", host="10.0.0.1", since_ms=69_999),
        "later": Silence(region="eu", host="10.0.0.1", since_ms=130_001),
    }
    assert find_together(one, others, LIMITS) == ["region", "host"]


def test_newest_silences_of_each_region_are_shared() -> None:
    many = {f"srv_{number}": Silence(region="eu", host="", since_ms=number) for number in range(MAX_SHARED + 1)}
    us = Silence(region="us", host="", since_ms=0)
    shared = newest_of_each_region({**many, "srv_us": us})
    assert shared.pop("srv_us") == us, "those of one region leave none of another out"
    assert set(many) - set(shared) == {"srv_0"}


def test_notice_says_what_is_observed() -> None:
    one = Silence(region="eu", host="10.0.0.1", since_ms=0)
    assert silence_notice([], LIMITS, is_together=False) is None
    assert silence_notice([one], LIMITS, is_together=False) == (
        "1 server has given no sign of life since 1970-01-01T00:00:00.000Z. A match is given up after 30 s without an answer."
    )
    together = silence_notice([replace(one, since_ms=1), one], LIMITS, is_together=True)
    assert together == (
        "2 servers have given no sign of life since 1970-01-01T00:00:00.000Z: several fell silent together, so the "
        "cause may be a host, the network or this service. A match is given up after 90 s without an answer."
    )
