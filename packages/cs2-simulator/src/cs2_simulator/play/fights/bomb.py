"""Play the bomb of a round: pick-up, plant, defuse or explosion, with log lines and money.

CS2 does not log `Defused_The_Bomb`. The only trace of a defuse is the defuser's money in the tick in which the round
ends.
"""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import Triggered
from cs2_simulator.agenda import Script
from cs2_simulator.play.fights.combat import Battle
from cs2_simulator.play.fights.economy import change_money
from cs2_simulator.play.player import Player

PLANT_MS = 3200
DEFUSE_MS = 10_000
DEFUSE_WITH_KIT_MS = 5_000
_ABORTED_DEFUSE = 0.2


class Bomb:
    """The bomb of one round. `handler` is the player who is planting or defusing it, whom fights must not kill."""

    def __init__(self, battle: Battle) -> None:
        self._battle = battle
        self._arena = battle.arena
        self.timer_ms = int(battle.arena.variables.number("mp_c4timer") * 1000)
        self.handler: Player | None = None
        self.planter: Player | None = None
        self.defuser: Player | None = None
        self.explodes_at_ms: int | None = None
        """None until the bomb is planted."""

    @property
    def is_planted(self) -> bool:
        """True from the plant to the end of the round."""
        return self.explodes_at_ms is not None

    def pick_up(self) -> None:
        ts = self._arena.alive_on(Side.T)
        if self._battle.is_bomb_dropped and ts and not self.is_planted:
            self._battle.pick_up_bomb(ts[int(self._battle.rng.random() * len(ts))])

    def plant(self, plant_ms: int) -> Script[None]:
        """Let a living Terrorist plant the bomb.

        If the planter dies, another Terrorist tries. If none is left, the bomb is not planted.
        """
        arena, rng = self._arena, self._battle.rng
        site = "A" if rng.random() < 0.5 else "B"
        while ts := arena.alive_on(Side.T):
            planter = next((player for player in ts if player.has_bomb), None)
            if planter is None:
                planter = ts[int(rng.random() * len(ts))]
                self._battle.pick_up_bomb(planter)
            self.handler = planter
            arena.log.write(Triggered(planter.token, "Bomb_Begin_Plant", site))
            yield plant_ms
            self.handler = None
            if planter.is_alive:
                self._finish_plant(planter, site)
                return

    def defuse(self, *, may_abort: bool) -> Script[None]:
        """Let a living CT defuse the bomb. If the defuser dies, another CT tries."""
        arena, rng = self._arena, self._battle.rng
        if may_abort and rng.random() < _ABORTED_DEFUSE and (aborter := self._choose_defuser()):
            self._begin_defuse(aborter)
            yield 400 + int(rng.random() * 1800)
        while player := self._choose_defuser():
            self.handler = player
            self._begin_defuse(player)
            yield DEFUSE_WITH_KIT_MS if player.has_kit else DEFUSE_MS
            self.handler = None
            if player.is_alive:
                change_money(arena, player, arena.variables.whole("cash_player_bomb_defused"))
                arena.book.bomb_defused(player)
                self.defuser = player
                return

    def defuse_time_ms(self) -> int:
        """Return the maximum duration of a defuse: that without a kit, unless all living CTs have a kit."""
        cts = self._arena.alive_on(Side.CT)
        return DEFUSE_WITH_KIT_MS if all(player.has_kit for player in cts) else DEFUSE_MS

    def explode(self) -> None:
        """Set the health of nearby players to 0. As in the game, their deaths are logged after the round end."""
        rng = self._battle.rng
        for player in self._arena.players:
            if player.is_alive and rng.random() < (0.15 if player.team == Side.CT else 0.06):
                player.health = 0

    def _choose_defuser(self) -> Player | None:
        cts = self._arena.alive_on(Side.CT)
        return next((player for player in cts if player.has_kit), cts[0] if cts else None)

    def _begin_defuse(self, player: Player) -> None:
        kit = "With_Kit" if player.has_kit else "Without_Kit"
        self._arena.log.write(Triggered(player.token, f"Begin_Bomb_Defuse_{kit}"))

    def _finish_plant(self, planter: Player, site: str) -> None:
        arena = self._arena
        planter.has_bomb = False
        change_money(arena, planter, arena.variables.whole("cash_player_bomb_planted"))
        arena.log.write(Triggered(planter.token, "Planted_The_Bomb", site))
        arena.book.bomb_planted(planter)
        self.planter = planter
        self.explodes_at_ms = arena.clock_ms + self.timer_ms
