"""ADR and KAST of players."""

from __future__ import annotations

from msgspec.structs import replace

from cs2_protocol.game import Team
from matchpod.console.charts.player_bars import player_bars
from matchpod.core.views.result_shapes import StoredPlayer
from tests.unit.console.charts.chart_input import check, texts

ANN = StoredPlayer(
    steam_id="76561198000000001", name="Ann", team=Team.TEAM1, rounds_played=24, adr=83.25, kast_percent=70.8
)


def test_players_are_grouped_by_team_with_the_best_first() -> None:
    players = [ANN, replace(ANN, name="Ben", team=Team.TEAM2), replace(ANN, name="Cid", adr=120.0)]
    tree = check(player_bars(players, "Red", "Blue"))
    names = [text for text in texts(tree, ".//svg:text[@class]") if "ADR" not in text and "KAST" not in text]
    assert names == ["RedRed", "CidCid", "AnnAnn", "BlueBlue", "BenBen"]
    assert texts(tree, ".//tbody/tr[1]/*") == ["Ann", "Red", "83.2", "70.8 %"]


def test_player_without_rounds_has_dashes() -> None:
    tree = check(player_bars([replace(ANN, rounds_played=0, adr=0.0, kast_percent=0.0)], "Red", "Blue"))
    assert texts(tree, ".//tbody/tr/*") == ["Ann", "Red", "–", "–"]


def test_series_has_no_kast() -> None:
    tree = check(player_bars([replace(ANN, kast_percent=None)], "Red", "Blue"))
    assert texts(tree, ".//tbody/tr/*") == ["Ann", "Red", "83.2", "–"]
