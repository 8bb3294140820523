"""What becomes of the hostages? One is fetched and carried home, with the lines and money that go with it."""

from __future__ import annotations

from matchpod.core.model import Side
from matchpod.cs2.log_lines.player_lines import HostageMoved, Triggered
from matchpod.simulator.agenda import Script
from matchpod.simulator.play.fights.combat import Battle
from matchpod.simulator.play.fights.purse import change_money
from matchpod.simulator.play.player import Player

_WAY_HOME_MS = (12_000, 24_000)


class Hostages:
    """The hostages of one round. `carrier` is whoever brings one home, for the story's good."""

    def __init__(self, battle: Battle) -> None:
        self._battle = battle
        self.carrier: Player | None = None
        self.rescuer: Player | None = None

    def rescue(self, until_ms: int) -> Script[None]:
        """Fetch one and bring it home by that time, whoever of the CTs still can."""
        arena, dice = self._battle.arena, self._battle.dice
        while cts := arena.alive(Side.CT):
            player = cts[int(dice.random() * len(cts))]
            self.carrier = player
            self._battle.terrain.put(dice, player)
            arena.log.write(Triggered(player.token, "Touched_A_Hostage"))
            arena.log.write(HostageMoved(player.token, player.position, is_pick_up=True))
            change_money(arena, player, arena.variables.whole("cash_player_interact_with_hostage"))
            soonest, latest = _WAY_HOME_MS
            way_ms = soonest + int(dice.random() * (latest - soonest))
            yield max(0, min(way_ms, until_ms - arena.clock_ms))
            self.carrier = None
            if player.is_alive:
                self._bring_home(player)
                return

    def _bring_home(self, player: Player) -> None:
        arena = self._battle.arena
        self._battle.terrain.put(self._battle.dice, player)
        arena.log.write(HostageMoved(player.token, player.position, is_pick_up=False))
        arena.log.write(Triggered(player.token, "Rescued_A_Hostage"))
        change_money(arena, player, arena.variables.whole("cash_player_rescued_hostage"))
        self.rescuer = player
