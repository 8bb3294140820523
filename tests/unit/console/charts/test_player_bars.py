"""ADR and KAST of players."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.game import Team
from matchpod.console.charts.player_bars import player_bars
from matchpod.core.views.result_shapes import StoredPlayer
from tests.unit.console.charts.chart_input import HOSTILE_NAMES, check, texts

NUMBERS = {
    "steamId": "76561198000000001",
    "name": "Ann",
    "team": "team1",
    "adr": 83.25,
    "roundsPlayed": 24,
    "mvps": None,
    "hsPercent": 50.0,
    "kdRatio": 1.0,
    "kastPercent": 70.8,
    "impactRating": 1.0,
    "extraStats": None,
} | dict.fromkeys(
    (
        "kills", "deaths", "assists", "headshots", "damageDealt", "utilityDamage", "pistolKills", "sniperKills",
        "flashAssists", "firstKills", "firstDeaths", "entryKills", "tradeKills", "bombPlants", "bombDefuses",
        "clutchWins",
    ),
    0,
)  # fmt: skip


def player(**changes: object) -> StoredPlayer:
    return msgspec.structs.replace(msgspec.convert(NUMBERS, StoredPlayer), **changes)


def test_players_are_grouped_by_team_with_the_best_first() -> None:
    players = [player(), player(name="Ben", team=Team.TEAM2), player(name="Cid", adr=120.0)]
    tree = check(player_bars(players, "Red", "Blue"))
    names = [text for text in texts(tree, ".//svg:text[@class]") if "ADR" not in text and "KAST" not in text]
    assert names == ["RedRed", "CidCid", "AnnAnn", "BlueBlue", "BenBen"]
    assert texts(tree, ".//tbody/tr[1]/*") == ["Ann", "Red", "83.2", "70.8 %"]


def test_player_without_rounds_has_dashes() -> None:
    tree = check(player_bars([player(rounds_played=0, adr=0.0, kast_percent=0.0)], "Red", "Blue"))
    assert texts(tree, ".//tbody/tr/*") == ["Ann", "Red", "–", "–"]


def test_series_has_no_kast() -> None:
    overall = msgspec.structs.replace(player(), kast_percent=None)
    assert texts(check(player_bars([overall], "Red", "Blue")), ".//tbody/tr/*") == ["Ann", "Red", "83.2", "–"]


def test_long_bars_fit() -> None:
    tree = check(player_bars([player(adr=400.0), player(adr=10.0)], "Red", "Blue"))
    widths = [float(bar.get("width", "")) for bar in tree.findall(".//{http://www.w3.org/2000/svg}rect")]
    assert max(widths) < 180


def test_nothing_is_drawn_without_players() -> None:
    assert texts(check(player_bars([], "Red", "Blue")), "p") == ["No players with statistics per round."]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_escaped(name: str) -> None:
    check(player_bars([player(name=name), player(name=name, team=None)], name, name))
