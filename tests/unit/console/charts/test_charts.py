"""What holds for every chart: without numbers it is a sentence, with any names it is well-formed and allowed."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from cs2_protocol.game import Side, Team
from matchpod.console.charts.economy import economy
from matchpod.console.charts.matrices import damage_pairs, kill_matrix
from matchpod.console.charts.opening_duels import opening_duels
from matchpod.console.charts.player_bars import player_bars
from matchpod.console.charts.presence_lanes import presence_lanes
from matchpod.console.charts.round_strip import round_strip
from matchpod.console.charts.score_race import score_race
from matchpod.core.views.progress import RosterPlayer
from matchpod.core.views.result_shapes import StoredPlayer
from matchpod.core.views.timeline_items import Person, PlayerConnectedItem
from tests.unit.console.charts.chart_input import (
    BEN,
    HOSTILE_NAMES,
    START,
    SVG,
    check,
    kill,
    make_map,
    make_player,
    make_round,
    make_team,
    open_round,
    texts,
)

END = "2026-03-14T20:40:00.000Z"
NOTHING_KNOWN = make_round(team1=make_team(None, value=None, buy=None), team2=make_team(None, value=None, buy=None))
RICH = make_team(Side.CT, value=90000)
LISTED = RosterPlayer(steam_id="1", name="Ann", team=Team.TEAM1)


@pytest.mark.parametrize(
    ("chart", "sentence"),
    [
        (kill_matrix([], "Red", "Blue"), "No kills yet."),
        (damage_pairs([make_round()], "Red", "Blue"), "No damage yet."),
        (economy([], "Red", "Blue"), "The log has no equipment values."),
        (economy([NOTHING_KNOWN], "Red", "Blue"), "The log has no equipment values."),
        (opening_duels([], "Red", "Blue"), "No first kills yet."),
        (opening_duels([make_round(players=(make_player(BEN),))], "Red", "Blue"), "No first kills yet."),
        (player_bars([], "Red", "Blue"), "No players with statistics per round."),
        (presence_lanes([], [LISTED], started_at=None, ended_at=END), "Not started yet."),
        (presence_lanes([], [], started_at=START, ended_at=END), "No listed players."),
        (round_strip([], "Red", "Blue"), "No rounds yet."),
        (score_race([], "Red", "Blue"), "No score yet."),
        (score_race([open_round()], "Red", "Blue"), "No score yet."),
    ],
)
def test_chart_without_numbers_is_a_sentence(chart: Markup, sentence: str) -> None:
    assert texts(check(chart), "p") == [sentence]


@pytest.mark.parametrize(
    "chart",
    [
        economy([*make_map(40), make_round(41, team1=RICH, team2=RICH)], "Red", "Blue"),
        score_race(make_map(40), "Red", "Blue"),
        score_race([make_round(number, score=(number, 0)) for number in range(1, 17)], "Red", "Blue"),
        player_bars([StoredPlayer(steam_id="1", rounds_played=9, adr=400.0, kast_percent=100.0)], "Red", "Blue"),
        opening_duels([make_round(first_kill=(BEN, BEN)) for _ in range(40)], "Red", "Blue"),
        presence_lanes([], [LISTED], started_at=START, ended_at=END),
    ],
)
def test_bars_stay_inside_the_drawing(chart: Markup) -> None:
    (drawing,) = check(chart).findall(".//svg:svg", SVG)
    for bar in drawing.findall(".//svg:rect", SVG):
        x, y, width, height = (float(bar.get(key, "")) for key in ("x", "y", "width", "height"))
        assert 0 <= x <= x + width <= float(drawing.get("width", ""))
        assert 0 <= y <= y + height <= float(drawing.get("height", ""))


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_escaped(name: str) -> None:
    names = name, name
    ann, guest = (Person(steam_id="1", name=name, team=team) for team in (Team.TEAM1, None))
    bot = Person(steam_id=None, name=name, team=Team.TEAM1)
    fight = make_round(players=(make_player(ann),), first_kill=(guest, bot), damage_pairs=(("1", "2", 5),))
    averages = [StoredPlayer(steam_id="1", name=name, team=team, rounds_played=24, adr=80.0) for team in (None, *Team)]
    joins = PlayerConnectedItem(seq=1, timestamp=START, round_number=None, player=ann)
    lane = RosterPlayer(steam_id=name, name=name, team=Team.TEAM1)
    check(kill_matrix([kill(ann, BEN), kill(bot, BEN)], *names))
    check(damage_pairs([fight], *names))
    check(economy(make_map(3), *names))
    check(opening_duels([fight], *names))
    check(player_bars(averages, *names))
    check(presence_lanes([joins], [lane], started_at=START, ended_at=END, team1_name=name, team2_name=name))
    assert len(check(round_strip(make_map(3), *names)).findall(".//bdi")) == 2
    check(score_race(make_map(3), *names))
