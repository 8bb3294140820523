"""Measure how often players are reported: in real logs, honest ones in generated series, and generated cheaters.

Generated play is deliberately more suspicious than real play: of 167 gun kills in the real logs, 5 are through walls,
0 through smoke, 0 while blind, 113 from 500 units or more, 5 in the same second as the last kill; 48 % are headshots.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from cs2_protocol.game import Side
from matchpod.core.anticheat import blind_and_smoke, headshot_rate, kill_bursts
from matchpod.core.anticheat.detectors import DETECTORS, Detectors
from matchpod.core.anticheat.headshot_rate import BASE_PERCENT, MAX_CHANCE, chance_of
from matchpod.core.events import CheatSuspected, Kill, MapEnded, MapLive
from tests.corpus.real_logs import COMPETITIVE, CSGO_LOGS, INFERNO, read_log, with_humans_for_bots
from tests.effort import sized

LOGS = (INFERNO, *CSGO_LOGS)
PLAYER = "76561198000000001"
ENEMIES = tuple(f"7656119800000001{number}" for number in range(5))
KINDS = (headshot_rate.KIND, blind_and_smoke.KIND, kill_bursts.KIND)

MAPS_PER_SERIES = 3
PLAYER_MAPS = sized(2_000, 60_000)
ONE_IN = 1_000
"""The limit: less than one report of each kind in this many maps of honest players."""


read_once = cache(read_log)


@pytest.mark.parametrize("log", LOGS)
def test_real_log_has_no_detection(corpus: Path, log: str) -> None:
    reader, _ = read_once(corpus / log)
    assert reader.match.detections == []


@pytest.mark.parametrize("log", LOGS)
def test_real_log_has_no_detection_when_bots_count_as_humans(corpus: Path, log: str) -> None:
    detectors, found = Detectors.of(COMPETITIVE), Counter[str]()
    for event in with_humans_for_bots(read_once(corpus / log)[1]):
        found.update(suspected.player_id for suspected in detectors.apply(event))
    assert len(detectors.players) >= 6
    assert found == Counter()


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """How a player kills, as shares of their kills."""

    headshots: float
    smoke: float
    blind: float
    walls: float
    quick: float = 0.2
    """Kills that follow the previous one after a time in the range `quick_ms`."""
    quick_ms: tuple[int, int] = (100, 2500)
    kills: tuple[int, int] = (5, 30)


def honest(chance: random.Random) -> Style:
    """Return a random honest style, with three times the unseen kills of the real logs on average."""
    return Style(
        headshots=chance.uniform(0.25, 0.65),
        smoke=chance.uniform(0, 0.08),
        blind=chance.uniform(0, 0.03),
        walls=chance.uniform(0, 0.08),
    )


WEAPONS = ("ak47", "ak47", "m4a1", "m4a1_silencer", "awp", "deagle", "usp_silencer", "p250", "mp9", "negev")


def kills_on_map(style: Style, start_ms: int, chance: random.Random) -> Iterator[Kill]:
    at_ms, weapon, victims = start_ms, "ak47", list(ENEMIES)
    # Log files have whole seconds, posts have milliseconds.
    step_ms = chance.choice((1, 1000))
    for _ in range(chance.randint(*style.kills)):
        if chance.random() < style.quick and victims:
            at_ms += max(chance.randint(*style.quick_ms), 1500 if weapon == "awp" else 0)
        else:
            at_ms += 40_000
            victims = chance.sample(ENEMIES, len(ENEMIES))
            weapon = chance.choice(WEAPONS)
        yield Kill(
            at_ms // step_ms * step_ms,
            PLAYER,
            victims.pop(),
            weapon,
            True,
            is_headshot=chance.random() < style.headshots,
            is_wallbang=chance.random() < style.walls,
            is_through_smoke=chance.random() < style.smoke,
            is_blind=chance.random() < style.blind,
            distance=chance.lognormvariate(6.55, 0.7),
        )


def reports_in_series(style: Style, chance: random.Random, maps: int = MAPS_PER_SERIES) -> list[CheatSuspected]:
    detectors, found = Detectors.of(COMPETITIVE), list[CheatSuspected]()
    for number in range(maps):
        start_ms = 1_700_000_000_000 + number * 3_600_000
        detectors.apply(MapLive(start_ms, "x", start_ms, Side.CT))
        for kill in kills_on_map(style, start_ms, chance):
            found += detectors.apply(kill)
        detectors.apply(MapEnded(start_ms, "x", 13, 5))
    return found


def false_reports(player_maps: int, seed: int = 1) -> Counter[str]:
    """Count reports by kind over this many maps of honest players, with three maps per player."""
    chance, counted = random.Random(seed), Counter[str]()
    for _ in range(player_maps // MAPS_PER_SERIES):
        counted.update(found.kind for found in reports_in_series(honest(chance), chance))
    return counted


def share_found(style: Style, kind: str, maps: int, cheaters: int = sized(80, 300)) -> float:
    """Return the share of players of this style who are reported for `kind` within this many maps."""
    chance = random.Random(2)
    series = (reports_in_series(style, chance, maps) for _ in range(cheaters))
    return sum(any(found.kind == kind for found in reports) for reports in series) / cheaters


def test_every_detector_is_covered_by_these_tests() -> None:
    assert len(KINDS) == len(DETECTORS)


def test_honest_players_are_reported_less_than_once_in_a_thousand_maps() -> None:
    counted = false_reports(PLAYER_MAPS)
    assert {kind: counted[kind] for kind in KINDS if counted[kind] * ONE_IN >= PLAYER_MAPS} == {}


@pytest.mark.parametrize(
    ("percent", "kills", "one_in"), [(65, 30, 8_000), (70, 30, 1_000), (65, 90, 4_000), (70, 90, 400)]
)
def test_chance_of_a_false_headshot_report_is_bounded_for_the_best_players(
    percent: int, kills: int, one_in: int
) -> None:
    """Compute the exact probability from the odds of each number of headshots, kill by kill."""
    odds, reported, skill = {0: 1.0}, 0.0, percent / 100
    for count in range(1, kills + 1):
        after = defaultdict[int, float](float)
        for headshots, weight in odds.items():
            after[headshots + 1] += weight * skill
            after[headshots] += weight * (1 - skill)
        chances = {hits: chance_of(hits, count, BASE_PERCENT) for hits in after}
        reported += sum(weight for hits, weight in after.items() if chances[hits] < MAX_CHANCE)
        odds = {hits: weight for hits, weight in after.items() if chances[hits] >= MAX_CHANCE}
    assert reported < 1 / one_in


FRAGGER = Style(headshots=0.5, smoke=0.03, blind=0.01, walls=0.04, kills=(20, 35))


@pytest.mark.parametrize(
    ("style", "kind", "share"),
    [
        (replace(FRAGGER, headshots=0.95), headshot_rate.KIND, 0.95),
        (replace(FRAGGER, headshots=0.9, smoke=0.3, walls=0.3), blind_and_smoke.KIND, 0.95),
        (replace(FRAGGER, headshots=0.95, quick=0.7, quick_ms=(100, 300)), kill_bursts.KIND, 0.5),
    ],
)
def test_obvious_cheater_is_detected_within_a_series(style: Style, kind: str, share: float) -> None:
    assert share_found(style, kind, MAPS_PER_SERIES) >= share
