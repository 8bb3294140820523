"""What does the beginning of a freeze time say? Everybody comes to life, between the game's counts and its score."""

from __future__ import annotations

from random import Random
from zlib import crc32

from matchpod.core.model import Side
from matchpod.cs2.log_lines.world_lines import FreezeStarted
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.fights.economy import Economy
from matchpod.simulator.play.flow.standing import Standing
from matchpod.simulator.play.flow.stats_rows import stats_block
from matchpod.simulator.play.player import Player


def _place_in_line(player: Player) -> int:
    """People come to life in an order of the game's own: in a real match always the same, and not by number."""
    return crc32(player.person.player_id.encode())


class Opening:
    """Opens freeze times: those of rounds, of warmups, of matches."""

    def __init__(self, arena: Arena, standing: Standing, economy: Economy) -> None:
        self._arena = arena
        self._standing = standing
        self._economy = economy

    def open(self, *, round_number: int = 1, is_match_start: bool = False, bomb: Random | None = None) -> None:
        """Write it all in one tick; `bomb` is the chance by which somebody gets the bomb, None where there is none."""
        arena, standing = self._arena, self._standing
        write = arena.log.write
        write(FreezeStarted())
        scores = {"ct_score": standing.side_score(Side.CT), "t_score": standing.side_score(Side.T)}
        for line in stats_block(arena, round_number=round_number, **scores):
            write(line)
        for player in sorted(arena.playing, key=_place_in_line):
            self._economy.spawn(arena, player)
        if is_match_start:
            standing.write_match_start()
        if bomb is not None:
            self._economy.give_bomb(arena, bomb)
        standing.write_status()
