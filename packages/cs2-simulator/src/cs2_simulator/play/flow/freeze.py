"""Begin a freeze time: log the game's statistics, spawn the players, and log the score."""

from __future__ import annotations

from random import Random
from zlib import crc32

from cs2_protocol.game import Side
from cs2_protocol.log_lines.world_lines import FreezeStarted
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.fights.economy import Economy
from cs2_simulator.play.flow.standing import Standing
from cs2_simulator.play.flow.stats_rows import stats_block
from cs2_simulator.play.last_lines import write_last_lines
from cs2_simulator.play.player import Player


def _spawn_order(player: Player) -> int:
    """Return the sort key for spawns: in a real match the order is always the same, and not by user id."""
    return crc32(player.person.player_id.encode())


class FreezeTime:
    def __init__(self, arena: Arena, standing: Standing, economy: Economy) -> None:
        self._arena = arena
        self._standing = standing
        self._economy = economy

    def begin(self, *, round_number: int = 1, is_match_start: bool = False, bomb_rng: Random | None = None) -> None:
        """Spawn players and log all lines in one tick; `bomb_rng` chooses the bomb carrier, None without a bomb."""
        arena, standing = self._arena, self._standing
        write = arena.log.write
        write(FreezeStarted())
        scores = {"ct_score": standing.side_score(Side.CT), "t_score": standing.side_score(Side.T)}
        for line in stats_block(arena, round_number=round_number, **scores):
            write(line)
        write_last_lines(arena)
        for player in sorted(arena.playing, key=_spawn_order):
            self._economy.spawn(arena, player)
        if is_match_start:
            standing.write_match_start()
        if bomb_rng is not None:
            self._economy.assign_bomb(arena, bomb_rng)
        standing.write_status()
