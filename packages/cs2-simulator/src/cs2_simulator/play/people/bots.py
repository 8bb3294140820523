"""Fill a server with bots up to `bot_quota` players, or fill its warmup, as the configuration of some servers does.

Bots join after the first player. A player who joins a side replaces a bot: immediately in warmup, at the start of the
next round in a match. A player who leaves is replaced by a bot. Matches of the service set `bot_quota 0`, so bots
play only if the match's own variables request them. The bots of a warmup are kicked at its end.
"""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.door import Door
from cs2_simulator.play.flow.slot import TaskSlot
from cs2_simulator.play.player import Participant, Player
from cs2_simulator.play.watcher import Watcher
from cs2_simulator.scenarios import Scenario

NAMES = (
    "Soldier", "Rebel", "Wolf", "Osiris", "Steel", "Muhlik", "Shamat", "Crusher", "Delrow", "Kao", "Rip", "Vladimir",
    "Cory", "Ringo", "Yanni", "Zim",
)  # fmt: skip
"""Names of bots. Most of them are from real logs."""

ADDRESS = "(unknown)"
BOT_SKILL = 0.6

WARMUP_QUOTAS = (2, 4, 12)
WARMUP_SHARE = 0.125
"""Among servers with an ordinary scenario, the share of those that fill warmup with bots."""

JOIN_MS = 20
"""Delay in milliseconds before a bot joins. A bot that replaces a player is logged after the player's last line."""


class Bots(Watcher):
    """The bots of one server. The object watches its arena from the start."""

    def __init__(self, arena: Arena, door: Door) -> None:
        self._arena = arena
        self._door = door
        self._quota = 0
        """The quota set by the match. The quota of the mode is ignored, because most servers change it."""
        self._is_warmup = True
        self._update_plan = TaskSlot(arena.agenda)
        arena.watchers.append(self)
        arena.variables.observers.append(self._variable_changed)

    # --- events --------------------------------------------------------------------------------------------------

    def map_loaded(self, map_name: str) -> None:
        """Forget the quota set by the match: the map load has reset `bot_quota`."""
        self._quota = 0
        self._is_warmup = True

    def map_closing(self) -> None:
        """Cancel scheduled joins. All bots have been disconnected."""
        self._update_plan.cancel()

    def warmup_began(self) -> None:
        self._is_warmup = True
        self._plan_update()

    def warmup_ending(self) -> None:
        """Kick the bots of the warmup before the end of the warmup is logged."""
        self._is_warmup = False
        self._kick_surplus()

    def went_live(self) -> None:
        self._is_warmup = False

    def round_restarting(self) -> None:
        """Kick the bots that were replaced by players."""
        self._kick_surplus()

    def player_joined(self, player: Player) -> None:
        """After the first player, fill the server with bots. After further players, adjust the number of bots."""
        if not player.person.is_bot:
            self._plan_update()

    def player_left(self, player: Player, reason: str) -> None:
        if not player.person.is_bot:
            self._plan_update()

    def _variable_changed(self, name: str) -> None:
        if name == "bot_quota":
            self._quota = self._arena.variables.whole(name)
            self._plan_update()

    # --- filling -------------------------------------------------------------------------------------------------

    def _plan_update(self) -> None:
        if self._wanted or self._bots():
            self._update_plan.call_in(JOIN_MS, self._update)

    def _update(self) -> None:
        if self._is_warmup:
            self._kick_surplus()
        while len(self._bots()) < self._wanted and self._add_bot():
            pass

    @property
    def _wanted(self) -> int:
        """The number of bots that fill the server; 0 until a player has joined a side."""
        quota = self._quota or (self._warmup_quota() if self._is_warmup else 0)
        humans = [player for player in self._arena.players if not player.person.is_bot]
        joined = sum(player.is_playing for player in humans)
        return max(0, min(quota - joined, self._door.max_players - len(humans))) if joined else 0

    def _warmup_quota(self) -> int:
        rng, scenario = self._arena.rng("warmup bots"), self._arena.scenario
        quota, chance = rng.choice(WARMUP_QUOTAS), rng.random()
        is_filled = scenario is Scenario.WARMUP_BOTS or (scenario.is_ordinary and chance < WARMUP_SHARE)
        return quota if is_filled else 0

    def _bots(self) -> list[Player]:
        return [player for player in self._arena.players if player.person.is_bot]

    def _kick_surplus(self) -> None:
        """Kick bots from the fuller side, until at most the wanted number of bots is left."""
        bots = self._bots()
        while len(bots) > self._wanted:
            bot = max(bots, key=lambda player: (self._size_of(player.side), player.user_id))
            bots.remove(bot)
            self._door.kick(bot)

    def _add_bot(self) -> bool:
        taken = {player.person.name for player in self._arena.players}
        name = next((name for name in NAMES if name not in taken), None)
        bot = self._door.connect(Participant(name, 0, skill=BOT_SKILL, address=ADDRESS)) if name else None
        if bot is None:
            return False
        self._door.enter(bot)
        self._door.join(bot, min(Side.T, Side.CT, key=self._size_of))
        return True

    def _size_of(self, side: Side | None) -> int:
        return 0 if side is None else len(self._arena.players_on(side))
