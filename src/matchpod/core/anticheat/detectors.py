"""Run all cheat detectors over the kills of a match, separately for each player.

Only kills of human enemies by humans from MapLive to MapEnded count; bots are too easy to hit. A restart of a map
discards its evidence, because the kills may be from a knife round. So does a backup that keeps no round; other backups
keep the evidence, since the kills happened. To add a detector, write its module and add its class to `Detector`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Final, get_args

import msgspec

from cs2_protocol.game import PlayerId, is_human
from matchpod.core.anticheat.blind_and_smoke import BlindAndSmoke
from matchpod.core.anticheat.headshot_rate import HeadshotRate
from matchpod.core.anticheat.kill_bursts import KillBursts
from matchpod.core.events import CheatSuspected, GameEvent, Kill, MapEnded, MapLive, RoundRestored
from matchpod.core.model import GameSettings, MatchType

Detector = HeadshotRate | BlindAndSmoke | KillBursts

DETECTORS: Final[tuple[type[Detector], ...]] = get_args(Detector)
"""All detector classes. Each has `of(match_type)`, `observe(kill)` and `new_map()`; an instance tracks one player."""

MAX_PLAYERS = 1024
"""Maximum number of players observed per match. Far fewer join a server with 64 slots, but a log can contain forged
ids."""

GAMEPLAY_CVARS = ("mp_damage_", "weapon_accuracy_", "weapon_air_spread_", "sv_flashed_amount_for_blind_kill")
"""Prefixes of console variables that affect headshots or blind kills. Detectors are off in a match that sets one of
them, because their thresholds do not apply."""


class Detectors(msgspec.Struct):
    """All detectors of a match, as plain data. A restart of the map resets `players` to `at_map_start`."""

    match_type: MatchType = MatchType.COMPETITIVE
    is_usual_game: bool = True
    has_begun: bool = False
    is_live: bool = False
    players: dict[PlayerId, list[Detector]] = {}
    at_map_start: dict[PlayerId, list[Detector]] = {}

    @classmethod
    def of(cls, settings: GameSettings) -> Detectors:
        """Return the detectors of a match; they are disabled if the match sets one of GAMEPLAY_CVARS."""
        is_usual = not any(cvar.name.lower().startswith(GAMEPLAY_CVARS) for cvar in settings.custom_cvars)
        return cls(settings.match_type, is_usual)

    def apply(self, event: GameEvent) -> list[CheatSuspected]:
        handler = _HANDLERS.get(type(event))
        return [] if handler is None else handler(self, event)

    def _map_live(self, _event: MapLive) -> list[CheatSuspected]:
        if self.is_live:  # a restart: the kills so far did not count
            self.players = self.at_map_start
        self.has_begun = self.is_live = self.is_usual_game
        for detectors in self.players.values():
            for detector in detectors:
                detector.new_map()
        self.at_map_start = deepcopy(self.players)
        return []

    def _map_ended(self, _event: MapEnded) -> list[CheatSuspected]:
        self.is_live = False
        return []

    def _restored(self, event: RoundRestored) -> list[CheatSuspected]:
        # A backup may reopen a map that had ended.
        self.is_live = self.has_begun
        if event.rounds_kept == 0:
            self.players = deepcopy(self.at_map_start)
        return []

    def _kill(self, kill: Kill) -> list[CheatSuspected]:
        if not self.is_live or not kill.is_enemy or not is_human(kill.killer) or not is_human(kill.victim):
            return []
        detectors = self.players.get(kill.killer)
        if detectors is None:
            if len(self.players) >= MAX_PLAYERS:
                return []
            detectors = self.players[kill.killer] = [kind.of(self.match_type) for kind in DETECTORS]
        reports = (detector.observe(kill) for detector in detectors)
        return [report for report in reports if report is not None]


_HANDLERS: Final[dict[type, Callable[..., list[CheatSuspected]]]] = {
    Kill: Detectors._kill,
    MapLive: Detectors._map_live,
    MapEnded: Detectors._map_ended,
    RoundRestored: Detectors._restored,
}
