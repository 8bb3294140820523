"""When kills come too fast."""

from __future__ import annotations

import pytest

from matchpod.core.anticheat.kill_bursts import MIN_DISTANCE, KillBursts
from matchpod.core.events import CheatSuspected, Kill
from matchpod.core.model import MatchType

ANN = "76561198000000001"


def kill(at_ms: int, victim: int, weapon: str = "deagle", **changes: object) -> Kill:
    given: dict[str, object] = {"is_headshot": True, "distance": 900.0, **changes}
    return Kill(at_ms, ANN, f"7656119800000001{victim}", weapon, True, **given)  # type: ignore[arg-type]


def burst(start_ms: int, count: int = 3, weapon: str = "deagle", **changes: object) -> list[Kill]:
    """Different enemies, all within a second."""
    return [kill(start_ms + 240 * number, number, weapon, **changes) for number in range(count)]


def see(bursts: KillBursts, *kills: Kill) -> list[CheatSuspected]:
    found = (bursts.see(each) for each in kills)
    return [report for report in found if report is not None]


def test_second_burst_of_headshots_is_reported_with_its_weapon() -> None:
    bursts = KillBursts.of(MatchType.COMPETITIVE)
    assert see(bursts, *burst(0)) == []
    assert see(bursts, *burst(60_000)) == [
        CheatSuspected(
            60_480,
            ANN,
            "RageBot",
            "2 bursts of kills faster than aim allows; "
            "the last: 3 headshots of different distant enemies within a second",
            "deagle",
        )
    ]


def test_kills_of_the_same_whole_second_are_a_burst() -> None:
    bursts = KillBursts()
    see(bursts, *(kill(5000, victim) for victim in range(3)))
    assert bursts.bursts == 1


def test_kills_of_neighbouring_whole_seconds_are_no_burst() -> None:
    bursts = KillBursts()
    see(bursts, kill(5000, 0), kill(5000, 1), kill(6000, 2))
    assert bursts.bursts == 0


def test_clock_that_was_set_back_makes_no_burst() -> None:
    bursts = KillBursts()
    see(bursts, kill(5000, 0), kill(5000, 1), kill(4900, 2))
    assert bursts.bursts == 0


@pytest.mark.parametrize(("weapon", "count"), [("usp_silencer", 3), ("ak47", 4), ("cz75a", 4), ("scar20", 4)])
def test_guns_that_spray_need_one_headshot_more(weapon: str, count: int) -> None:
    bursts = KillBursts()
    see(bursts, *burst(0, count - 1, weapon))
    assert bursts.bursts == 0
    see(bursts, *burst(60_000, count, weapon))
    assert bursts.bursts == 1


def test_one_sprayed_kill_makes_the_burst_a_spray() -> None:
    bursts = KillBursts()
    see(bursts, kill(0, 0, "ak47"), kill(100, 1), kill(400, 2))
    assert bursts.bursts == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"is_headshot": False},
        {"is_wallbang": True},
        {"distance": None},
        {"distance": MIN_DISTANCE - 0.1},
        {"weapon": "negev"},
        {"weapon": "xm1014"},
        {"weapon": "hegrenade", "is_headshot": False},
    ],
)
def test_body_hits_bullets_through_things_crowds_and_spread_make_no_burst(changes: dict[str, object]) -> None:
    bursts = KillBursts()
    for start_ms in range(0, 600_000, 60_000):
        see(bursts, *(kill(start_ms, victim, **{"weapon": "deagle", **changes}) for victim in range(5)))  # type: ignore[arg-type]
    assert bursts.bursts == 0


def test_same_victim_again_is_no_other_enemy() -> None:
    bursts = KillBursts()
    see(bursts, kill(0, 0), kill(300, 0), kill(600, 1))
    assert bursts.bursts == 0


@pytest.mark.parametrize("weapon", ["awp", "ssg08"])
def test_bolt_action_kills_within_a_second_are_a_burst_wherever_they_hit(weapon: str) -> None:
    bursts = KillBursts()
    see(bursts, *burst(0, 2, weapon, is_headshot=False, distance=100.0))
    assert bursts.bursts == 1
    (report,) = see(bursts, *burst(60_000, 2, weapon, is_headshot=False))
    assert report.reason.endswith("the last: 2 kills with a bolt-action rifle within a second")


def test_bolt_action_kills_a_bolt_apart_are_no_burst() -> None:
    bursts = KillBursts()
    see(bursts, kill(0, 0, "awp"), kill(1300, 1, "awp"), kill(2600, 2, "awp"))
    assert bursts.bursts == 0


def test_one_bullet_through_two_enemies_is_no_burst() -> None:
    bursts = KillBursts()
    see(bursts, kill(0, 0, "awp"), kill(0, 1, "awp", is_wallbang=True))
    assert bursts.bursts == 0


def test_kill_belongs_to_one_burst_only() -> None:
    bursts = KillBursts()
    see(bursts, *(kill(5000, victim) for victim in range(5)))
    assert bursts.bursts == 1


def test_report_comes_once_a_map_and_again_after_as_many_new_bursts() -> None:
    bursts = KillBursts()
    assert len([report for start_ms in range(0, 300_000, 60_000) for report in see(bursts, *burst(start_ms))]) == 1
    assert bursts.bursts == 5
    bursts.new_map()
    (report,) = see(bursts, *burst(900_000))
    assert report.reason.startswith("6 bursts")
    bursts.new_map()
    assert see(bursts, *burst(1_800_000)) == []
    assert len(see(bursts, *burst(1_900_000))) == 1
