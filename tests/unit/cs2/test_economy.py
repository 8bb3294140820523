"""Money and equipment of a round, read from the log."""

from __future__ import annotations

from typing import Self

from matchpod.core import events as ev
from matchpod.cs2.economy import MAX_PLAYERS
from protocol_tests.log_lines.samples import STATS_ROW
from tests.unit.cs2.server_log import ServerLog, id64

ANN, BEN, CID = id64(1), id64(2), id64(3)


class EconomyLog(ServerLog):
    def money(self, account: int, before: int, change: int, cause: str = "") -> Self:
        tail = f" ({cause})" if cause else ""
        return self.write(
            f"{self.token(account)} money change {before}{change:+d} = ${before + change} (tracked){tail}"
        )

    def buy(self, account: int, before: int, price: int) -> Self:
        return self.money(account, before, -price, "purchase: weapon_ak47")

    def exit(self, account: int, *items: str) -> Self:
        return self.write(f"{self.token(account)} left buyzone with [ {''.join(f'{item} ' for item in items)}]")

    def block(self, number: int, account: int, money: int) -> Self:
        row = STATS_ROW.replace("101,", f"{account},").replace("8350", f"{money}")
        begin = ("JSON_BEGIN{", '"name": "round_stats",', f'"round_number" : "{number}",', '"players" : {')
        return self.write(*begin, f'"player_0" : "{row}"', "}}JSON_END")

    def totals(self, number: int) -> tuple[dict[str, int], dict[str, int], dict[str, int], bool]:
        """Return money, spent, equipment, and whether money is logged, of all events of a round together."""
        money: dict[str, int] = {}
        spent: dict[str, int] = {}
        equipment: dict[str, int] = {}
        found = [event for event in self.all(ev.EconomyCounted) if event.round_number == number]
        for event in found:
            money |= event.money
            spent |= event.spent
            equipment |= event.equipment
        return money, spent, equipment, any(event.has_money_lines for event in found)


def frozen() -> EconomyLog:
    return EconomyLog().go_live().round_end("CT").freeze()


def test_first_round_has_the_economy_of_the_freeze_time_before_the_map_is_live() -> None:
    log = EconomyLog().load().join(1, 2, 3, 4).match_start(-1).write("Starting Freeze period")
    log.block(1, 1, 800).write('World triggered "Match_Start" on "de_nuke"').status(0)
    log.buy(2, 800, 700).round_start()
    assert log.totals(1) == ({ANN: 800, BEN: 800}, {BEN: 700}, {}, True)


def test_money_is_that_of_the_block_or_before_the_first_change() -> None:
    log = frozen().block(2, 1, 4100).buy(1, 4100, 2700).buy(2, 3000, 300).buy(2, 2700, 200).round_start()
    money, spent, _, has_money_lines = log.totals(2)
    assert money == {ANN: 4100, BEN: 3000}
    assert spent == {ANN: 2700, BEN: 500}
    assert has_money_lines


def test_items_sold_back_are_not_spent_and_rewards_are_not_earned_back() -> None:
    log = frozen().buy(1, 4000, 2700).money(1, 1300, 2700, "acquire: sellback").buy(1, 4000, 300)
    log.round_start().money(1, 3700, 300).money(1, 4000, -300).round_end("CT")
    assert log.totals(2)[1] == {ANN: 300}


def test_purchases_after_freeze_time_and_after_the_decision_count_for_the_round() -> None:
    log = frozen().buy(1, 4000, 300).round_start().buy(1, 3700, 200).round_end("CT")
    assert log.totals(2)[1] == {ANN: 500}
    log.buy(1, 3500, 50).freeze().round_start()
    assert log.totals(2)[1] == {ANN: 550}
    assert log.totals(3)[1] == {}


def test_equipment_is_valued_at_the_first_exit_in_play() -> None:
    log = frozen().exit(1, "weapon_knife", "weapon_awp")  # teams may walk around in freeze time
    log.round_start()
    log.exit(1, "weapon_knife", "weapon_glock", "kevlar(100)").exit(1, "weapon_knife", "weapon_ak47").exit(2)
    log.exit(3, "weapon_raygun").exit(3, "weapon_glock")
    assert log.totals(2)[2] == {}
    log.round_end("CT")
    assert log.totals(2)[2] == {ANN: 850}
    log.exit(2, "weapon_glock").freeze()
    assert log.totals(2)[2] == {ANN: 850}


def test_equipment_is_known_during_the_round_once_all_players_have_left_the_buy_zone() -> None:
    log = frozen().round_start()
    log.exit(1, "weapon_glock").exit(2, "weapon_glock").exit(3, "weapon_ak47").exit(4, "weapon_raygun")
    assert log.totals(2)[2] == {ANN: 200, BEN: 200, CID: 2700}


def test_without_money_lines_nothing_is_known_about_spending() -> None:
    log = frozen().round_start().round_end("CT").freeze()
    assert log.totals(2) == ({}, {}, {}, False)


def test_payment_at_the_end_of_a_round_shows_that_money_is_logged() -> None:
    log = frozen().round_start().round_end("CT").money(3, 1000, 1400).freeze()
    assert log.totals(2) == ({CID: 1000}, {}, {}, True)


def test_nothing_is_counted_between_lost_lines_and_the_next_freeze_time() -> None:
    log = frozen()
    log.interpreter.economy.forget()
    log.block(2, 1, 4100).buy(1, 4100, 2700).round_start().exit(1, "weapon_ak47").round_end("CT")
    assert log.totals(2) == ({}, {}, {}, False)
    log.freeze().buy(1, 5000, 300).round_start()
    assert log.totals(3) == ({ANN: 5000}, {ANN: 300}, {}, True)


def test_number_of_players_is_limited() -> None:
    log = frozen()
    for account in range(MAX_PLAYERS + 10):
        log.write(f'"X<1><[U:1:{account + 10}]><CT>" money change 800-300 = $500 (tracked) (purchase: weapon_p250)')
    log.round_start()
    for account in range(MAX_PLAYERS + 10):
        log.write(f'"X<1><[U:1:{account + 10}]><CT>" left buyzone with [ weapon_glock ]')
    log.round_end("CT")
    money, spent, equipment, _ = log.totals(2)
    assert len(money) == len(spent) == len(equipment) == MAX_PLAYERS
