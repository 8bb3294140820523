"""Generate the log of a match for the benchmark with our own line formatters, if no real log is available.

It is the same in every run, and has about the same mix of lines as a real match.
"""

from __future__ import annotations

import random

from cs2_protocol.game import Side
from cs2_protocol.log_clock import format_stamp
from cs2_protocol.log_lines import player_lines as pl
from cs2_protocol.log_lines import world_lines as wl
from cs2_protocol.log_lines.player_token import PlayerToken, player_token
from cs2_protocol.log_lines.reader import Line
from cs2_protocol.log_lines.world_grammar import STATS_BEGIN, STATS_END, STATS_NAME, STATS_PLAYERS

MAP = "de_inferno"
ROUNDS = 20
LOST_ROUNDS = frozenset({0, 2, 3, 5, 8, 9, 11})
"""Indexes of the rounds that Ann's team loses, all in the first half of 12: it wins 13:7."""

_START_MS = 1_767_225_600_000
_NAMES = ("Ann", "Ben", "Cat", "Dan", "Eve", "Fay", "Gus", "Hal", "Ida", "Jon")
_WEAPONS = ("ak47", "m4a1", "awp", "glock", "deagle", "hegrenade")
_HITGROUPS = ("head", "chest", "stomach", "left arm", "right leg")
_ITEMS = ("knife", "flashbang", "smokegrenade", "hegrenade", "vesthelm", "ak47", "m4a1", "defuser")
_STATS_FIELDS = "             accountid,   team,  money,  kills, deaths,assists,    dmg,    hsp,    kdr,    adr,    mvp"


def made_up_log() -> bytes:
    """Return the bytes of a log file, from the map load to the end of the match."""
    return _Server().play()


