"""What a copy of a log says, and since when."""

from __future__ import annotations

from tests.real_time.truth import FIRST_ID64, Truth

STAMP = "11/17/2026 - 12:00:00.000 - "
ANN, BEN = (str(FIRST_ID64 + account) for account in (1, 2))


def post(truth: Truth, at_s: float, *lines: str, begin: int = 1) -> None:
    truth.read("".join(f"{STAMP}{line}\n" for line in lines), begin=begin, at_s=at_s)


def killed(account: int, side: str = "CT", victim: str = "TERRORIST") -> str:
    return f'"a<3><[U:1:{account}]><{side}>" [1 2 3] killed "b<4><[U:1:9]><{victim}>" [4 5 6] with "ak47"'


def score(ct: int, t: int, rounds: int) -> str:
    return f'MatchStatus: Score: {ct}:{t} on map "de_nuke" RoundsPlayed: {rounds}'


def play_round(truth: Truth, at_s: float, *kills: str, result: str) -> None:
    post(truth, at_s, 'World triggered "Round_Start"', *kills)
    post(truth, at_s + 5, result, 'World triggered "Round_End"')


def test_players_are_here_from_their_connect_to_their_disconnect() -> None:
    truth = Truth()
    post(truth, 10, '"Ann<2><[U:1:1]><>" connected, address "203.0.113.1:1"')
    post(truth, 20, '"Ben<3><[U:1:2]><>" connected, address "203.0.113.1:2"')
    post(truth, 30, '"Ann<2><[U:1:1]><CT>" disconnected (reason "NETWORK_DISCONNECT_DISCONNECT_BY_USER")')
    assert truth.here.now == {BEN}
    assert truth.here.during(12, 25) == [{ANN}, {ANN, BEN}]
    assert truth.here.during(31, 40) == [{BEN}]
    assert "disconnect" not in truth.events_s, "no round was played"
    assert truth.longest_quiet_s == 10


def test_players_have_entered_until_they_disconnect_or_connect_again() -> None:
    truth = Truth()
    post(truth, 10, '"Ann<2><[U:1:1]><>" connected, address "203.0.113.1:1"')
    post(truth, 20, '"Ann<2><[U:1:1]><>" entered the game', '"SourceTV<0><BOT><>" entered the game')
    post(truth, 30, '"Ann<2><[U:1:1]><>" connected, address "203.0.113.1:1"')
    post(truth, 40, '"Ann<2><[U:1:1]><>" entered the game')
    post(truth, 50, '"Ann<2><[U:1:1]><CT>" disconnected (reason "NETWORK_DISCONNECT_TIMEDOUT")')
    assert truth.entered.during(0, 60) == [frozenset(), {ANN}, frozenset(), {ANN}, frozenset()]


def test_kills_of_restored_rounds_do_not_count() -> None:
    truth = Truth()
    post(truth, 0, 'World triggered "Match_Start" on "de_nuke"', score(0, 0, 0))
    play_round(truth, 10, killed(1), killed(1, victim="CT"), result=score(1, 0, 1))
    play_round(truth, 20, killed(1), killed(2), result=score(1, 1, 2))
    assert truth.kills.now == {ANN: 2, BEN: 1}
    assert (truth.score.now, truth.rounds_played.now) == ((1, 1), 2)
    post(truth, 30, 'World triggered "Match_Reloaded" on "de_nuke"', score(1, 0, 1))
    assert truth.kills.now == {ANN: 1}
    assert (truth.score.now, truth.rounds_played.now, truth.events_s) == ((0, 1), 1, {"restore": 30})
    assert truth.kills.during(26, 31) == [{ANN: 2, BEN: 1}, {ANN: 1}]


def test_map_begins_with_a_new_log_and_ends_with_its_result() -> None:
    truth = Truth()
    post(truth, 0, score(0, 0, -1), begin=0)
    post(truth, 5, killed(1), 'World triggered "Match_Start" on "de_nuke"', score(0, 0, 0))
    assert not truth.has_round.now
    play_round(truth, 10, killed(1), result=score(1, 0, 1))
    assert truth.has_round.now
    post(truth, 20, "Game Over: competitive  de_nuke score 1:0 after 4 min")
    assert (truth.has_round.now, truth.events_s) == (False, {"end": 20})
    post(truth, 60, score(0, 0, -1), begin=0)
    assert (truth.kills.now, truth.loads_s) == ({}, [0, 60])
