"""What the watch over a match looks at, forgets and tells."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from matchpod.core import events as ev
from matchpod.core.anticheat.headshot_rate import MIN_KILLS
from matchpod.core.anticheat.watch import DETECTORS, MAX_PLAYERS, Watch
from matchpod.core.match import Match
from matchpod.core.model import CvarSetting, MatchType, Side, Team
from tests.unit.core.match_builder import ANN, BEN, EVE, Story, duel, live_duel

LIVE = ev.MapLive(0, "de_nuke", 0, Side.CT)
ENDED = ev.MapEnded(0, "de_nuke", 13, 5)
RESTART = ev.RoundRestored(0, 0, 0, 0)
BACKUP = ev.RoundRestored(0, 5, 3, 2)
HEADSHOT = ev.Kill(1000, ANN, BEN, "ak47", True, is_headshot=True, distance=300.0)
ENOUGH = [HEADSHOT] * MIN_KILLS


def see(watch: Watch, *events: ev.GameEvent) -> list[ev.CheatSuspected]:
    return [found for event in events for found in watch.see(event)]


def test_kills_of_a_live_map_are_watched() -> None:
    (found,) = see(Watch(), LIVE, *ENOUGH)
    assert (found.player_id, found.kind, found.weapon) == (ANN, "Aimbot", "ak47")


@pytest.mark.parametrize("before", [[], [BACKUP], [LIVE, ENDED]])
def test_kills_outside_a_live_map_are_not(before: list[ev.GameEvent]) -> None:
    watch = Watch()
    assert see(watch, *before, *ENOUGH) == []
    assert watch.players == {}


@pytest.mark.parametrize(
    "kill",
    [replace(HEADSHOT, is_enemy=False), replace(HEADSHOT, killer="BOT:Han"), replace(HEADSHOT, victim="BOT:Han")],
)
def test_team_kills_and_bots_are_not_watched(kill: ev.Kill) -> None:
    watch = Watch()
    assert see(watch, LIVE, *[kill] * 50) == []
    assert watch.players == {}


def test_each_player_is_watched_for_himself() -> None:
    others = [replace(HEADSHOT, killer=BEN, victim=ANN)] * 10
    assert see(Watch(), LIVE, *others, *ENOUGH[1:], *others) == []


def test_every_detector_watches() -> None:
    watch = Watch()
    see(watch, LIVE, HEADSHOT)
    assert [type(detector) for detector in watch.players[ANN]] == list(DETECTORS)


def test_evidence_of_earlier_maps_counts() -> None:
    watch = Watch()
    assert see(watch, LIVE, *ENOUGH[1:], ENDED, LIVE) == []
    assert len(see(watch, HEADSHOT)) == 1


def test_another_map_may_be_reported_again() -> None:
    watch = Watch()
    assert len(see(watch, LIVE, *ENOUGH, *ENOUGH, ENDED)) == 1
    assert len(see(watch, LIVE, *ENOUGH, ENDED)) == 1


def test_restart_forgets_the_map_but_not_the_maps_before() -> None:
    watch = Watch()
    see(watch, LIVE, *ENOUGH[11:], ENDED)
    assert see(watch, LIVE, *ENOUGH[12:], RESTART, LIVE, *ENOUGH[12:]) == []
    assert len(see(watch, HEADSHOT)) == 1


def test_map_that_starts_again_without_an_end_forgets_what_did_not_count() -> None:
    # A knife round, or a match restarted by an administrator.
    assert see(Watch(), LIVE, *ENOUGH[1:], LIVE, *ENOUGH[1:]) == []
    assert len(see(Watch(), LIVE, *ENOUGH[1:], ENDED, LIVE, HEADSHOT)) == 1


def test_forgotten_map_can_be_forgotten_again() -> None:
    watch = Watch()
    assert see(watch, LIVE, *ENOUGH[1:], RESTART, *ENOUGH[1:], RESTART, *ENOUGH[1:]) == []


def test_restored_backup_keeps_the_evidence_and_tells_nothing_twice() -> None:
    assert len(see(Watch(), LIVE, *ENOUGH[1:], BACKUP, HEADSHOT)) == 1
    assert len(see(Watch(), LIVE, *ENOUGH, BACKUP, *ENOUGH)) == 1


def test_restored_backup_opens_an_ended_map_again() -> None:
    assert len(see(Watch(), LIVE, *ENOUGH[1:], ENDED, BACKUP, HEADSHOT)) == 1


def test_events_without_a_look_cost_nothing() -> None:
    watch = Watch()
    see(watch, LIVE)
    before = msgspec.msgpack.encode(watch)
    assert see(watch, ev.Damage(0, ANN, BEN, "ak47", "head", 100, 0, True), ev.BombExploded(0)) == []
    assert msgspec.msgpack.encode(watch) == before


def test_watch_goes_on_from_a_snapshot() -> None:
    watch = Watch.of(duel())
    see(watch, LIVE, *ENOUGH[1:], replace(HEADSHOT, weapon="awp"))
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(watch), type=Watch)
    assert again == watch
    assert see(again, HEADSHOT) == see(watch, HEADSHOT) != []


def test_more_players_than_a_server_sees_are_not_watched() -> None:
    watch = Watch()
    see(watch, LIVE, *(replace(HEADSHOT, killer=str(number)) for number in range(MAX_PLAYERS + 1)))
    assert len(watch.players) == MAX_PLAYERS


def test_deathmatch_is_watched_as_such() -> None:
    assert see(Watch(MatchType.DEATHMATCH), LIVE, *ENOUGH) == []


@pytest.mark.parametrize("name", ["mp_damage_headshot_only", "MP_damage_scale_ct_body", "weapon_accuracy_nospread"])
def test_cvars_that_make_another_game_of_it_end_the_watch(name: str) -> None:
    watch = Watch.of(replace(duel(), custom_cvars=(CvarSetting(name, "1"),)))
    assert see(watch, LIVE, *ENOUGH, BACKUP, *ENOUGH) == []


def test_other_cvars_do_not() -> None:
    watch = Watch.of(replace(duel(), custom_cvars=(CvarSetting("mp_free_armor", "1"),)))
    assert len(see(watch, LIVE, *ENOUGH)) == 1


# --- in a match -------------------------------------------------------------------------------------------------


def test_match_keeps_what_the_watch_finds_with_map_and_round() -> None:
    story = live_duel()
    for number in range(1, 3):
        story.tell(ev.RoundStarted(story.now_ms, number, (ANN,), (BEN,), Side.CT))
        for kill in ENOUGH[::2]:
            story.tell(kill)
    (found,) = story.match.detections
    assert (found.player_id, found.kind, found.team) == (ANN, "Aimbot", Team.TEAM1)
    assert (found.map_number, found.round_number, found.detected_at_ms) == (1, 2, HEADSHOT.at_ms)


def test_match_ignores_kills_before_it_is_live() -> None:
    story = Story(duel())
    story.join(ANN, BEN)
    for kill in ENOUGH:
        story.tell(kill)
    assert story.match.detections == []


def test_match_keeps_nothing_about_players_on_no_roster() -> None:
    story = live_duel()
    for kill in ENOUGH:
        story.tell(replace(kill, killer=EVE))
    assert story.match.detections == []


def test_match_goes_on_watching_from_a_snapshot() -> None:
    story = live_duel()
    for kill in ENOUGH[1:]:
        story.tell(kill)
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(story.match), type=Match)
    again.apply(HEADSHOT, story.now_ms)
    assert len(again.detections) == 1
