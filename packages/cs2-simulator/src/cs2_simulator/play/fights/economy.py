"""Manage spawns, purchases, and the money that players get after a round.

Amounts come from the game's variables. A win lowers a team's loss bonus by two steps: in a real log, a team got 2400
for a loss, then won, and got 1900 for its next loss. Each half begins at the second step (`mp_starting_losses`), so its
first loss pays 1900.
"""

from __future__ import annotations

from random import Random

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import ItemTransfer, LeftBuyzone, MoneyChange, Triggered
from cs2_simulator.agenda import Script
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.fights.arsenal import GRENADES, ITEMS, MAX_ARMOR, WEAPONS, ItemKind, pick_up_name
from cs2_simulator.play.fights.purchases import choose_strategy, price_of, shopping_list, start_pistol
from cs2_simulator.play.player import MAX_HEALTH, Player
from cs2_simulator.play.watcher import RoundEnd

MAX_LOSSES = 4
"""Number of steps by which the loss bonus can grow: 1400, then 1900, 2400, 2900 and 3400."""
_WIN_STEPS = 2

_WIN_CASH = {
    "Target_Bombed": "cash_team_terrorist_win_bomb",
    "Bomb_Defused": "cash_team_win_by_defusing_bomb",
    "Target_Saved": "cash_team_win_by_time_running_out_bomb",
    "All_Hostages_Rescued": "cash_team_win_by_hostage_rescue",
    "Hostages_Not_Rescued": "cash_team_win_by_time_running_out_hostage",
}
_ELIMINATION_CASH = "cash_team_elimination_bomb_map"
_HOSTAGE_ELIMINATION_CASH = {
    Side.CT: "cash_team_elimination_hostage_map_ct",
    Side.T: "cash_team_elimination_hostage_map_t",
}
_DEFAULT_PISTOL = {Side.CT: "mp_ct_default_secondary", Side.T: "mp_t_default_secondary"}

_FREE_HELMET = 2
_KIT_FOR_ALL = 2

_REGRET_REST = 150
"""A player whose money modulo 1000 has this value returns a new grenade and buys it again. As in a real match, this
happens about every second round."""


SELLBACK = "acquire: sellback"


