"""Reports of kills of unseen enemies."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from matchpod.core.anticheat.blind_and_smoke import MIN_DISTANCE, MIN_HEADSHOTS, MIN_UNSEEN, BlindAndSmoke
from matchpod.core.events import CheatSuspected, Kill
from matchpod.core.model import MatchType

PLAIN = Kill(1000, "76561198000000001", "76561198000000002", "ak47", True, distance=900.0)
SMOKED = replace(PLAIN, is_through_smoke=True)
SMOKED_HEAD = replace(SMOKED, is_headshot=True)
WALLED_HEAD = replace(PLAIN, is_wallbang=True, is_headshot=True)
BLIND_HEAD = replace(PLAIN, is_blind=True, is_headshot=True)


def observe(tally: BlindAndSmoke, *kills: Kill) -> list[CheatSuspected]:
    found = (tally.observe(kill) for kill in kills)
    return [report for report in found if report is not None]


def test_headshots_on_unseen_enemies_are_reported_with_their_numbers_and_weapon() -> None:
    kills = [PLAIN] * 14 + [SMOKED_HEAD] * 3 + [WALLED_HEAD] * 2 + [replace(BLIND_HEAD, weapon="deagle")]
    assert observe(BlindAndSmoke.of(MatchType.COMPETITIVE), *kills) == [
        CheatSuspected(
            1000,
            "76561198000000001",
            "Wallhack",
            "6 of 20 gun kills were of distant enemies out of sight, 6 of them headshots "
            "(3 through smoke, 2 through walls, 1 blind)",
            "deagle",
        )
    ]


def test_few_unseen_headshots_or_a_small_share_of_them_are_not_reported() -> None:
    assert observe(BlindAndSmoke(), *[SMOKED_HEAD] * (MIN_HEADSHOTS - 1)) == []
    assert observe(BlindAndSmoke(), *[PLAIN] * 25, *[SMOKED_HEAD] * MIN_HEADSHOTS) == []


def test_kills_through_smoke_are_reported_only_if_many_and_a_large_share_of_all_kills() -> None:
    assert observe(BlindAndSmoke(), *[SMOKED] * (MIN_UNSEEN - 1)) == []
    assert observe(BlindAndSmoke(), *[PLAIN] * 16, *[SMOKED] * MIN_UNSEEN) == []
    assert len(observe(BlindAndSmoke(), *[PLAIN] * 15, *[SMOKED] * MIN_UNSEEN)) == 1


def test_weapons_without_precise_aim_do_not_count() -> None:
    for weapon in ["negev", "m249", "nova", "hegrenade", "inferno", "knife", "taser"]:
        tally = BlindAndSmoke()
        assert observe(tally, *[replace(SMOKED_HEAD, weapon=weapon)] * 30) == []
        assert tally == BlindAndSmoke()


@pytest.mark.parametrize("distance", [None, MIN_DISTANCE - 0.1])
def test_close_kills_and_kills_at_unknown_distance_count_as_kills_of_visible_enemies(distance: float | None) -> None:
    tally = BlindAndSmoke()
    assert observe(tally, *[replace(SMOKED_HEAD, distance=distance)] * 30) == []
    assert tally == BlindAndSmoke(kills=30)


def test_kill_that_is_unseen_for_two_reasons_counts_once() -> None:
    tally = BlindAndSmoke()
    observe(tally, replace(SMOKED_HEAD, is_blind=True, weapon="awp"))
    assert (tally.unseen, tally.headshots, tally.through_smoke, tally.blind) == (1, 1, 1, 1)


def test_each_map_has_at_most_one_report() -> None:
    assert len(observe(BlindAndSmoke(), *[SMOKED_HEAD] * 30)) == 1


def test_later_map_has_a_report_after_the_same_amount_of_new_evidence() -> None:
    tally = BlindAndSmoke()
    observe(tally, *[SMOKED_HEAD] * MIN_HEADSHOTS)
    tally.new_map()
    assert observe(tally, *[SMOKED_HEAD] * (MIN_HEADSHOTS - 1)) == []
    assert len(observe(tally, SMOKED_HEAD)) == 1
