"""Play a hostage rescue in a round, with its log lines and money."""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import HostageMoved, Triggered
from cs2_simulator.agenda import Script
from cs2_simulator.play.fights.combat import Battle
from cs2_simulator.play.fights.economy import change_money
from cs2_simulator.play.player import Player

_CARRY_MS = (12_000, 24_000)


class Hostages:
    """The hostages of one round. `carrier` is the player who is carrying a hostage, whom fights must not kill."""

    def __init__(self, battle: Battle) -> None:
        self._battle = battle
        self.carrier: Player | None = None
        self.rescuer: Player | None = None

    def rescue(self, until_ms: int) -> Script[None]:
        """Let a living CT pick up a hostage and rescue it by `until_ms`. If the CT dies, another CT tries."""
        arena, rng = self._battle.arena, self._battle.rng
        while cts := arena.alive_on(Side.CT):
            player = cts[int(rng.random() * len(cts))]
            self.carrier = player
            self._battle.terrain.place(rng, player)
            arena.log.write(Triggered(player.token, "Touched_A_Hostage"))
            arena.log.write(HostageMoved(player.token, player.position, is_pick_up=True))
            change_money(arena, player, arena.variables.whole("cash_player_interact_with_hostage"))
            soonest, latest = _CARRY_MS
            carry_ms = soonest + int(rng.random() * (latest - soonest))
            yield max(0, min(carry_ms, until_ms - arena.clock_ms))
            self.carrier = None
            if player.is_alive:
                self._finish_rescue(player)
                return

    def _finish_rescue(self, player: Player) -> None:
        arena = self._battle.arena
        self._battle.terrain.place(self._battle.rng, player)
        arena.log.write(HostageMoved(player.token, player.position, is_pick_up=False))
        arena.log.write(Triggered(player.token, "Rescued_A_Hostage"))
        change_money(arena, player, arena.variables.whole("cash_player_rescued_hostage"))
        self.rescuer = player
