"""Test spawns, purchases and money."""

from __future__ import annotations

from random import Random

import pytest

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import ItemTransfer, MoneyChange
from cs2_simulator.play.fights.economy import purchase, sell_back
from cs2_simulator.play.player import Player
from cs2_simulator.play.watcher import RoundEnd
from simulator_tests.play.fights.battlefield import Battlefield


def texts_of(field: Battlefield, player: Player) -> list[str]:
    prefixes = (f"{player.token.text()} ", f"{player.money_token.text()} ")
    return [text.partition("> ")[2] or text.split('" ', 1)[1] for text in field.log.texts if text.startswith(prefixes)]


def test_half_starts_with_start_money_and_no_weapons(field: Battlefield) -> None:
    player = field.cts[0]
    player.money, player.primary, player.grenades = 9000, "awp", ["decoy"]
    field.economy.start_half(field.arena)
    assert (player.money, player.primary, player.grenades, player.is_alive) == (800, "", [], False)


def test_dead_player_spawns_with_knife_and_pistol() -> None:
    field = Battlefield()
    field.economy.spawn(field.arena, field.cts[0])
    field.economy.spawn(field.arena, field.ts[0])
    assert [line.item for line in field.log.lines_of(ItemTransfer)] == ["knife", "hkp2000", "knife", "glock"]
    assert (field.cts[0].is_alive, field.cts[0].health) == (True, 100)


def test_spectator_does_not_spawn() -> None:
    field = Battlefield()
    player = field.add(20, "Spectator")
    field.economy.spawn(field.arena, player)
    assert not player.is_alive


PAID_AWP = "money change 6750-4750 = $2000 (tracked) (purchase: weapon_awp)"
PAID_ARMOR = "money change 6750-1000 = $5750 (tracked) (purchase: item_assaultsuit)"


@pytest.mark.parametrize(
    ("item", "logged"),
    [
        ("awp", [PAID_AWP, 'picked up "awp"', 'purchased "awp"']),
        ("vesthelm", ['picked up "vesthelm"', PAID_ARMOR, 'purchased "item_assaultsuit"']),
    ],
)
def test_weapon_is_paid_for_before_it_is_picked_up_and_armor_after(
    field: Battlefield, item: str, logged: list[str]
) -> None:
    field.ts[0].money = 6750
    purchase(field.arena, field.ts[0], item)
    assert [text.split('<TERRORIST>" ')[1] for text in field.log.texts] == logged


def test_returned_grenade_is_logged_as_money_only(field: Battlefield) -> None:
    player = field.ts[0]
    player.money = 700
    purchase(field.arena, player, "hegrenade")
    sell_back(field.arena, player, "hegrenade")
    assert texts_of(field, player)[-1].endswith("money change 400+300 = $700 (tracked) (acquire: sellback)")
    assert (player.money, player.grenades) == (700, [])


def test_player_who_left_buys_nothing(field: Battlefield) -> None:
    for player in field.arena.players:
        player.money = 9000
    script = field.economy.buy(field.arena, Random(1), 15_000)
    next(script)
    for player in list(field.arena.players):
        field.leave(player)
    list(script)
    assert field.log.lines == []


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
def test_payment_depends_on_the_round_end(side: Side, notice: str, won: int, lost: int) -> None:
    field = Battlefield()
    field.economy.pay(field.arena, RoundEnd(side, notice))
    assert field.arena.players_on(side)[0].money == 800 + won
    assert field.arena.players_on(side.other)[0].money == 800 + lost


def test_winners_are_paid_before_losers_ordered_by_user_id() -> None:
    field = Battlefield()
    field.economy.pay(field.arena, RoundEnd(Side.T, "Terrorists_Win"))
    numbers = [line.player.user_id - 1 for line in field.log.lines_of(MoneyChange)]
    assert numbers == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]


def test_cts_are_paid_for_dead_terrorists(field: Battlefield) -> None:
    for player in field.ts[:3]:
        player.is_alive = False
    field.economy.pay_for_dead(field.arena)
    assert [line.change for line in field.log.lines_of(MoneyChange)] == [150] * 5


def test_loss_streaks_are_swapped_and_restored() -> None:
    field = Battlefield()
    economy = field.economy
    for _ in range(3):
        economy.pay(field.arena, RoundEnd(Side.CT, "CTs_Win"))
    snapshot = economy.snapshot()
    economy.swap_sides()
    assert economy.snapshot() != snapshot
    economy.restore(snapshot)
    assert economy.snapshot() == snapshot


def absent_t(field: Battlefield) -> Player:
    player = field.ts[0]
    field.leave(player)
    field.arena.absent.append(player)
    player.forget_id()
    return player


def test_player_who_left_gets_the_money_of_the_team_with_a_pending_id() -> None:
    field = Battlefield(cts=1, ts=2)
    player = absent_t(field)
    field.economy.pay(field.arena, RoundEnd(Side.CT, "CTs_Win"))
    assert player.money == 2700
    assert '"player 1<2><STEAM_ID_PENDING><TERRORIST>" money change 800+1900 = $2700 (tracked)' in field.log.texts
