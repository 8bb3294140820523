"""Compare our statistics of a complete real match with the game's own."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from cs2_protocol.game import Team
from cs2_protocol.steam_id import from_account
from matchpod.core.events import GameCounted, GameEvent, MapEnded, MapLive, RoundStarted
from matchpod.core.model import GameSettings, MatchType, TeamRoster, Winner
from matchpod.core.stats.ledger import Ledger
from matchpod.core.stats.player_line import PlayerLine
from matchpod.core.views.result import build_result
from matchpod.core.views.result_shapes import SeriesResult
from matchpod.cs2.match_reader import MatchReader
from tests.corpus.real_logs import INFERNO, read_log
from tests.effort import IS_SOAK, sized

ACCOUNTS = (91379634, 91023233, 133954850, 193288330, 442078920, 188337394, 268200068, 1047133778, 97679279, 29856109)
TEAM1 = ACCOUNTS[:1] + ACCOUNTS[2:5] + ACCOUNTS[8:9]

# The golden numbers of the log before its last round, equal to the game's own block for round 15.
KILLS = (9, 7, 17, 16, 5, 2, 3, 12, 19, 2)
DEATHS = (12, 13, 6, 11, 8, 13, 14, 14, 7, 13)
ASSISTS = (3, 3, 6, 5, 4, 3, 1, 4, 7, 7)
FIRST_KILLS = (2, 0, 1, 2, 2, 0, 3, 1, 3, 0)
ADR = (67, 73, 111, 100, 54, 19, 24, 94, 140, 57)


@cache
def read_whole(corpus: Path) -> tuple[MatchReader, list[GameEvent]]:
    return read_log(corpus / INFERNO)


@cache
def ledger_before_each_round(corpus: Path) -> list[tuple[GameCounted, dict[str, PlayerLine]]]:
    """Return each statistics block of the game with our statistics at that time."""
    _, events = read_whole(corpus)
    ledger = Ledger()
    found = []
    for event in events:
        ledger.apply(event)
        if isinstance(event, GameCounted):
            found.append((event, {line.player_id: line for line in ledger.lines()}))
    return found


def test_statistics_equal_the_golden_numbers(corpus: Path) -> None:
    counted, lines = ledger_before_each_round(corpus)[-1]
    assert counted.round_number == 15
    ours = [lines[from_account(account)] for account in ACCOUNTS]
    assert tuple(line.kills for line in ours) == KILLS
    assert tuple(line.deaths for line in ours) == DEATHS
    assert tuple(line.all_assists for line in ours) == ASSISTS
    assert tuple(line.first_kills for line in ours) == FIRST_KILLS
    assert tuple(round(line.damage / 14) for line in ours) == ADR  # the game rounds this column


def test_damage_is_within_two_percent_of_the_game_and_its_sum_is_exact(corpus: Path) -> None:
    for counted, lines in ledger_before_each_round(corpus)[1:]:
        for game in counted.players:
            ours = lines[game.player_id].damage if game.player_id in lines else 0
            assert ours == pytest.approx(game.damage, rel=0.02, abs=1)
    counted, lines = ledger_before_each_round(corpus)[-1]
    assert sum(line.damage for line in lines.values()) == sum(game.damage for game in counted.players)
    utility = sum(game.utility_damage for game in counted.players)
    assert sum(line.utility_damage for line in lines.values()) == pytest.approx(utility, rel=0.03)


def test_final_score_belongs_to_the_team_that_won_it(corpus: Path) -> None:
    reader, events = read_whole(corpus)
    result = build_result(reader.match)
    assert isinstance(result, SeriesResult)
    assert result.winner is Winner.TEAM1
    assert (result.team1.name, result.team1.total_rounds) == ("rvls test team 1", 13)
    assert (result.team2.name, result.team2.total_rounds) == ("rvls test 2", 2)
    assert {player.steam_id for player in result.overall if player.team is Team.TEAM1} == set(map(from_account, TEAM1))
    assert result.maps[0].duration == 596
    assert len([event for event in events if isinstance(event, MapEnded)]) == 1


def test_swapped_rosters_swap_the_score(corpus: Path) -> None:
    started_as_t = tuple(from_account(account) for account in ACCOUNTS if account not in TEAM1)
    settings = GameSettings(
        match_type=MatchType.COMPETITIVE,
        maps=("de_inferno",),
        team1=TeamRoster("Underdogs", started_as_t),
        team2=TeamRoster("Favourites", tuple(map(from_account, TEAM1))),
    )
    reader, events = read_log(corpus / INFERNO, settings)
    result = build_result(reader.match)
    assert isinstance(result, SeriesResult)
    assert result.winner is Winner.TEAM2
    assert (result.team1.name, result.team1.total_rounds) == ("Underdogs", 2)
    started = [event for event in events if isinstance(event, RoundStarted)]
    assert all(set(event.team1) == set(started_as_t) for event in started)


@pytest.mark.parametrize("seen", range(1, 16) if IS_SOAK else (1, 2, 8, 15))
def test_log_that_begins_late_has_all_later_rounds(corpus: Path, tmp_path: Path, seen: int) -> None:
    """It begins when this round starts: without a line that names the map or the teams."""
    whole, _ = read_whole(corpus)
    text = (corpus / INFERNO).read_bytes()
    starts = [found.start() for found in re.finditer(rb'[^\n]*World triggered "Round_Start"', text)]
    late = tmp_path / "late.log"
    late.write_bytes(text[starts[-16 + seen] :])
    reader, events = read_log(late)
    played = reader.match.current_map
    live = [event.rounds_played for event in events if isinstance(event, MapLive)]
    assert live == ([0] if seen == 1 else [0, seen - 1])  # taken for the first round until its end shows which it was
    assert played.missing_rounds == (() if seen == 1 else tuple(range(1, seen + 1)))
    assert (played.name, {played.team1_score, played.team2_score}) == ("de_inferno", {13, 2})
    winner = played.team1_name if played.team1_score == 13 else played.team2_name
    assert winner == "rvls test team 1" or seen == 15  # the last names are printed before the last round
    kept = {record.number: record for record in whole.match.current_map.ledger.rounds}
    for record in played.ledger.rounds[seen > 1 :]:
        assert record.players == kept[record.number].players


@pytest.mark.parametrize("seconds_lost", range(0, 16, sized(7, 2)))
def test_log_that_begins_in_the_first_freeze_time_has_all_rounds(
    corpus: Path, tmp_path: Path, seconds_lost: int
) -> None:
    """It begins after the line of the match start; not all players buy before the round starts."""
    whole, _ = read_whole(corpus)
    late = tmp_path / "late.log"
    text = (corpus / INFERNO).read_bytes()
    late.write_bytes(text[text.index(b"L 01/19/2026 - 19:03:%d" % (18 + seconds_lost)) :])
    reader, _ = read_log(late)
    played, expected = reader.match.current_map, whole.match.current_map
    assert (played.is_complete, played.missing_rounds) == (True, ())
    assert [one.players for one in played.ledger.rounds] == [one.players for one in expected.ledger.rounds]


def test_defuser_is_found_without_a_defuse_line(corpus: Path) -> None:
    reader, _ = read_whole(corpus)
    defusers = [line.player_id for line in reader.match.current_map.ledger.lines() if line.bomb_defuses]
    assert defusers == [from_account(97679279)]
    assert b"Defused_The_Bomb" not in (corpus / INFERNO).read_bytes()