class _Server:
    def __init__(self) -> None:
        self.random = random.Random(1)
        self.now_ms = _START_MS
        self.log: list[str] = []
        self.sides = {name: Side.CT if index < 5 else Side.T for index, name in enumerate(_NAMES)}
        self.score = {Side.CT: 0, Side.T: 0}
        self.rounds = 0

    def play(self) -> bytes:
        self.open_map()
        for number in range(ROUNDS):
            if number == 12:
                self.change_sides()
            self.freeze()
            self.fight()
            winner = self.sides["Jon"] if number in LOST_ROUNDS else self.sides["Ann"]
            self.end_round(winner)
        ct, t = self.score[Side.CT], self.score[Side.T]
        self.write(wl.GameOver("competitive", "", MAP, ct, t, 30), wl.LogFileClosed())
        return ("\n".join(self.log) + "\n").encode()

    def write(self, *lines: Line) -> None:
        self.log += [f"L {format_stamp(self.now_ms, millis=False)}: {line.text()}" for line in lines]

    def wait(self, seconds: int = 1) -> None:
        self.now_ms += seconds * 1000

    def token(self, name: str, team: str | None = "") -> PlayerToken:
        number = _NAMES.index(name) + 1
        return player_token(name, number, f"[U:1:{100 + number}]", self.sides[name] if team == "" else team)

    def position(self) -> str:
        return " ".join(str(self.random.randint(-2000, 2000)) for _ in range(3))

    def open_map(self) -> None:
        self.write(wl.LogFileStarted("logs/made_up.log", "csgo", "10603"), wl.LoadingMap(MAP), wl.CvarsListed(True))
        self.write(*(wl.CvarListed(f"mp_setting_{index}", str(index)) for index in range(100)), wl.CvarsListed(False))
        for name, side in self.sides.items():
            new = player_token(name, _NAMES.index(name) + 1, self.token(name).steam_id, "")
            self.write(pl.Connected(new, "203.0.113.9:62716"), pl.Validated(new), pl.Entered(new))
            self.write(pl.SwitchedTeam(self.token(name, None), "Unassigned", side))
            self.wait()
        self.write(wl.WorldTriggered("Match_Start", MAP), wl.MatchScore(0, 0, MAP, 0))

    def change_sides(self) -> None:
        for name, side in self.sides.items():
            self.write(pl.SwitchedTeam(self.token(name, None), side, side.other))
            self.sides[name] = side.other
        self.score = {side: self.score[side.other] for side in Side}

    def freeze(self) -> None:
        self.write(wl.FreezeStarted())
        self.print_stats()
        self.print_status()
        for name in _NAMES:
            self.shop(name)
        self.wait(10)
        self.write(wl.WorldTriggered("Round_Start"))

    def shop(self, name: str) -> None:
        player = self.token(name)
        payer = player_token(name, player.user_id + 1, player.steam_id, player.team)
        for index, item in enumerate(self.random.sample(_ITEMS, 6)):
            self.write(pl.ItemTransfer(player, "picked up", item), pl.ItemTransfer(player, "purchased", item))
            if index < 5:
                self.write(pl.MoneyChange(payer, 8000 - index * 700, -700, 7300 - index * 700, f"purchase: {item}"))
            self.poll()
        self.write(pl.LeftBuyzone(player, ("weapon_knife", "weapon_ak47", "kevlar(100)", "helmet")))
        self.wait()

    def poll(self) -> None:
        self.write(wl.RconCommand("203.0.113.2:61688", f'say "poll {self.random.randint(1, 40)}"; status'))

    def fight(self) -> None:
        alive = {side: [name for name in _NAMES if self.sides[name] is side] for side in Side}
        for _ in range(8):
            side = self.random.choice([side for side in alive if len(alive[side.other]) > 1])
            self.kill(self.random.choice(alive[side]), alive[side.other].pop(), alive[side])
            self.wait(5)

    def kill(self, killer: str, victim: str, mates: list[str]) -> None:
        weapon, attacker, target = self.random.choice(_WEAPONS), self.token(killer), self.token(victim)
        thrown = pl.GrenadeLaunched(attacker, "flashgrenade", "982.593 495.542 165.833 0.000 0.000 0.000 44 3.000")
        self.write(thrown, pl.BlindedBy(target, "2.78", attacker, 552))
        for health in (80, 61, 43, 20, 0):
            attacker_at, target_at = self.position(), self.position()
            hitgroup = self.random.choice(_HITGROUPS)
            self.write(pl.Attacked(attacker, attacker_at, target, target_at, weapon, 20, 4, health, 90, hitgroup))
        flags = ("headshot",) if self.random.random() < 0.4 else ()
        self.write(pl.Killed(attacker, self.position(), target, self.position(), weapon, flags))
        for mate in mates[:1]:
            if mate != killer:
                self.write(pl.Assisted(self.token(mate), target, False))

    def end_round(self, winner: Side) -> None:
        self.score[winner] += 1
        self.rounds += 1
        ct, t = self.score[Side.CT], self.score[Side.T]
        self.write(wl.RoundEndNotice(winner, "CTs_Win" if winner is Side.CT else "Terrorists_Win", ct, t))
        self.write(*(wl.TeamScored(side, self.score[side], 10) for side in Side))
        self.print_status()
        self.write(wl.WorldTriggered("Round_End"))
        self.wait(7)

    def print_status(self) -> None:
        self.write(*(wl.TeamPlaying(side, f"team of {side}", True) for side in Side))
        self.write(wl.MatchScore(self.score[Side.CT], self.score[Side.T], MAP, self.rounds))

    def print_stats(self) -> None:
        self.write(
            wl.StatsMark(STATS_BEGIN), wl.StatsMark(STATS_NAME), wl.StatsField("round_number", str(self.rounds + 1))
        )
        self.write(wl.StatsField("map", MAP), wl.StatsField("fields", _STATS_FIELDS), wl.StatsMark(STATS_PLAYERS))
        # Rows without an account, as for bots: invented totals would disagree with ours.
        row = "                   0," + "      0," * 24 + "      0"
        self.write(*(wl.StatsPlayer(index, row) for index in range(10)), wl.StatsMark(STATS_END))
