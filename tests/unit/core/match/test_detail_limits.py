"""What is kept of a map is bounded by the settings of its match, whatever its server logs."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.game import PlayerId, Side
from matchpod.core import events as ev
from matchpod.core.effects import CancelMatch, CancelReason
from matchpod.core.match.detail_limits import MIN_ITEMS, max_items, max_kills
from matchpod.core.match.phases import MatchPhase
from matchpod.core.model import GameSettings
from matchpod.core.stats.combat_counts import MAX_TRACKED
from matchpod.core.stats.ledger import FLOOD_FACTOR, MIN_KILLS, Ledger
from matchpod.core.stats.round_record import MAX_ROWS
from matchpod.cs2.match_reader import MatchReader
from tests.unit.core.match_driver import ANN, BEN, deathmatch, duel, open_match
from tests.unit.core.timeline_driver import TimelineDriver, timeline_duel
from tests.unit.cs2.server_log import ServerLog

DAY_MINUTES = 1_440


def listed(count: int) -> tuple[PlayerId, ...]:
    return tuple(str(76561198000000001 + number) for number in range(count))


# --- the limits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "kills"),
    [
        (duel(), MIN_KILLS),
        (deathmatch(), MIN_KILLS),
        (deathmatch(*listed(20), minutes=DAY_MINUTES), 144_000),
        (deathmatch(minutes=DAY_MINUTES), 460_800),
        (open_match(), 115_200),
    ],
)
def test_kills_that_are_kept_follow_from_players_and_minutes(settings: GameSettings, kills: int) -> None:
    assert max_kills(settings) == kills
    assert max_items(settings) == max(MIN_ITEMS, kills * 5 // 4)


# --- kills ------------------------------------------------------------------------------------------------------------


def cut_duel(max_kills: int) -> TimelineDriver:
    """A duel of which few kills are kept."""
    driver = timeline_duel().start_round()
    driver.match.current_map.ledger.max_kills = max_kills
    return driver


def test_kills_beyond_the_limit_are_counted_but_are_no_items_and_the_map_is_incomplete() -> None:
    driver = cut_duel(3)
    for _ in range(3):
        driver.kill()
    assert driver.match.current_map.is_complete
    driver.kill().apply(ev.Assist(driver.now_ms, ANN, BEN, is_flash=False, is_enemy=True)).chat().decide()
    driver.apply(ev.Death(driver.now_ms, ANN, "world"))
    assert driver.types()[-5:] == ["kill", "kill", "kill", "chat", "round_end"]
    assert driver.match.current_map.ledger.live_counts()[ANN].kills == 4
    assert not driver.match.current_map.is_complete
    assert driver.match.phase is MatchPhase.LIVE


def test_restart_of_the_map_begins_again() -> None:
    driver = cut_duel(1).kill().kill().live()
    assert driver.match.current_map.is_complete
    assert driver.match.current_map.ledger.max_kills == 1


def test_match_is_canceled_at_ten_times_as_many_kills() -> None:
    driver = cut_duel(2)
    for _ in range(FLOOD_FACTOR * 2):
        assert driver.kill().effects == []
    assert driver.kill().effects == [CancelMatch(CancelReason.LOG_QUOTA_EXCEEDED)]
    outcome = driver.match.outcome
    assert outcome is not None
    assert (outcome.reason, outcome.is_log_complete) == (CancelReason.LOG_QUOTA_EXCEEDED, False)
    assert driver.add_map_ends().types()[-1] == "map_end"


def test_flood_ends_the_match_at_the_same_line_however_it_was_split() -> None:
    log = ServerLog().go_live()
    for _ in range(FLOOD_FACTOR * 2 + 5):
        log.kill(1, 3)
    states = []
    for size in (1, 7, 10_000):
        reader = MatchReader.create(open_match(), 0)
        reader.match.current_map.ledger.max_kills = 2
        lines = log.file().encode().splitlines()
        for begin in range(0, len(lines), size):
            reader.read_file(lines[begin : begin + size])
        assert reader.match.outcome is not None
        assert reader.match.outcome.reason is CancelReason.LOG_QUOTA_EXCEEDED
        states.append(msgspec.json.encode((reader.match.maps, reader.timeline)))
    assert len(set(states)) == 1


# --- forged players ---------------------------------------------------------------------------------------------------


def rows_of(ledger: Ledger) -> int:
    """Count what takes memory for each player of a round."""
    rows = 0
    for one in ledger.records():
        details = one.read_details()
        rows += len(one.players) + len(one.falls) + sum(map(len, one.respawn_kills.values()))
        rows += len(details.money) + len(details.spent) + len(details.equipment)
        rows += sum(map(len, details.damage_to.values()))
    return rows


def live_ledger(*, has_respawns: bool = False) -> Ledger:
    ledger = Ledger(has_respawns=has_respawns)
    ledger.apply(ev.MapLive(0, "de_nuke", 0, Side.CT))
    return ledger


def test_rows_of_forged_players_are_bounded() -> None:
    ledger = live_ledger(has_respawns=True)
    for number in range(MAX_ROWS // 2):  # at three rows each
        ledger.apply(ev.Kill(number, f"killer {number}", f"victim {number}", f"weapon {number}", True))
        ledger.apply(ev.Damage(number, "attacker", f"hit {number}", "ak47", "head", 20, 80, True))
    ledger.apply(ev.Kill(0, "killer 5", "victim 5", "weapon 5", True))
    assert rows_of(ledger) <= MAX_ROWS
    assert max(len(ledger.health), len(ledger.died_at_ms)) <= MAX_TRACKED + 1
    assert not ledger.is_complete
    assert ledger.live_counts()["killer 5"].kills == 2, "those who are known go on counting"


def test_rows_of_many_rounds_are_bounded() -> None:
    ledger, sides = live_ledger(), (listed(128), listed(256)[128:])
    for number in range(1, 500):
        ledger.apply(ev.RoundStarted(number, number, *sides, Side.CT))
        ledger.apply(ev.PlayerGone(number, f"leaver {number}"))
        worth = dict.fromkeys(sides[0], 800)
        ledger.apply(ev.EconomyCounted(number, number, worth, worth, worth, has_money_lines=True))
    assert rows_of(ledger) <= MAX_ROWS
    assert len(ledger.rounds) < MAX_ROWS // 256
    assert not ledger.is_complete


def test_six_hours_of_rounds_with_all_listed_players_are_kept() -> None:
    """180 rounds of two minutes, in which everyone hits four others, and dies with two weapons."""
    ledger, players = live_ledger(), listed(32)
    for number in range(1, 181):
        ledger.apply(ev.RoundStarted(number, number, players[:16], players[16:], Side.CT))
        worth = dict.fromkeys(players, 800)
        ledger.apply(ev.EconomyCounted(number, number, worth, worth, worth, has_money_lines=True))
        for place, player in enumerate(players):
            for step in range(16, 20):
                ledger.apply(ev.Damage(number, player, players[(place + step) % 32], "ak47", "head", 20, 80, True))
        for place, player in enumerate(players):
            ledger.apply(ev.Kill(number, player, players[(place + 16) % 32], f"weapon {place % 2}", True))
    assert not ledger.is_cut
    assert len(ledger.rounds) == 179


def test_rounds_that_only_the_statistics_of_the_game_separate_are_bounded() -> None:
    ledger = live_ledger()
    for _ in range(700):
        ledger.apply(ev.Kill(0, ANN, BEN, "ak47", True))
        ledger.apply(ev.GameCounted(0, 99_999, ()))
    assert max(ledger.torn_rounds) <= 500


def test_deathmatch_of_a_day_is_kept() -> None:
    ledger = live_ledger(has_respawns=True)
    players = listed(1_000)
    for number in range(20_000):  # all pairs of them, and more
        killer, victim = players[number % 997], players[number % 991]
        ledger.apply(ev.Kill(number, killer, victim, f"weapon {number % 17}", True))
    assert rows_of(ledger) > 16_000
    assert ledger.open_round is not None
    assert ledger.open_round.rows <= MAX_ROWS
