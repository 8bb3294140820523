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
UNKNOWN = Signs(fleet=FleetReport.UNKNOWN, log_silent_ms=0, console_silent_ms=0)


def signs(
    log_s: float, console_s: float, fleet: FleetReport = FleetReport.UNKNOWN, *, asked_s: float = 0, **more: object
) -> Signs:
    """What is observed of a server whose log and console are silent, and which was asked that long ago."""
    seconds = {"log_silent_ms": log_s, "console_silent_ms": console_s, "unanswered_ms": asked_s}
    times = {name: round(value * 1000) for name, value in seconds.items()}
    return replace(UNKNOWN, fleet=fleet, **times, **more)


CASES: list[tuple[str, Signs, ServerHealth]] = [
    ("log arrives, console answers", signs(1, 1), ALIVE),
    ("log arrives, console refused for an hour", signs(1, 3600, asked_s=20), ALIVE),
    ("log silent for two minutes, console answers", signs(120, 1), ALIVE),
    ("quiet, not asked yet", signs(5, 5), WAIT),
    ("silent for an hour, not asked yet", signs(3600, 3600), WAIT),
    ("both silent for 12 s", signs(12, 12, asked_s=12), WAIT),
    ("both silent for 29.9 s", signs(29.9, 29.9, asked_s=20), WAIT),
    ("both silent for 30 s", signs(30, 30, asked_s=20), LOST),
    ("both silent for 30 s, asked 19.9 s ago", signs(30, 30, asked_s=19.9), WAIT),
    ("both silent for an hour, asked a moment ago", signs(3600, 3600, asked_s=3), WAIT),
    ("log silent for 30 s, console for 20 s", signs(30, 20, asked_s=20), WAIT),
    ("log silent for 20 s, console for 30 s", signs(20, 30, asked_s=20), WAIT),
    ("process runs, both silent for 29 s", signs(29, 29, FleetReport.ALIVE, asked_s=20), WAIT),
    ("process runs, both silent for 30 s", signs(30, 30, FleetReport.ALIVE, asked_s=20), LOST),
    ("map loads, both silent for 119 s", signs(119, 119, asked_s=20, load_ms=120_000), WAIT),
    ("map loads, both silent for 120 s", signs(120, 120, asked_s=20, load_ms=120_000), LOST),
    ("map loads fast, both silent for 29 s", signs(29, 29, asked_s=20, load_ms=15_000), WAIT),
    ("two silent for 31 s", signs(31, 31, asked_s=20, together=2), WAIT),
    ("twenty silent for 60 s", signs(60, 60, asked_s=20, together=20), WAIT),
    ("twenty silent for 90 s", signs(90, 90, asked_s=20, together=20), LOST),
    ("twenty silent for 90 s, map loads", signs(90, 90, asked_s=20, together=20, load_ms=120_000), WAIT),
    ("one of twenty posts again", signs(1, 60, asked_s=20, together=20), ALIVE),
    ("process gone, log arrives", signs(0, 0, FleetReport.GONE), LOST),
    ("pod deleted while twenty are silent", signs(9, 9, FleetReport.GONE, together=20), LOST),
    ("process gone while a map loads", signs(9, 9, FleetReport.GONE, load_ms=120_000), LOST),
    ("answers without posts for 179 s", signs(240, 1, no_posts_ms=179_000), ALIVE),
    ("answers without posts for 180 s", signs(241, 1, no_posts_ms=180_000), LOST),
]


@pytest.mark.parametrize(("seen", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_server_is_judged_by_the_table(seen: Signs, expected: ServerHealth) -> None:
    judged = judge_server(seen, LIMITS)
    assert judged.health is expected
    assert bool(judged.why) is (expected is not ALIVE)


def test_limits_follow_the_setting() -> None:
    quick = LossLimits(silence_ms=12_000)
    assert judge_server(signs(12, 12, asked_s=7), quick).health is WAIT
    assert judge_server(signs(12, 12, asked_s=8), quick).health is LOST
    assert judge_server(signs(35, 35, asked_s=20, together=2), quick).health is WAIT
    assert judge_server(signs(36, 36, asked_s=20, together=2), quick).health is LOST


def test_reason_says_how_many_are_silent() -> None:
    assert judge_server(signs(30, 31, asked_s=20), LIMITS).why == "no sign of life for 30 s"
    together = judge_server(signs(90, 91, asked_s=20, together=3), LIMITS)
    assert together.why == "no sign of life for 90 s, together with 2 others"


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
        "1 server has given no sign of life since 1970-01-01T00:00:00.000Z. A match is given up after 30 s of silence."
    )
    together = silence_notice([replace(one, since_ms=1), one], LIMITS, is_together=True)
    assert together == (
        "2 servers have given no sign of life since 1970-01-01T00:00:00.000Z: several fell silent together, so the "
        "cause may be a host, the network or this service. A match is given up after 90 s of silence."
    )
