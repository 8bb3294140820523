"""Life, weapons and money from round to round."""

from __future__ import annotations

from random import Random

import pytest

from matchpod.core.model import Side
from matchpod.cs2.log_lines.player_lines import Item, LeftBuyzone, MoneyChange
from matchpod.simulator.play.fights.economy import equip, leave_buyzone, purchase
from matchpod.simulator.play.player import Player
from matchpod.simulator.play.watcher import RoundEnd
from tests.unit.simulator.play.fights.battlefield import Battlefield, Fixed


def acts(field: Battlefield, player: Player) -> list[str]:
    heads = (f"{player.token.text()} ", f"{player.money_token.text()} ")
    return [text.partition("> ")[2] or text.split('" ', 1)[1] for text in field.log.texts if text.startswith(heads)]


def test_half_starts_with_start_money_and_nothing_else() -> None:
    field = Battlefield().spawn_all()
    player = field.cts[0]
    player.money, player.primary, player.grenades = 9000, "awp", ["decoy"]
    field.economy.start_half(field.arena)
    assert (player.money, player.primary, player.grenades, player.is_alive) == (800, "", [], False)


def test_overtime_has_its_own_start_money() -> None:
    field = Battlefield(settings={"mp_maxrounds": "2", "mp_overtime_startmoney": "12500"})
    field.arena.book.open(is_free_for_all=False, has_respawns=False)
    for number in (1, 2):
        field.arena.book.round_started(number, field.cts, field.ts)
        field.arena.book.decided(number, None)
    field.economy.start_half(field.arena)
    assert field.cts[0].money == 12500


def test_dead_player_picks_up_knife_and_pistol() -> None:
    field = Battlefield()
    field.economy.spawn(field.arena, field.cts[0])
    field.economy.spawn(field.arena, field.ts[0])
    assert [line.item for line in field.log.of(Item)] == ["knife", "hkp2000", "knife", "glock"]
    assert (field.cts[0].is_alive, field.cts[0].health) == (True, 100)


def test_survivor_keeps_his_weapons_in_silence() -> None:
    field = Battlefield().spawn_all()
    player = field.cts[0]
    player.primary, player.health, player.armor = "awp", 12, 40
    field.economy.spawn(field.arena, player)
    assert (player.primary, player.health, player.armor, field.log.lines) == ("awp", 100, 40, [])


def test_dead_player_loses_his_weapons() -> None:
    field = Battlefield().spawn_all()
    player = field.cts[0]
    player.primary, player.has_kit, player.is_alive = "awp", True, False
    field.economy.spawn(field.arena, player)
    assert (player.primary, player.has_kit) == ("", False)


def test_spectator_is_not_brought_to_life() -> None:
    field = Battlefield()
    player = field.add(20, "Spectator")
    field.economy.spawn(field.arena, player)
    assert not player.is_alive


def test_casual_play_gives_armour_and_kits() -> None:
    field = Battlefield(settings={"mp_free_armor": "2", "mp_defuser_allocation": "2"}).spawn_all()
    ct, t = field.cts[0], field.ts[0]
    assert (ct.armor, ct.has_helmet, ct.has_kit, t.has_kit) == (100, True, True, False)


def test_no_pistol_where_the_settings_give_none() -> None:
    field = Battlefield(settings={"mp_ct_default_secondary": ""})
    field.economy.spawn(field.arena, field.cts[0])
    assert [line.item for line in field.log.of(Item)] == ["knife"]


def test_one_terrorist_gets_the_bomb() -> None:
    field = Battlefield().spawn_all()
    field.ts[4].has_bomb = True
    field.economy.give_bomb(field.arena, Fixed(0.0))
    assert [player.has_bomb for player in field.ts] == [True, False, False, False, False]
    assert acts(field, field.ts[0])[-1].endswith('triggered "Got_The_Bomb"')


def test_no_terrorist_no_bomb() -> None:
    field = Battlefield(ts=0).spawn_all()
    field.economy.give_bomb(field.arena, Fixed(0.0))
    assert field.log.lines == []


def test_weapon_is_paid_then_picked_up_then_purchased() -> None:
    field = Battlefield().spawn_all()
    field.ts[0].money = 4850
    purchase(field.arena, field.ts[0], "awp")
    assert [text.split('<TERRORIST>" ')[1] for text in field.log.texts] == [
        "money change 4850-4750 = $100 (tracked) (purchase: weapon_awp)",
        'picked up "awp"',
        'purchased "awp"',
    ]


def test_armour_is_picked_up_before_it_is_paid() -> None:
    field = Battlefield().spawn_all()
    field.cts[0].money = 6750
    purchase(field.arena, field.cts[0], "vesthelm")
    assert [text.split('<CT>" ')[1] for text in field.log.texts] == [
        'picked up "vesthelm"',
        "money change 6750-1000 = $5750 (tracked) (purchase: item_assaultsuit)",
        'purchased "item_assaultsuit"',
    ]


def test_everybody_buys_within_the_window() -> None:
    field = Battlefield().spawn_all()
    for player in field.arena.players:
        player.money = 9000
    before_ms = field.arena.clock_ms
    field.run(field.economy.buy(field.arena, Random(1), 15_000))
    assert field.arena.clock_ms - before_ms <= 15_016
    assert all(player.primary and player.armor for player in field.arena.players)


