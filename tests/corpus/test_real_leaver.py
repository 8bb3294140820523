"""Read a real match of one person and bots, who are kicked, leave and return in the middle of it."""

from __future__ import annotations

from pathlib import Path

from cs2_protocol.game import Team
from cs2_protocol.steam_id import from_account
from matchpod.core.events import PlayerDisconnected, PlayerEntered, RoundStarted
from matchpod.core.match.match import Match
from matchpod.core.stats.player_line import PlayerLine
from matchpod.core.views.rounds import build_rounds
from tests.corpus.real_logs import LEAVER, read_log

KHANJER = from_account(1098204826)
ABSENT = {5, 12, 13, 19, 20}
"""The rounds in whose start the person was not on the server: idle kicks in 4, 11 and 18, rejoins in 5 and 13."""


def read_match(corpus: Path) -> Match:
    return read_log(corpus / LEAVER)[0].match


def line_of(match: Match) -> PlayerLine:
    return next(line for line in match.maps[0].ledger.lines() if line.player_id == KHANJER)


def test_score_and_rounds_of_the_whole_match(corpus: Path) -> None:
    match = read_match(corpus)
    played = match.maps[0]
    assert (played.team1_score, played.team2_score, played.missing_rounds) == (7, 13, ())
    line = line_of(match)
    assert (line.kills, line.deaths, line.rounds_played, line.mvps) == (4, 3, 15, 7)
    assert line.damage == 400


def test_player_is_in_the_line_ups_of_the_rounds_they_were_there_for(corpus: Path) -> None:
    rounds = read_match(corpus).maps[0].ledger.rounds
    assert {record.number for record in rounds if record.team_of(KHANJER) is None} == ABSENT
    assert all(len(record.team1) == len(record.team2) == 1 for record in rounds)
    assert all("BOT:Soldier" not in record.players for record in rounds)  # kicked before the match


def test_no_round_has_a_survivor_who_was_not_there(corpus: Path) -> None:
    match = read_match(corpus)
    for one, record in zip(build_rounds(match, match.maps[0]), match.maps[0].ledger.rounds, strict=True):
        assert one.team1.survivors == len(record.alive(Team.TEAM1)) <= 1
        assert one.team2.survivors == len(record.alive(Team.TEAM2)) <= 1
        if record.number in {4, 11, 18}:  # the round ended by the kick
            assert 0 in (one.team1.survivors, one.team2.survivors)


def test_player_is_connected_between_their_arrival_and_departure_only(corpus: Path) -> None:
    reader, events = read_log(corpus / LEAVER)
    match = Match.create(reader.match.settings, 0)
    is_here = False
    for event in events:
        match.apply(event, event.at_ms)
        if isinstance(event, PlayerEntered):
            is_here = True
        elif isinstance(event, PlayerDisconnected):
            is_here = False
        elif isinstance(event, RoundStarted):
            assert (KHANJER in match.presence.connected) is is_here
