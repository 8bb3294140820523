"""The detectors of a match: which kills count, restarts, backups and snapshots."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from cs2_protocol.game import Side, Team
from matchpod.core import events as ev
from matchpod.core.anticheat.detectors import DETECTORS, MAX_PLAYERS, Detectors
from matchpod.core.anticheat.headshot_rate import MIN_KILLS
from matchpod.core.model import CvarSetting, MatchType
from tests.unit.core.match_driver import ANN, BEN, EVE, duel, live_duel

LIVE = ev.MapLive(0, "de_nuke", 0, Side.CT)
ENDED = ev.MapEnded(0, "de_nuke", 13, 5)
RESTART = ev.RoundRestored(0, 0, 0, 0)
BACKUP = ev.RoundRestored(0, 5, 3, 2)
HEADSHOT = ev.Kill(1000, ANN, BEN, "ak47", True, is_headshot=True, distance=300.0)
ENOUGH = [HEADSHOT] * MIN_KILLS


def apply_all(detectors: Detectors, *events: ev.GameEvent) -> list[ev.CheatSuspected]:
    return [found for event in events for found in detectors.apply(event)]


@pytest.mark.parametrize("before", [[], [BACKUP], [LIVE, ENDED]])
def test_kills_outside_a_live_map_do_not_count(before: list[ev.GameEvent]) -> None:
    detectors = Detectors()
    assert apply_all(detectors, *before, *ENOUGH) == []
    assert detectors.players == {}


@pytest.mark.parametrize(
    "kill",
    [replace(HEADSHOT, is_enemy=False), replace(HEADSHOT, killer="BOT:Han"), replace(HEADSHOT, victim="BOT:Han")],
)
def test_team_kills_and_bots_do_not_count(kill: ev.Kill) -> None:
    detectors = Detectors()
    assert apply_all(detectors, LIVE, *[kill] * 50) == []
    assert detectors.players == {}


def test_each_player_has_separate_evidence() -> None:
    others = [replace(HEADSHOT, killer=BEN, victim=ANN)] * 10
    assert apply_all(Detectors(), LIVE, *others, *ENOUGH[1:], *others) == []


def test_every_detector_is_used() -> None:
    detectors = Detectors()
    apply_all(detectors, LIVE, HEADSHOT)
    assert [type(detector) for detector in detectors.players[ANN]] == list(DETECTORS)


def test_evidence_of_earlier_maps_counts() -> None:
    detectors = Detectors()
    assert apply_all(detectors, LIVE, *ENOUGH[1:], ENDED, LIVE) == []
    assert len(apply_all(detectors, HEADSHOT)) == 1


def test_each_map_can_have_one_report() -> None:
    detectors = Detectors()
    assert len(apply_all(detectors, LIVE, *ENOUGH, *ENOUGH, ENDED)) == 1
    assert len(apply_all(detectors, LIVE, *ENOUGH, ENDED)) == 1


def test_restart_discards_the_evidence_of_the_current_map_only() -> None:
    detectors = Detectors()
    apply_all(detectors, LIVE, *ENOUGH[11:], ENDED)
    assert apply_all(detectors, LIVE, *ENOUGH[12:], RESTART, LIVE, *ENOUGH[12:]) == []
    assert len(apply_all(detectors, HEADSHOT)) == 1


def test_second_start_without_an_end_discards_the_evidence_of_the_map() -> None:
    # A knife round, or a match restarted by an administrator.
    assert apply_all(Detectors(), LIVE, *ENOUGH[1:], LIVE, *ENOUGH[1:]) == []
    assert len(apply_all(Detectors(), LIVE, *ENOUGH[1:], ENDED, LIVE, HEADSHOT)) == 1


def test_repeated_restarts_discard_the_evidence_each_time() -> None:
    detectors = Detectors()
    assert apply_all(detectors, LIVE, *ENOUGH[1:], RESTART, *ENOUGH[1:], RESTART, *ENOUGH[1:]) == []


def test_restored_backup_keeps_the_evidence_and_repeats_no_report() -> None:
    assert len(apply_all(Detectors(), LIVE, *ENOUGH[1:], BACKUP, HEADSHOT)) == 1
    assert len(apply_all(Detectors(), LIVE, *ENOUGH, BACKUP, *ENOUGH)) == 1


def test_restored_backup_reopens_an_ended_map() -> None:
    assert len(apply_all(Detectors(), LIVE, *ENOUGH[1:], ENDED, BACKUP, HEADSHOT)) == 1


def test_other_events_do_not_change_the_state() -> None:
    detectors = Detectors()
    apply_all(detectors, LIVE)
    before = msgspec.msgpack.encode(detectors)
    assert apply_all(detectors, ev.Damage(0, ANN, BEN, "ak47", "head", 100, 0, True), ev.BombExploded(0)) == []
    assert msgspec.msgpack.encode(detectors) == before


def test_detectors_continue_from_a_snapshot() -> None:
    detectors = Detectors.of(duel())
    apply_all(detectors, LIVE, *ENOUGH[1:], replace(HEADSHOT, weapon="awp"))
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(detectors), type=Detectors)
    assert again == detectors
    assert apply_all(again, HEADSHOT) == apply_all(detectors, HEADSHOT) != []


def test_number_of_players_is_limited() -> None:
    detectors = Detectors()
    apply_all(detectors, LIVE, *(replace(HEADSHOT, killer=str(number)) for number in range(MAX_PLAYERS + 1)))
    assert len(detectors.players) == MAX_PLAYERS


def test_deathmatch_has_its_own_thresholds() -> None:
    assert apply_all(Detectors(MatchType.DEATHMATCH), LIVE, *ENOUGH) == []


@pytest.mark.parametrize("name", ["mp_damage_headshot_only", "MP_damage_scale_ct_body", "weapon_accuracy_nospread"])
def test_gameplay_cvars_disable_the_detectors(name: str) -> None:
    detectors = Detectors.of(replace(duel(), custom_cvars=(CvarSetting(name, "1"),)))
    assert apply_all(detectors, LIVE, *ENOUGH, BACKUP, *ENOUGH) == []


def test_other_cvars_do_not_disable_the_detectors() -> None:
    detectors = Detectors.of(replace(duel(), custom_cvars=(CvarSetting("mp_free_armor", "1"),)))
    assert len(apply_all(detectors, LIVE, *ENOUGH)) == 1


def test_match_stores_detections_with_map_and_round() -> None:
    driver = live_duel()
    for number in range(1, 3):
        driver.apply(ev.RoundStarted(driver.now_ms, number, (ANN,), (BEN,), Side.CT))
        for kill in ENOUGH[::2]:
            driver.apply(kill)
    (found,) = driver.match.detections
    assert (found.player_id, found.kind, found.team) == (ANN, "Aimbot", Team.TEAM1)
    assert (found.map_number, found.round_number, found.detected_at_ms) == (1, 2, HEADSHOT.at_ms)


def test_match_stores_no_detections_of_unlisted_players() -> None:
    driver = live_duel()
    for kill in ENOUGH:
        driver.apply(replace(kill, killer=EVE))
    assert driver.match.detections == []
