"""The table of players: its columns by match type, its rows by team, and what marks them."""

from __future__ import annotations

from cs2_protocol.game import Side, Team
from matchpod.console.match_board import Board, final_board, live_board
from matchpod.console.rendering import fragment
from matchpod.core.match.actions import ActionType
from matchpod.core.match.roster import RosterRole
from matchpod.core.model import MatchType
from matchpod.core.views.match_progress import Guest
from matchpod.core.views.progress import PlayerState, RosterPlayer
from matchpod.core.views.result_shapes import StoredPlayer

NAMES = "Reds", "Blues"
ANN, BEN, CID = (f"7656119800000000{number}" for number in (1, 2, 3))
EVIL = '"><img src=x onerror=alert(1)>'


def titles(board: Board) -> list[str]:
    return [title for title, _ in board.heads]


def html(board: Board) -> str:
    return fragment("board_parts.html", "board", board, "Players").decode()


def test_live_deathmatch_has_the_numbers_of_all_players_and_no_columns_of_rounds() -> None:
    numbers = {ANN: StoredPlayer(steam_id=ANN, name="Ann", kills=7, deaths=2, assists=0, hs_percent=28.6, kd_ratio=3.5)}
    roster = [RosterPlayer(steam_id=BEN, team=None)]
    board = live_board(roster, numbers, MatchType.DEATHMATCH, NAMES, side=None, is_known=True)
    assert titles(board) == ["K", "D", "A", "HS", "K/D"]
    cid = live_board([], {CID: StoredPlayer(steam_id=CID)}, MatchType.DEATHMATCH, NAMES, side=None, is_known=True)
    assert cid.teams[0].players[0].cells[3] == "–"  # without kills, there is no share of headshots
    (team,) = board.teams
    assert (team.name, [player.shown for player in team.players]) == ("", [BEN, "Ann"])
    assert team.players[1].cells == ("7", "2", "0", "29 %", "3.50")
    assert team.players[0].cells == ("–",) * 5
    assert "Ann" in html(board)
    assert not live_board([], numbers, MatchType.DEATHMATCH, NAMES, side=None, is_known=True).is_live


def test_listed_players_are_in_their_teams_with_when_they_came() -> None:
    at = "2026-03-14T20:03:20.000Z"
    roster = [
        RosterPlayer(steam_id=ANN, team=Team.TEAM1, name=EVIL, state=PlayerState.CONNECTED, since=at),
        RosterPlayer(steam_id=BEN, team=Team.TEAM2),
    ]
    numbers = {CID: StoredPlayer(steam_id=CID, name="Cid", team=Team.TEAM2, kills=1)}
    board = live_board(roster, numbers, MatchType.COMPETITIVE, NAMES, side=Side.T, is_known=True)
    assert [(one.name, one.side, len(one.players)) for one in board.teams] == [
        ("Reds", Side.T, 1),
        ("Blues", Side.CT, 2),
    ]
    shown = html(board)
    assert shown.count("<table") == 1
    assert ">20:03</time>" in shown
    assert "never came" in shown
    assert "not listed" in shown
    assert "<img" not in shown
    assert f'href="https://steamcommunity.com/profiles/{ANN}"' in shown
    assert f'data-copy="{ANN}"' in shown


def test_every_heading_is_explained_without_a_pointer() -> None:
    board = final_board([StoredPlayer(steam_id=ANN, team=Team.TEAM1)], MatchType.COMPETITIVE, NAMES)
    assert "TK" not in titles(board)
    shown = html(board)
    for title, meaning in board.heads:
        assert f"<dt>{title}</dt><dd>{meaning}</dd>" in shown


def test_winner_of_a_map_is_marked() -> None:
    players = [
        StoredPlayer(steam_id=ANN, name="Ann", team=Team.TEAM1),
        StoredPlayer(steam_id=BEN, name="Ben", team=Team.TEAM2),
    ]
    board = final_board(players, MatchType.COMPETITIVE, NAMES, winner="team2")
    assert [(one.name, one.has_won) for one in board.teams] == [("Reds", False), ("Blues", True)]
    assert html(board).count("won</b>") == 1
    alone = [StoredPlayer(steam_id=one.steam_id, name=one.name) for one in players]
    (everyone,) = final_board(alone, MatchType.DEATHMATCH, NAMES, winner=ANN).teams
    assert [player.has_won for player in everyone.players] == [True, False]


def test_id_that_is_none_of_steam_has_no_link() -> None:
    board = final_board([StoredPlayer(steam_id="javascript:alert(1)")], MatchType.COMPETITIVE, NAMES)
    assert "href" not in html(board)


def test_casters_and_coaches_are_listed_after_the_players_without_numbers() -> None:
    guests = [
        Guest(steam_id=BEN, role=RosterRole.SPECTATOR, name=EVIL, is_here=True),
        Guest(steam_id=CID, role=RosterRole.COACH2),
    ]
    board = live_board(
        [RosterPlayer(steam_id=ANN, team=Team.TEAM1)],
        {BEN: StoredPlayer(steam_id=BEN, kills=1)},
        MatchType.WINGMAN,
        NAMES,
        side=None,
        is_known=True,
        guests=guests,
    )
    assert [one.name for one in board.teams] == ["Reds", "Casters and coaches"]
    assert [(one.shown, one.role) for one in board.teams[1].players] == [(EVIL, "spectator"), (CID, "coach of Blues")]
    acts = (ActionType.REMOVE_PLAYER,)
    shown = fragment("board_parts.html", "board", board, "Players", "/console/matches/srv", acts).decode()
    assert shown.count('data-act="removePlayer"') == 3
    assert "<img" not in shown
