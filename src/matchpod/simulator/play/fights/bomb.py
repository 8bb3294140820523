"""What becomes of the bomb in a round? Carried, dropped, planted, defused or blown up, each with its lines and money.

CS2 logs no `Defused_The_Bomb`: the defuser's money in the tick of the decision is all there is.
"""

from __future__ import annotations

from matchpod.core.model import Side
from matchpod.cs2.log_lines.player_lines import Triggered
from matchpod.simulator.agenda import Script
from matchpod.simulator.play.fights.combat import Battle
from matchpod.simulator.play.fights.purse import change_money
from matchpod.simulator.play.player import Player

PLANT_MS = 3200
DEFUSE_MS = 10_000
DEFUSE_WITH_KIT_MS = 5_000
_ABORTED_DEFUSE = 0.2


class Bomb:
    """The bomb of one round. `handler` is whoever plants or defuses it just now, for the story's good."""

    def __init__(self, battle: Battle) -> None:
        self._battle = battle
        self._arena = battle.arena
        self.timer_ms = int(battle.arena.variables.number("mp_c4timer") * 1000)
        self.handler: Player | None = None
        self.planter: Player | None = None
        self.defuser: Player | None = None
        self.explodes_at_ms: int | None = None
        """None until it is planted."""

    @property
    def is_planted(self) -> bool:
        """True from the plant to the end of the round."""
        return self.explodes_at_ms is not None

    def change_hands(self) -> None:
        """A living Terrorist takes the bomb from the ground, if it lies there."""
        ts = self._arena.alive(Side.T)
        if self._battle.is_bomb_loose and ts and not self.is_planted:
            self._battle.pick_up_bomb(ts[int(self._battle.dice.random() * len(ts))])

    def plant(self, plant_ms: int) -> Script[None]:
        """Plant it, whoever still can; it stays unplanted when no Terrorist lives."""
        arena, dice = self._arena, self._battle.dice
        site = "A" if dice.random() < 0.5 else "B"
        while ts := arena.alive(Side.T):
            planter = next((player for player in ts if player.has_bomb), None)
            if planter is None:
                planter = ts[int(dice.random() * len(ts))]
                self._battle.pick_up_bomb(planter)
            self.handler = planter
            arena.log.write(Triggered(planter.token, "Bomb_Begin_Plant", site))
            yield plant_ms
            self.handler = None
            if planter.is_alive:
                self._is_set(planter, site)
                return

    def defuse(self, *, may_abort: bool) -> Script[None]:
        """Defuse it, whoever still can."""
        arena, dice = self._arena, self._battle.dice
        if may_abort and dice.random() < _ABORTED_DEFUSE and (brave := self._defuser()):
            self._begin_defuse(brave)
            yield 400 + int(dice.random() * 1800)
        while player := self._defuser():
            self.handler = player
            self._begin_defuse(player)
            yield DEFUSE_WITH_KIT_MS if player.has_kit else DEFUSE_MS
            self.handler = None
            if player.is_alive:
                change_money(arena, player, arena.variables.whole("cash_player_bomb_defused"))
                arena.book.defused(player)
                self.defuser = player
                return

    def defuse_time_ms(self) -> int:
        """How long whoever is left at the end may need."""
        cts = self._arena.alive(Side.CT)
        return DEFUSE_WITH_KIT_MS if all(player.has_kit for player in cts) else DEFUSE_MS

    def blow_up(self) -> None:
        """The bomb goes off: who stands near has no health left. Deaths are told after the decision, as in the game."""
        dice = self._battle.dice
        for player in self._arena.players:
            if player.is_alive and dice.random() < (0.15 if player.team == Side.CT else 0.06):
                player.health = 0

    def _defuser(self) -> Player | None:
        cts = self._arena.alive(Side.CT)
        return next((player for player in cts if player.has_kit), cts[0] if cts else None)

    def _begin_defuse(self, player: Player) -> None:
        word = "With" if player.has_kit else "Without"
        self._arena.log.write(Triggered(player.token, f"Begin_Bomb_Defuse_{word}_Kit"))

    def _is_set(self, planter: Player, site: str) -> None:
        arena = self._arena
        planter.has_bomb = False
        change_money(arena, planter, arena.variables.whole("cash_player_bomb_planted"))
        arena.log.write(Triggered(planter.token, "Planted_The_Bomb", site))
        arena.book.planted(planter)
        self.planter = planter
        self.explodes_at_ms = arena.clock_ms + self.timer_ms