class Economy:
    """The number of consecutive losses per side, and the rules for spawns and money."""

    def __init__(self) -> None:
        self._losses = {Side.CT: 0, Side.T: 0}

    def start_half(self, arena: Arena) -> None:
        """Remove all weapons, set the start money (which is different in overtime), and reset the loss streaks."""
        variables = arena.variables
        is_overtime = 0 < variables.whole("mp_maxrounds") <= arena.book.rounds_played() and arena.book.is_open
        money = variables.whole("mp_overtime_startmoney" if is_overtime else "mp_startmoney")
        losses = variables.whole("mp_starting_losses")
        self._losses = {Side.CT: losses, Side.T: losses}
        for player in (*arena.players, *arena.absent):
            player.money = money
            player.is_alive = False
            strip(player)

    def spawn(self, arena: Arena, player: Player) -> None:
        """Spawn a player for a new round. A player who survived the previous round keeps their equipment."""
        side = player.side
        if side is None:
            return
        if not player.is_alive:
            strip(player)
            log_pick_up(arena, player, "knife")
        player.is_alive = player.is_in_buy_zone = True
        player.health = MAX_HEALTH
        player.has_bomb = False
        player.blind_until_ms = 0
        player.fired = ("", 0)
        if not player.pistol and arena.variables.text(_DEFAULT_PISTOL[side]):
            player.pistol = start_pistol(player)
            log_pick_up(arena, player, player.pistol)
        armor = arena.variables.whole("mp_free_armor")
        if armor:
            player.armor = MAX_ARMOR
            player.has_helmet = player.has_helmet or armor >= _FREE_HELMET
        if side is Side.CT and arena.variables.whole("mp_defuser_allocation") >= _KIT_FOR_ALL:
            player.has_kit = True

    def assign_bomb(self, arena: Arena, rng: Random) -> None:
        carriers = [player for player in arena.everyone_on(Side.T) if player.is_alive]
        for player in arena.players:
            player.has_bomb = False
        if carriers:
            give_bomb(arena, carriers[int(rng.random() * len(carriers))])

    def buy(self, arena: Arena, rng: Random, window_ms: int) -> Script[None]:
        """Let all players buy within `window_ms`. They leave the buy zone later, during the round."""
        plans: list[tuple[int, int, Player, str]] = []
        if not arena.variables.whole("mp_maxmoney"):
            return
        for side in (Side.CT, Side.T):
            team = arena.alive_on(side)
            strategy = choose_strategy(rng, team)
            for player in team:
                at_ms = int(window_ms * (0.05 + 0.55 * rng.random()))
                for name in shopping_list(rng, player, side, strategy):
                    plans.append((min(at_ms, window_ms), len(plans), player, name))
                    at_ms += 200 + int(1000 * rng.random())
        plans.sort(key=lambda plan: plan[:2])
        passed_ms = 0
        for at_ms, _, player, name in plans:
            if at_ms > passed_ms:
                yield at_ms - passed_ms
                passed_ms = at_ms
            if player.is_alive and player in arena.players:
                purchase(arena, player, name)
                if name in GRENADES and player.money % 1000 == _REGRET_REST:
                    sell_back(arena, player, name)
                    purchase(arena, player, name)

    def pay(self, arena: Arena, end: RoundEnd) -> None:
        """Pay the money of a round: to the winners, then the bonus for a defused plant, then to the losers.

        A draw pays nothing.

        Players who have left are paid too, but not while they load the map again.
        """
        winner = end.side
        if winner is None:
            return
        loser = winner.other
        losses = min(self._losses[loser], MAX_LOSSES)
        self._losses[loser] = losses + 1
        self._losses[winner] = max(0, self._losses[winner] - _WIN_STEPS)
        variables = arena.variables
        if not variables.is_on("mp_teamcashawards"):
            return
        for player in arena.kept_on(winner):
            change_money(arena, player, variables.whole(_win_cash(arena, end, winner)))
        if end.notice == "Bomb_Defused":
            for player in arena.kept_on(loser):
                change_money(arena, player, variables.whole("cash_team_planted_bomb_but_defused"))
        bonus = variables.whole("cash_team_loser_bonus")
        bonus += losses * variables.whole("cash_team_loser_bonus_consecutive_rounds")
        for player in arena.kept_on(loser):
            if end.notice == "Target_Saved" and player.is_alive:
                continue  # a Terrorist who is still alive when the time runs out gets nothing
            change_money(arena, player, bonus)

    def pay_for_dead(self, arena: Arena) -> None:
        """Pay the CTs for each dead Terrorist, just before the next freeze time, no matter who won."""
        variables = arena.variables
        dead = sum(not player.is_alive for player in arena.players_on(Side.T))
        dead += sum(player.died_leaving for player in arena.absent if player.team == Side.T)
        for player in arena.absent:
            player.died_leaving = False
        bonus = dead * variables.whole("cash_team_per_dead_enemy")
        if bonus and variables.is_on("mp_teamcashawards"):
            for player in arena.kept_on(Side.CT):
                change_money(arena, player, bonus)

    def swap_sides(self) -> None:
        self._losses = {Side.CT: self._losses[Side.T], Side.T: self._losses[Side.CT]}

    def snapshot(self) -> dict[Side, int]:
        return dict(self._losses)

    def restore(self, snapshot: dict[Side, int]) -> None:
        self._losses = dict(snapshot)


def strip(player: Player) -> None:
    player.primary = player.pistol = ""
    player.armor = 0
    player.has_helmet = player.has_kit = player.has_bomb = player.has_taser = False
    player.grenades.clear()


def log_pick_up(arena: Arena, player: Player, name: str) -> None:
    if arena.variables.is_on("mp_logdetail_items"):
        arena.log.write(ItemTransfer(player.token, "picked up", pick_up_name(name)))


def give_bomb(arena: Arena, player: Player) -> None:
    player.has_bomb = True
    log_pick_up(arena, player, "c4")
    arena.log.write(Triggered(player.token, "Got_The_Bomb"))


