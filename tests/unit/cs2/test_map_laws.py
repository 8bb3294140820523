"""Law: each round counts for the team that won it, whatever its side, and the map ends once.

A server plays a map of random rounds with halves of three rounds, while players leave and rejoin, backups are restored
across halves, the process crashes and continues from a backup, and the interpreter is stored and loaded.
"""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.game import Team
from matchpod.core import events as ev
from matchpod.core.stats.ledger import Ledger
from matchpod.cs2.interpreter import Interpreter
from tests.effort import examples
from tests.unit.cs2.server_log import MAP, ServerLog, competitive

HALF = 3
PLAYERS = {Team.TEAM1: (1, 2), Team.TEAM2: (3, 4)}

steps = st.lists(
    st.one_of(
        st.sampled_from(["team1", "team1", "team2", "team2", "leave", "store"]),
        st.tuples(st.sampled_from(["restore", "crash"]), st.integers(0, 8)),
    ),
    min_size=4,
    max_size=25,
)


class Server:
    """Plays the steps and keeps the true score beside the log."""

    def __init__(self, *, roster: bool) -> None:
        self.log = ServerLog(competitive(roster=roster)).go_live()
        self.true_scores = [(0, 0)]

    def side_of(self, team: Team, rounds: int) -> str:
        starts_as_ct = team is Team.TEAM1
        return "CT" if starts_as_ct == (rounds // HALF % 2 == 0) else "TERRORIST"

    def win(self, team: Team, *, is_last: bool = False) -> None:
        log, rounds = self.log, len(self.true_scores) - 1
        one, two = self.true_scores[-1]
        self.true_scores.append((one + (team is Team.TEAM1), two + (team is Team.TEAM2)))
        killer, victim = PLAYERS[team][0], PLAYERS[team.other][0]
        log.kill(killer, victim).round_end(self.side_of(team, rounds))
        if is_last:
            log.game_over()
            return
        if len(self.true_scores) % HALF == 1:
            log.swap_sides()
            for account, old in list(log.side.items()):
                log.switch(account, old, "TERRORIST" if old == "CT" else "CT")
        log.freeze().round_start()

    def leave(self) -> None:
        self.log.leave(2).wait(5)
        self.log.join(2)

    def restore(self, rounds: int, *, is_crash: bool) -> None:
        rounds = min(rounds, len(self.true_scores) - 1)
        log, (one, two) = self.log, self.true_scores[rounds]
        if is_crash:
            log.interpreter.restart()
            log.events.append(ev.ServerRestarted(log.now))
            log.load().join(1, 2, 3, 4).match_start(-1)
        for team, accounts in PLAYERS.items():
            for account in accounts:
                log.write(f'{log.token(account)} [1 2 3] committed suicide with "world"')
                log.switch(account, log.side[account], "Spectator").switch(
                    account, "Spectator", self.side_of(team, rounds)
                )
        team1_side, team2_side = self.side_of(Team.TEAM1, rounds), self.side_of(Team.TEAM2, rounds)
        log.score, log.rounds = {team1_side: one, team2_side: two}, rounds
        log.write(f'World triggered "Match_Reloaded" on "{MAP}"')
        log.write(f'World triggered "SFUI_Notice_Round_Draw" (CT "{log.score["CT"]}") (T "{log.score["TERRORIST"]}")')
        log.status().write('World triggered "Round_End"').freeze().round_start()
        del self.true_scores[rounds + 1 :]

    def store(self) -> None:
        stored = msgspec.msgpack.encode(self.log.interpreter)
        self.log.interpreter = msgspec.msgpack.decode(stored, type=Interpreter)


def played(script: list[str | tuple[str, int]], *, roster: bool) -> Server:
    server = Server(roster=roster)
    for step in script:
        match step:
            case "team1" | "team2":
                server.win(Team(step))
            case "leave":
                server.leave()
            case "store":
                server.store()
            case (what, rounds):
                server.restore(rounds, is_crash=what == "crash")
    server.win(Team.TEAM1, is_last=True)
    return server


@examples(75)
@given(steps, st.booleans())
def test_score_is_by_team_and_the_map_ends_once(script: list[str | tuple[str, int]], roster: bool) -> None:
    server = played(script, roster=roster)
    (ended,) = server.log.all(ev.MapEnded)
    assert (ended.team1_score, ended.team2_score) == server.true_scores[-1]


@examples(50)
@given(steps)
def test_every_kept_round_is_counted_once(script: list[str | tuple[str, int]]) -> None:
    server = played(script, roster=True)
    ledger = Ledger()
    for event in server.log.events:
        ledger.apply(event)
    one, two = server.true_scores[-1]
    assert len(ledger.rounds) == one + two
    assert sum(line.kills for line in ledger.lines()) == one + two
