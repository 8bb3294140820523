"""Reports of kill bursts."""

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
    """Kills of different enemies within a second."""
    return [kill(start_ms + 240 * number, number, weapon, **changes) for number in range(count)]


def observe(bursts: KillBursts, *kills: Kill) -> list[CheatSuspected]:
    found = (bursts.observe(each) for each in kills)
    return [report for report in found if report is not None]


def test_second_burst_of_headshots_is_reported_with_its_weapon() -> None:
    bursts = KillBursts.of(MatchType.COMPETITIVE)
    assert observe(bursts, *burst(0)) == []
    assert observe(bursts, *burst(60_000)) == [
        CheatSuspected(
            60_480,
            ANN,
            "RageBot",
            "2 bursts of kills faster than humanly possible; "
            "the last: 3 headshots on different distant enemies within a second",
            "deagle",
        )
    ]


@pytest.mark.parametrize(
    ("kills", "bursts"),
    [
        pytest.param([kill(5000, victim) for victim in range(3)], 1, id="same whole second"),
        pytest.param([kill(5000, 0), kill(5000, 1), kill(6000, 2)], 0, id="adjacent whole seconds"),
        pytest.param([kill(5000, 0), kill(5000, 1), kill(4900, 2)], 0, id="clock set back"),
        pytest.param([kill(0, 0, "ak47"), kill(100, 1), kill(400, 2)], 0, id="an automatic gun raises the threshold"),
        pytest.param([kill(0, 0), kill(300, 0), kill(600, 1)], 0, id="repeated victim counts once"),
        pytest.param([kill(0, 0, "awp"), kill(1300, 1, "awp"), kill(2600, 2, "awp")], 0, id="normal fire rate"),
        pytest.param([kill(0, 0, "awp"), kill(0, 1, "awp", is_wallbang=True)], 0, id="one bullet, two enemies"),
        pytest.param([kill(5000, victim) for victim in range(5)], 1, id="a kill belongs to one burst only"),
    ],
)
def test_kills_that_are_a_burst(kills: list[Kill], bursts: int) -> None:
    seen = KillBursts()
    observe(seen, *kills)
    assert seen.bursts == bursts


def test_burst_with_an_automatic_gun_needs_one_more_headshot() -> None:
    for weapon, count in [("usp_silencer", 3), ("ak47", 4), ("cz75a", 4), ("scar20", 4)]:
        bursts = KillBursts()
        observe(bursts, *burst(0, count - 1, weapon))
        assert bursts.bursts == 0
        observe(bursts, *burst(60_000, count, weapon))
        assert bursts.bursts == 1


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
def test_body_shots_wallbangs_close_kills_and_other_weapons_are_no_burst(changes: dict[str, object]) -> None:
    bursts = KillBursts()
    for start_ms in range(0, 600_000, 60_000):
        observe(bursts, *(kill(start_ms, victim, **{"weapon": "deagle", **changes}) for victim in range(5)))  # type: ignore[arg-type]
    assert bursts.bursts == 0


@pytest.mark.parametrize("weapon", ["awp", "ssg08"])
def test_bolt_action_kills_within_a_second_are_a_burst_regardless_of_hitgroup(weapon: str) -> None:
    bursts = KillBursts()
    observe(bursts, *burst(0, 2, weapon, is_headshot=False, distance=100.0))
    assert bursts.bursts == 1
    (report,) = observe(bursts, *burst(60_000, 2, weapon, is_headshot=False))
    assert report.reason.endswith("the last: 2 kills with a bolt-action rifle within a second")


def test_each_map_has_at_most_one_report_and_each_report_needs_two_new_bursts() -> None:
    bursts = KillBursts()
    assert len([report for start_ms in range(0, 300_000, 60_000) for report in observe(bursts, *burst(start_ms))]) == 1
    assert bursts.bursts == 5
    bursts.new_map()
    (report,) = observe(bursts, *burst(900_000))
    assert report.reason.startswith("6 bursts")
    bursts.new_map()
    assert observe(bursts, *burst(1_800_000)) == []
    assert len(observe(bursts, *burst(1_900_000))) == 1
