"""The rounds of a map as callers see them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.model import CvarSetting, GameSettings, MatchType
from matchpod.core.stats.buy_types import BuyType
from matchpod.core.views.result_shapes import Score
from matchpod.core.views.round_shapes import RoundEntry
from matchpod.core.views.rounds import build_rounds
from tests.unit.core.match_driver import ANN, BEN, EVE, MatchDriver, deathmatch, duel, live_duel, open_match

BOT = "BOT:Kao"


class RoundDriver:
    """A duel on a live map; each event is a second after the previous one."""

    def __init__(self, settings: GameSettings | None = None) -> None:
        self.driver = live_duel() if settings is None else MatchDriver(settings)
        if settings is not None:
            self.driver.join(ANN, BEN)
            self.driver.live()

    def add(self, kind: Any, *fields: object, **more: object) -> RoundDriver:
        self.driver.apply(kind(self.driver.now_ms, *fields, **more))
        self.driver.now_ms += 1000
        return self

    def start(self, number: int = 1, team2: tuple[str, ...] = (BEN,)) -> RoundDriver:
        return self.add(ev.RoundStarted, number, (ANN,), team2, Side.T)

    def hit(self, attacker: str, victim: str, damage: int, health: int, weapon: str = "ak47") -> RoundDriver:
        return self.add(ev.Damage, attacker, victim, weapon, "chest", damage, health, is_enemy=True)

    def kill(self, killer: str, victim: str) -> RoundDriver:
        return self.add(ev.Kill, killer, victim, "ak47", is_enemy=True, is_headshot=True)

    def decide(self, number: int = 1, score: tuple[int, int] = (1, 0)) -> RoundDriver:
        return self.add(ev.RoundDecided, number, Team.TEAM1, Side.T, RoundEndReason.TERRORISTS_WIN, *score)

    def rounds(self) -> tuple[RoundEntry, ...]:
        return build_rounds(self.driver.match, self.driver.match.current_map)


def test_round_has_its_winner_score_and_times() -> None:
    (one,) = RoundDriver().start().decide().rounds()
    assert (one.number, one.complete) == (1, True)
    assert (one.winner, one.winner_side, one.reason) == (Team.TEAM1, Side.T, RoundEndReason.TERRORISTS_WIN)
    assert one.score == Score(1, 0)
    assert (one.started_at, one.ended_at, one.duration) == ("2023-11-14T22:13:20.000Z", "2023-11-14T22:13:21.000Z", 1.0)
    assert (one.team1.side, one.team2.side) == (Side.T, Side.CT)


def test_current_round_has_no_end() -> None:
    (one,) = RoundDriver().start().kill(ANN, BEN).rounds()
    assert (one.ended_at, one.duration, one.winner, one.reason, one.score) == (None, None, None, None, None)
    assert (one.team1.survivors, one.team2.survivors) == (1, 0)


def test_players_have_the_numbers_of_the_round() -> None:
    driver = RoundDriver().start().hit(ANN, BEN, 30, 70, "hegrenade").hit(ANN, BEN, 90, 0).kill(ANN, BEN).decide()
    (one,) = driver.rounds()
    ann, ben = one.players
    assert (ann.steam_id, ann.team, ann.survived) == (ANN, Team.TEAM1, True)
    assert (ann.kills, ann.headshots, ann.damage_dealt, ann.utility_damage) == (1, 1, 100, 30)
    assert (ben.steam_id, ben.team, ben.deaths, ben.survived) == (BEN, Team.TEAM2, 1, False)
    assert (one.team1.kills, one.team1.damage_dealt) == (1, 100)
    assert (one.team2.kills, one.team2.damage_dealt) == (0, 0)


def test_first_kill_and_bomb_name_their_players() -> None:
    driver = RoundDriver().start().add(ev.BombPlanted, ANN, "B").kill(ANN, BEN).add(ev.BombDefused, BEN).decide()
    (one,) = driver.rounds()
    assert one.first_kill is not None
    assert (one.first_kill.killer.steam_id, one.first_kill.victim.steam_id) == (ANN, BEN)
    assert (one.first_kill.weapon, one.first_kill.timestamp) == ("ak47", "2023-11-14T22:13:22.000Z")
    assert one.plant is not None
    assert (one.plant.player.name, one.plant.site) == ("name of 1", "B")
    assert one.defuse is not None
    assert one.defuse.player is not None
    assert one.defuse.player.team is Team.TEAM2


def test_damage_pairs_combine_bots_and_unlisted_players() -> None:
    driver = RoundDriver().start(team2=(BEN, BOT)).hit(ANN, BEN, 30, 70).hit(ANN, BEN, 20, 50).hit(BEN, ANN, 10, 90)
    driver.hit(ANN, BOT, 40, 60).hit(ANN, EVE, 5, 95).hit(BOT, ANN, 15, 75)
    (one,) = driver.rounds()
    pairs = {(pair.attacker_steam_id, pair.victim_steam_id): pair.damage for pair in one.damage_pairs}
    assert pairs == {(ANN, BEN): 50, (ANN, None): 45, (BEN, ANN): 10}
    assert {player.steam_id for player in one.players} == {ANN, BEN}
    assert (one.team2.survivors, one.team2.damage_dealt) == (2, 25)


def test_economy_is_per_player_and_team() -> None:
    driver = RoundDriver().start(team2=(BEN, BOT))
    driver.add(ev.EconomyCounted, 1, {ANN: 800}, {ANN: 300})
    driver.add(ev.EconomyCounted, 1, {ANN: 800, BEN: 800}, {ANN: 650}, {ANN: 850, BEN: 200}, has_money_lines=True)
    (one,) = driver.rounds()
    players = {player.steam_id: (player.money, player.spent, player.equipment_value) for player in one.players}
    assert players == {ANN: (800, 650, 850), BEN: (800, 0, 200)}
    assert (one.team1.money, one.team1.spent, one.team1.equipment_value) == (800, 650, 850)
    assert one.team1.buy_type is BuyType.PISTOL
    assert (one.team2.money, one.team2.spent) == (None, 0), "the money of the bot is unknown"
    assert (one.team2.equipment_value, one.team2.buy_type) == (None, None)


def economy(driver: RoundDriver, number: int, side: Side, **bought: int) -> RoundDriver:
    """Start a round of Ann and Eve against Ben: Ann leaves the buy zone with what she has bought, Eve never does."""
    driver.add(ev.RoundStarted, number, (ANN, EVE), (BEN,), side)
    spent, value = {ANN: bought.get("ann", 0), EVE: bought.get("eve", 0)}, {ANN: bought.get("ann", 0) + 200}
    return driver.add(ev.EconomyCounted, number, {ANN: 1900, EVE: 1900}, spent, value, has_money_lines=True)


def test_purchases_decide_the_buy_type_if_nobody_has_kept_items() -> None:
    driver = economy(RoundDriver(), 1, Side.T, ann=1800, eve=1700)
    economy(driver.decide(), 2, Side.T, ann=1800, eve=1700)  # both survived, perhaps with more
    economy(driver.kill(BEN, ANN).decide(2, (2, 0)), 3, Side.T, ann=1800, eve=1700)
    economy(driver.kill(BEN, ANN).kill(BEN, EVE).decide(3, (3, 0)), 4, Side.T, ann=1800, eve=1700)
    economy(driver.decide(4, (4, 0)), 5, Side.CT, ann=1800, eve=1700)
    types = [one.team1.buy_type for one in driver.rounds()]
    assert types == [BuyType.ECO, None, None, BuyType.ECO, BuyType.ECO]
    assert all(one.team2.buy_type is None for one in driver.rounds())


@pytest.mark.parametrize(
    "settings",
    [open_match(), msgspec.structs.replace(duel(), custom_cvars=(CvarSetting("mp_free_armor", "1"),))],
    ids=["casual", "variable"],
)
def test_purchases_do_not_decide_the_buy_type_if_items_may_be_free(settings: GameSettings) -> None:
    (one,) = economy(RoundDriver(settings), 1, Side.T, ann=1800, eve=1700).rounds()
    assert one.team1.buy_type is None


def test_items_are_kept_from_a_round_that_is_missing() -> None:
    driver = economy(RoundDriver(), 1, Side.T).kill(BEN, ANN).kill(BEN, EVE).decide()
    economy(driver, 3, Side.T, ann=1800, eve=1700)
    assert driver.rounds()[-1].team1.buy_type is None


def test_first_round_of_a_half_is_not_decided_by_purchases_that_may_be_lost() -> None:
    driver = RoundDriver().add(ev.RoundStarted, 1, (ANN, EVE), (BEN,), Side.T)
    money = {ANN: 800, EVE: 800}
    driver.add(ev.EconomyCounted, 1, money, {ANN: 650}, {ANN: 850}, has_money_lines=True).add(ev.LogGap, 100)
    (one,) = driver.decide().rounds()
    assert (one.complete, one.team1.buy_type) == (False, None)


def test_first_round_of_a_half_is_not_decided_without_money_lines() -> None:
    driver = RoundDriver().add(ev.RoundStarted, 1, (ANN, EVE), (BEN,), Side.T)
    (one,) = driver.add(ev.EconomyCounted, 1, {ANN: 800, EVE: 800}, {}, {ANN: 200}).rounds()
    assert one.team1.buy_type is None


def test_round_with_missing_lines_is_marked() -> None:
    driver = RoundDriver().start().decide().start(2).add(ev.LogGap, 100).decide(2, (2, 0)).start(3)
    assert [one.complete for one in driver.rounds()] == [True, False, True]


def test_survivors_of_a_round_without_a_start_are_unknown() -> None:
    (one,) = RoundDriver().kill(ANN, BEN).decide().rounds()
    assert (one.complete, one.started_at, one.duration) == (False, None, None)
    assert (one.team1.survivors, one.team2.survivors) == (None, None)
    assert {player.survived for player in one.players} == {None}


def test_deathmatch_has_no_rounds() -> None:
    driver = RoundDriver(deathmatch())
    driver.kill(ANN, BEN)
    assert driver.rounds() == ()
    assert driver.driver.match.settings.match_type is MatchType.DEATHMATCH
