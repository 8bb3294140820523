"""Who plays as no honest player does? Every detector over the kills of a match, each on one player at a time.

Only what counts is looked at: enemy kills of people by people, from MapLive to MapEnded. Kills of bots say nothing,
for a bot walks into every aim. A restart forgets the map, since a knife round never counted; a restored backup forgets
nothing, since what was seen did happen. A new detector is a file of its own and its name in `Detector`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Final, get_args

import msgspec

from matchpod.core.anticheat.blind_and_smoke import BlindAndSmoke
from matchpod.core.anticheat.headshot_rate import HeadshotRate
from matchpod.core.anticheat.kill_bursts import KillBursts
from matchpod.core.events import CheatSuspected, GameEvent, Kill, MapEnded, MapLive, RoundRestored
from matchpod.core.model import GameSettings, MatchType, PlayerId, is_human

Detector = HeadshotRate | BlindAndSmoke | KillBursts

DETECTORS: Final[tuple[type[Detector], ...]] = get_args(Detector)
"""What is looked for. A detector has `of(match_type)`, `see(kill)` and `new_map()` and knows a single player."""

MAX_PLAYERS = 1024
"""Far more people than a server of 64 seats sees in a match; ends growth by made-up ids."""

ANOTHER_GAME = ("mp_damage_", "weapon_accuracy_", "weapon_air_spread_", "sv_flashed_amount_for_blind_kill")
"""Cvars that change what a headshot or a blind kill takes begin so; the odds of the usual game do not hold there."""


class Watch(msgspec.Struct):
    """All detectors of a match; plain data. `at_map_start` is what a restart of the map goes back to."""

    match_type: MatchType = MatchType.COMPETITIVE
    is_usual_game: bool = True
    has_begun: bool = False
    is_live: bool = False
    players: dict[PlayerId, list[Detector]] = {}
    at_map_start: dict[PlayerId, list[Detector]] = {}

    @classmethod
    def of(cls, settings: GameSettings) -> Watch:
        """A watch for a match with these settings; it sees nothing where they make another game of it."""
        is_usual = not any(cvar.name.lower().startswith(ANOTHER_GAME) for cvar in settings.custom_cvars)
        return cls(settings.match_type, is_usual)

    def see(self, event: GameEvent) -> list[CheatSuspected]:
        """Take in what happened; what is suspicious by now and was not told before."""
        look = _LOOKS.get(type(event))
        return [] if look is None else look(self, event)

    def _map_live(self, _event: MapLive) -> list[CheatSuspected]:
        if self.is_live:  # the map had not ended: it starts again, and what was seen of it did not count
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
        # A backup may open a map again that had ended.
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
        seen = (detector.see(kill) for detector in detectors)
        return [found for found in seen if found is not None]


_LOOKS: Final[dict[type, Callable[..., list[CheatSuspected]]]] = {
    Kill: Watch._kill,
    MapLive: Watch._map_live,
    MapEnded: Watch._map_ended,
    RoundRestored: Watch._restored,
}