def test_what_is_logged_changes_nothing() -> None:
    loud = Battlefield().spawn_all()
    silent = Battlefield(settings={"mp_logdetail": "0", "mp_logmoney": "0", "mp_logdetail_items": "0"}).spawn_all()
    for field in (loud, silent):
        field.run(field.economy.buy(field.arena, Random(1), 15_000))
    assert silent.log.lines == []
    assert [(p.money, p.pistol, p.grenades, p.armor) for p in loud.arena.players] == [
        (p.money, p.pistol, p.grenades, p.armor) for p in silent.arena.players
    ]


def test_who_leaves_buys_nothing_more() -> None:
    field = Battlefield().spawn_all()
    for player in field.arena.players:
        player.money = 9000
    script = field.economy.buy(field.arena, Random(1), 15_000)
    next(script)
    for player in list(field.arena.players):
        field.leave(player)
    list(script)
    assert field.log.lines == []


def test_nothing_is_bought_where_there_is_no_money() -> None:
    field = Battlefield(settings={"mp_maxmoney": "0"}).spawn_all()
    field.run(field.economy.buy(field.arena, Random(1), 15_000))
    assert field.log.lines == []


def test_losses_in_a_row_pay_as_in_the_real_match() -> None:
    field = Battlefield()
    paid = []
    for winner in "CTCCCTCCCCCC":
        for player in field.arena.players:
            player.money = 0
        side = Side.CT if winner == "C" else Side.T
        field.economy.pay(field.arena, RoundEnd(side, "CTs_Win" if side is Side.CT else "Terrorists_Win"))
        paid.append(field.ts[0].money)
    assert paid == [1900, 3250, 1400, 1900, 2400, 3250, 1900, 2400, 2900, 3400, 3400, 3400]


@pytest.mark.parametrize(
    ("side", "notice", "won", "lost"),
    [
        (Side.T, "Target_Bombed", 3500, 1900),
        (Side.CT, "Bomb_Defused", 3500, 600 + 1900),
        (Side.CT, "Target_Saved", 3250, 1900),
        (Side.CT, "All_Hostages_Rescued", 2900, 1900),
        (Side.T, "Hostages_Not_Rescued", 3250, 1900),
    ],
)
def test_round_pays_by_its_end(side: Side, notice: str, won: int, lost: int) -> None:
    field = Battlefield()
    field.economy.pay(field.arena, RoundEnd(side, notice))
    assert field.arena.on(side)[0].money == 800 + won
    assert field.arena.on(side.other)[0].money == 800 + lost


def test_winners_are_paid_before_losers_in_order_of_their_numbers() -> None:
    field = Battlefield()
    field.economy.pay(field.arena, RoundEnd(Side.T, "Terrorists_Win"))
    numbers = [line.player.user_id - 1 for line in field.log.of(MoneyChange)]
    assert numbers == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]


def test_terrorist_who_lets_time_run_out_and_lives_gets_nothing() -> None:
    field = Battlefield().spawn_all()
    field.ts[0].is_alive = False
    field.economy.pay(field.arena, RoundEnd(Side.CT, "Target_Saved"))
    assert [player.money for player in field.ts] == [2700, 800, 800, 800, 800]


def test_draw_pays_nobody() -> None:
    field = Battlefield()
    field.economy.pay(field.arena, RoundEnd(None, "Round_Draw"))
    assert field.log.lines == []


def test_elimination_on_a_hostage_map_has_its_own_sum() -> None:
    field = Battlefield()
    field.arena.map_name = "workshop/125444404/cs_office"
    field.economy.pay(field.arena, RoundEnd(Side.CT, "CTs_Win"))
    assert field.cts[0].money == 3800


def test_cts_are_paid_for_the_dead_of_the_other_side() -> None:
    field = Battlefield().spawn_all()
    for player in field.ts[:3]:
        player.is_alive = False
    field.economy.pay_for_dead(field.arena)
    assert [line.change for line in field.log.of(MoneyChange)] == [150] * 5


def test_no_team_money_where_it_is_off() -> None:
    field = Battlefield(settings={"mp_teamcashawards": "0"})
    field.economy.pay(field.arena, RoundEnd(Side.CT, "CTs_Win"))
    field.economy.pay_for_dead(field.arena)
    assert field.log.lines == []


def test_streaks_change_sides_and_come_back() -> None:
    field = Battlefield()
    economy = field.economy
    for _ in range(3):
        economy.pay(field.arena, RoundEnd(Side.CT, "CTs_Win"))
    kept = economy.snapshot()
    economy.swap_sides()
    assert economy.snapshot() != kept
    economy.restore(kept)
    assert economy.snapshot() == kept


def test_only_a_snapshot_is_restored() -> None:
    with pytest.raises(TypeError):
        Battlefield().economy.restore("nonsense")


def test_left_buyzone_lists_what_is_carried_as_the_real_log_does() -> None:
    field = Battlefield().spawn_all()
    player = field.ts[0]
    for name in ("awp", "taser", "vesthelm", "flashbang", "flashbang", "smokegrenade", "defuser"):
        equip(player, name)
    player.has_bomb = True
    leave_buyzone(field.arena, player)
    (line,) = field.log.of(LeftBuyzone)
    assert line.items == (
        *("weapon_knife_t", "weapon_glock", "weapon_c4", "weapon_taser", "weapon_awp", "weapon_flashbang"),
        *("weapon_smokegrenade", "defuser", "kevlar(100)", "helmet", "C4"),
    )


def test_left_buyzone_is_silent_where_items_are_not_logged() -> None:
    field = Battlefield(settings={"mp_logdetail_items": "0"}).spawn_all()
    leave_buyzone(field.arena, field.cts[0])
    assert field.log.lines == []
