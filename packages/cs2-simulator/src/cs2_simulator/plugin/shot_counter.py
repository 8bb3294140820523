"""Simulate a plugin that counts shots and reports them to the URL in `matchpod_shots_url`.

No such plugin exists for real servers yet; this one follows `docs/plugin-reports.md`. Every report contains all rounds
of the map, so a later report replaces a lost one. The map number is counted here: after the last round, the match
plugin has already advanced to the next map, and some series are played without a match plugin.
"""

from __future__ import annotations

import json

from cs2_simulator.console.console import Console
from cs2_simulator.console.parts import ServerParts
from cs2_simulator.play.watcher import Watcher
from cs2_simulator.plugin.plugin_lists import has_matchzy

COMMAND = "matchpod_shots_url"
HEADERS = {"Content-Type": "application/json"}


class ShotCounter(Watcher):
    def __init__(self, parts: ServerParts, console: Console) -> None:
        self._arena = parts.arena
        self._outside = parts.outside
        self._console = console
        self._map_number = 1
        self._is_map_over = False
        self._url = ""
        self._sequence = 0
        console.register(COMMAND, self._set_url)
        parts.arena.watchers.append(self)

    def went_live(self) -> None:
        """Advance the map number if the previous map has ended. The same map going live again does not advance it."""
        self._map_number += self._is_map_over
        self._is_map_over = False

    def restored(self, rounds_played: int) -> None:
        """Continue with the same map number, even if the map had ended."""
        self._is_map_over = False

    def round_started(self, round_number: int) -> None:
        """Report that counting of the round has begun.

        The report has no numbers of shots for this round: receivers treat numbers as final.
        """
        self._report(open_round=round_number)

    def freeze_began(self, round_number: int) -> None:
        """Report the rounds so far.

        At the end of a round this would be too early: players still shoot until freeze time.
        """
        if round_number > 1:
            self._report()

    def map_ended(self) -> None:
        """Report all rounds of the map. A deathmatch is reported as one round that ends with the map."""
        self._is_map_over = True
        self._report()

    def _set_url(self, arguments: list[str]) -> str:
        if not has_matchzy(self._arena):
            return self._console.unknown_command(COMMAND)
        url = arguments[0] if arguments else ""
        # the new URL has another token, so a new match has begun
        if url.rpartition("/")[2] != self._url.rpartition("/")[2]:
            self._map_number, self._is_map_over = 1, False
        self._url = url
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
        report = {"sequence": self._sequence, "mapNumber": self._map_number, "rounds": rounds}
        if self._is_map_over:
            report["final"] = True
        self._outside.send_report(self._url, HEADERS, json.dumps(report).encode())
