"""A plugin that counts shots and reports them to the URL in `matchpod_shots_url`.

No such plugin exists for real servers yet: this is what `docs/game-servers.md` asks of one. Every report has all rounds
of the map, so the next one makes up for a lost one.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from matchpod.simulator.outside import Outside
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.watcher import Watcher
from matchpod.simulator.plugin.deps import PluginConsole
from matchpod.simulator.scenarios import Scenario

COMMAND = "matchpod_shots_url"
HEADERS = {"Content-Type": "application/json"}


class ShotCounter(Watcher):
    """Counts the shots of a server. `map_number` returns the number of the current map, from 1."""

    def __init__(
        self, arena: Arena, outside: Outside, *, console: PluginConsole, map_number: Callable[[], int]
    ) -> None:
        self._arena = arena
        self._outside = outside
        self._console = console
        self._map_number = map_number
        self._url = ""
        self._sequence = 0
        console.register(COMMAND, self._set_url)
        arena.watchers.append(self)

    def round_started(self, round_number: int) -> None:
        """Report that the round is being counted, without numbers, which would be taken for final ones."""
        self._report(open_round=round_number)

    def freeze_began(self, round_number: int) -> None:
        """Report the rounds so far. Not at the end of a round: players still shoot until the next freeze time."""
        if round_number > 1:
            self._report()

    def map_ended(self) -> None:
        """Report the whole map; a deathmatch is one round, which ends with the map."""
        self._report()

    def _set_url(self, arguments: list[str]) -> str:
        if self._arena.scenario is Scenario.PLUGIN_MISSING:
            return self._console.unknown_command(COMMAND)
        self._url = arguments[0] if arguments else ""
        return ""

    def _report(self, open_round: int | None = None) -> None:
        if not self._url:
            return
        rounds = [
            {
                "roundNumber": number,
                "players": [
                    {"steamId": tally.player_id, "shotsFired": tally.shots_fired, "shotsHit": tally.shots_hit}
                    for tally in tallies
                    if tally.player_id.isdigit() and number != open_round
                ],
            }
            for number, tallies in self._arena.book.rounds()
        ]
        self._sequence += 1
        report = {"sequence": self._sequence, "mapNumber": self._map_number(), "rounds": rounds}
        self._outside.send_report(self._url, HEADERS, json.dumps(report).encode())
