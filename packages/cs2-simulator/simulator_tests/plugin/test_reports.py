"""Tests of the fields of the plugin's events."""

from __future__ import annotations

import json

from cs2_protocol.game import Side
from cs2_protocol.matchzy import Malformed, read_report
from cs2_simulator.play.counts.tally import Tally
from cs2_simulator.play.player import Participant, Player
from cs2_simulator.play.watcher import RoundEnd
from cs2_simulator.plugin import reports
from cs2_simulator.plugin.match_file import MatchFile, read_match
from cs2_simulator.plugin.series import Series
from simulator_tests.plugin.plugin_harness import id64, match

FILLED = "kills deaths assists damage utility_damage enemies_flashed headshot_kills rounds_played 2k 3k 4k 5k 1v1 1v2 score mvp"
ZERO = (
    "flash_assists team_kills suicides friendlies_flashed knife_kills bomb_defuses bomb_plants 1k 1v3 1v4 1v5 "
    "first_kills_t first_kills_ct first_deaths_t first_deaths_ct trade_kills kast"
)

SCHEMA = (
    "event matchid map_number round_number round_time num_maps team1 team2 winner reason side team id name series_score "
    "score score_ct score_t players steamid stats team1_series_score team2_series_score time_until_restore"
)
"""Field names of the plugin's published schema, without those of player statistics."""


def loaded(**changes: object) -> Series:
    read = read_match(json.dumps(match(**changes)).encode())  # type: ignore[arg-type]
    assert isinstance(read, MatchFile)
    return Series(read, "http://h/m")


def busy_tally() -> Tally:
    """A tally in which no counter is zero."""
    tally = Tally(player_id=id64(1), name="Ann", team=1)
    for number, counter in enumerate(name for name in Tally.__struct_fields__ if isinstance(getattr(tally, name), int)):
        setattr(tally, counter, number + 1)
    return tally


def player(account: int = 1, name: str = "Ann") -> Player:
    return Player(Participant(name, account), 1, team="CT")


def test_map_result_equals_a_real_one() -> None:
    series = loaded(team1={"name": "Team Blue", "players": {}}, matchid=18)
    series.end_map((13, 9))
    real = (
        '{"winner":{"side":"2","team":"team1"},'
        '"team1":{"series_score":1,"score":13,"score_ct":0,"score_t":0,"players":[],"id":"","name":"Team Blue"},'
        '"team2":{"series_score":0,"score":9,"score_ct":0,"score_t":0,"players":[],"id":"","name":"Team Red"},'
        '"map_number":0,"matchid":18,"event":"map_result"}'
    )
    assert reports.encode(reports.map_result(series, 0, (13, 9), Side.T)) == real.encode()


def test_round_end_names_the_leader_of_the_map_and_the_side_that_won_the_round() -> None:
    payload = reports.round_end(loaded(), RoundEnd(Side.T, "Target_Bombed"), (5, 2), ([], []))
    assert payload["winner"] == {"side": "2", "team": "team1"}
    assert (payload["reason"], payload["round_number"], payload["round_time"]) == (1, 7, 0)
    assert list(payload) == [
        "reason",
        "winner",
        "team1",
        "team2",
        "round_time",
        "round_number",
        "map_number",
        "matchid",
        "event",
    ]


def test_player_without_statistics_is_listed_but_bots_are_not() -> None:
    listed = reports.stats_players([player(7, "Zoe"), player(0, "Bert")], [], 3)
    assert [entry["steamid"] for entry in listed] == [id64(7)]
    report = read_report(
        reports.encode(reports.round_end(loaded(), RoundEnd(Side.CT, "CTs_Win"), (1, 0), (listed, [])))
    )
    assert not isinstance(report, Malformed)


def test_text_is_escaped_as_in_dot_net() -> None:
    assert reports.encode({"name": "<Ann> & 'Zoë' +`"}) == (
        rb'{"name":"\u003CAnn\u003E \u0026 \u0027Zo\u00eb\u0027 \u002B\u0060"}'
    )


def test_fields_equal_the_published_schema() -> None:
    series = loaded()
    stats = reports.stats_players([player()], [busy_tally()], 1)
    payloads = [
        reports.series_start(series),
        reports.going_live(series),
        reports.round_end(series, RoundEnd(Side.CT, "CTs_Win"), (1, 0), (stats, [])),
        reports.map_result(series, 0, (1, 0), Side.CT),
        reports.series_end(series, (1, 0), Side.CT),
    ]
    known = {*SCHEMA.split(), *FILLED.split(), *ZERO.split()}
    assert {name for payload in payloads for name in names_in(payload)} == known


def names_in(value: object) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(name for inner in value.values() for name in names_in(inner))]
    return [name for inner in value for name in names_in(inner)] if isinstance(value, list) else []
