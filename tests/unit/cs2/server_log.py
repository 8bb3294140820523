"""A builder of server logs: lines go through the real reader and interpreter, and the events are kept."""

from __future__ import annotations

import json
from typing import Self, TypeVar

from cs2_protocol.log_clock import format_stamp
from cs2_protocol.log_lines.reader import LineReader
from matchpod.core.events import Event, GameEvent
from matchpod.core.model import GameSettings, MatchType, TeamRoster
from matchpod.cs2.interpreter import Interpreter

E = TypeVar("E", bound=Event)

MAP = "de_nuke"


def id64(account: int) -> str:
    return str(76561197960265728 + account)


TEAM1 = TeamRoster("Reds", (id64(1), id64(2)))
TEAM2 = TeamRoster("Blues", (id64(3), id64(4)))
NAMES = {1: "Ann", 2: "Ben", 3: "Cid", 4: "Dan"}


def competitive(*, roster: bool = True) -> GameSettings:
    if not roster:
        return GameSettings(match_type=MatchType.COMPETITIVE, maps=(MAP,))
    return GameSettings(match_type=MatchType.COMPETITIVE, maps=(MAP,), team1=TEAM1, team2=TEAM2)


class ServerLog:
    """Writes the log of a match step by step; `events` are the events that were read from it."""

    def __init__(self, settings: GameSettings | None = None) -> None:
        self.interpreter = Interpreter.of(settings or competitive())
        self.reader = LineReader()
        self.events: list[GameEvent] = []
        self.now = 1_000_000
        self.side = {1: "CT", 2: "CT", 3: "TERRORIST", 4: "TERRORIST"}
        self.score = {"CT": 0, "TERRORIST": 0}
        self.rounds = 0
        self.lines: list[tuple[int, str]] = []

    def file(self) -> str:
        return "".join(f"L {format_stamp(at_ms, millis=False)}: {text}\n" for at_ms, text in self.lines)

    def posts(self) -> str:
        recorded, offset = [], 0
        for at_ms, text in self.lines:
            body = f"{format_stamp(at_ms, millis=True)} - {text}\n"
            end = offset + len(body.encode())
            headers = {
                "X-LogBytes-BeginOffset": f"{offset}",
                "X-LogBytes-EndOffset": f"{end}",
                "X-Server-Instance-Token": "a1",
            }
            recorded.append(json.dumps({"receivedAt": at_ms, "headers": headers, "body": body}) + "\n")
            offset = end
        return "".join(recorded)

    def write(self, *texts: str) -> Self:
        for text in texts:
            self.lines.append((self.now, text))
            self.interpreter.read(self.now, self.reader.parse(text), self.events)
        return self

    def wait(self, seconds: float = 1) -> Self:
        self.now += int(seconds * 1000)
        return self

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def last(self, kind: type[E]) -> E:
        return self.all(kind)[-1]

    def token(self, account: int, team: str | None = None) -> str:
        team = self.side[account] if team is None else team
        return f'"{NAMES[account]}<{account}><[U:1:{account}]><{team}>"'

    def join(self, *accounts: int) -> Self:
        for account in accounts:
            self.write(
                f'{self.token(account, "")} connected, address "203.0.113.1:1"',
                f"{self.token(account, '')} STEAM USERID validated",
                f"{self.token(account, '')} entered the game",
            )
            self.switch(account, "Unassigned", self.side[account])
        return self

    def switch(self, account: int, old: str, new: str) -> Self:
        self.side[account] = new
        return self.write(f'"{NAMES[account]}<{account}><[U:1:{account}]>" switched from team <{old}> to <{new}>')

    def leave(self, account: int, reason: str = "NETWORK_DISCONNECT_DISCONNECT_BY_USER") -> Self:
        return self.write(f'{self.token(account)} disconnected (reason "{reason}")')

    def status(self, rounds: int | None = None) -> Self:
        rounds = self.rounds if rounds is None else rounds
        return self.write(
            f'MatchStatus: Score: {self.score["CT"]}:{self.score["TERRORIST"]} on map "{MAP}" RoundsPlayed: {rounds}'
        )

    def match_start(self, rounds: int = 0) -> Self:
        self.score = {"CT": 0, "TERRORIST": 0}
        self.rounds = 0
        self.write("Starting Freeze period", f'World triggered "Match_Start" on "{MAP}"')
        return self.status(rounds)

    def load(self, map_name: str = MAP) -> Self:
        return self.write(f'Loading map "{map_name}"', 'Started:  ""')

    def go_live(self) -> Self:
        return (
            self.load()
            .join(1, 2, 3, 4)
            .match_start(-1)
            .write('World triggered "Warmup_Start"')
            .wait(60)
            .write('World triggered "Warmup_End"')
            .match_start()
            .wait(15)
            .round_start()
        )

    def round_start(self) -> Self:
        return self.write('World triggered "Round_Start"').wait()

    def round_end(self, side: str, notice: str | None = None) -> Self:
        self.score[side] += 1
        self.rounds += 1
        notice = notice or ("CTs_Win" if side == "CT" else "Terrorists_Win")
        self.write(
            f'Team "{side}" triggered "SFUI_Notice_{notice}" (CT "{self.score["CT"]}") (T "{self.score["TERRORIST"]}")'
        )
        return self.status().write('World triggered "Round_End"').wait(7)

    def freeze(self) -> Self:
        return self.write("Starting Freeze period").status().wait(15)

    def play(self, *sides: str) -> Self:
        """Play rounds won by these sides, each followed by freeze time and the start of the next round."""
        for side in sides:
            self.wait(30).round_end(side).freeze().round_start()
        return self

    def swap_sides(self) -> Self:
        """Swap the score as the server does at halftime, without writing a line."""
        self.score = {"CT": self.score["TERRORIST"], "TERRORIST": self.score["CT"]}
        return self

    def halftime(self) -> Self:
        self.swap_sides()
        for account, old in list(self.side.items()):
            self.switch(account, old, "TERRORIST" if old == "CT" else "CT")
        return self.freeze().round_start()

    def kill(self, killer: int, victim: int, weapon: str = "ak47", tail: str = "") -> Self:
        return self.write(f'{self.token(killer)} [0 0 0] killed {self.token(victim)} [3 4 0] with "{weapon}"{tail}')

    def game_over(self, mode: str = "competitive", score: tuple[int, int] | None = None) -> Self:
        ct, t = score or (self.score["CT"], self.score["TERRORIST"])
        return self.write(f"Game Over: {mode}  {MAP} score {ct}:{t} after 30 min")