def equip(player: Player, name: str) -> None:
    """Give an item to a player. It replaces an item in the same slot."""
    if name in GRENADES:
        player.grenades.append(name)
    elif name in ("vest", "vesthelm"):
        player.armor = MAX_ARMOR
        player.has_helmet = player.has_helmet or name == "vesthelm"
    elif name == "defuser":
        player.has_kit = True
    elif name == "taser":
        player.has_taser = True
    elif WEAPONS[name].kind is ItemKind.PISTOL:
        player.pistol = name
    else:
        player.primary = name


def purchase(arena: Arena, player: Player, name: str) -> None:
    """Buy an item. In the log, armor and kit are picked up before the payment, weapons after it."""
    item = ITEMS[name]
    price = price_of(player, name)
    equip(player, name)
    if not arena.variables.is_on("mp_logdetail_items"):
        change_money(arena, player, -price, item.cause)
        return
    write, token = arena.log.write, player.token
    if item.is_worn:
        write(ItemTransfer(token, "picked up", item.picked))
        change_money(arena, player, -price, item.cause)
    else:
        change_money(arena, player, -price, item.cause)
        write(ItemTransfer(token, "picked up", item.picked))
    write(ItemTransfer(token, "purchased", item.bought))


def sell_back(arena: Arena, player: Player, name: str) -> None:
    """Return a grenade that was just bought. Only the money change is logged."""
    change_money(arena, player, price_of(player, name), SELLBACK)
    player.grenades.remove(name)


def log_buyzone_exit(arena: Arena, player: Player) -> None:
    """Log the items that a player carries out of the buy zone. Two flashbangs are listed as one."""
    player.is_in_buy_zone = False
    if not arena.variables.is_on("mp_logdetail_items"):
        return
    names = [player.knife, player.pistol, "c4" if player.has_bomb else "", "taser" if player.has_taser else ""]
    names += [player.primary, *dict.fromkeys(player.grenades)]
    items = [f"weapon_{name}" for name in names if name]
    if player.has_kit:
        items.append("defuser")
    if player.armor:
        items.append(f"kevlar({player.armor})")
    if player.has_helmet:
        items.append("helmet")
    if player.has_bomb:
        items.append("C4")
    arena.log.write(LeftBuyzone(player.token, tuple(items)))


def reward_for_departure(arena: Arena, leaver: Player) -> None:
    """Pay a living enemy, as for a kill, if a player leaves the server alive.

    A real log shows this in 4 of 4 cases, even for bots. In each case only one enemy was alive, so the choice among
    several enemies is a guess.
    """
    enemies = [
        player for player in arena.players if player.is_alive and player.is_playing and player.team != leaver.team
    ]
    if arena.book.is_open and arena.variables.is_on("mp_playercashawards") and enemies and not arena.is_map_over:
        enemy = arena.rng("departure", leaver.person.player_id).choice(enemies)
        change_money(arena, enemy, arena.variables.whole("cash_player_killed_enemy_default"))


def change_money(
    arena: Arena, player: Player, change: int, cause: str | None = None, *, is_tracked: bool = True
) -> None:
    """Pay or charge a player.

    The logged change is `change`, even if the money limit reduces the effect. Without an effect, nothing is logged.
    """
    variables = arena.variables
    before = player.money
    if change > 0:
        after = max(before, min(before + change, variables.whole("mp_maxmoney")))
    else:
        after = max(before + change, 0)
    if after == before:  # no line, as in a real log for players who already have 16000
        return
    player.money = after
    if variables.is_on("mp_logmoney"):
        arena.log.write(MoneyChange(player.money_token, before, change, after, cause, is_tracked))


def _win_cash(arena: Arena, end: RoundEnd, winner: Side) -> str:
    variable = _WIN_CASH.get(end.notice)
    if variable is not None:
        return variable
    is_hostage_map = arena.map_name.rpartition("/")[2].startswith("cs_")
    return _HOSTAGE_ELIMINATION_CASH[winner] if is_hostage_map else _ELIMINATION_CASH
