"""Tests of plugin events: real posts are parsed, unreliable fields are ignored, and no body raises."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.game import RoundEndReason, Side, Team
from cs2_protocol.matchzy import (
    MAX_REPORT_BYTES,
    MAX_TEAM_PLAYERS,
    GoingLive,
    Malformed,
    MapResult,
    OtherReport,
    PlayerReport,
    RoundEndReport,
    SeriesEnd,
    SeriesStart,
    read_report,
    report_key,
)
from protocol_tests.effort import examples

PLAYER = "76561197997837923"

STATS = {
    "kills": 17, "deaths": 6, "assists": 5, "flash_assists": 0, "team_kills": 0, "suicides": 0, "damage": 1668,
    "utility_damage": 40, "enemies_flashed": 3, "friendlies_flashed": 0, "knife_kills": 0, "headshot_kills": 9,
    "rounds_played": 15, "bomb_defuses": 0, "bomb_plants": 0, "1k": 0, "2k": 4, "3k": 2, "4k": 1, "5k": 0, "1v1": 1,
    "1v2": 0, "1v3": 0, "1v4": 0, "1v5": 0, "first_kills_t": 0, "first_kills_ct": 0, "first_deaths_t": 0,
    "first_deaths_ct": 0, "trade_kills": 0, "kast": 0, "score": 41, "mvp": 3,
}  # fmt: skip


def team(score: int = 8, *players: object) -> dict[str, object]:
    return {"id": "", "name": "Team Blue", "series_score": 0, "score": score, "score_ct": 0, "score_t": 0,
            "players": list(players)}  # fmt: skip


def round_end(**changes: object) -> dict[str, object]:
    return {
        "map_number": 0,
        "round_number": 15,
        "round_time": 0,
        "reason": 9,
        "winner": {"side": "2", "team": "team2"},
        "team1": team(13, {"steamid": PLAYER, "name": "Ann", "stats": STATS}),
        "team2": team(2),
        "matchid": 18,
        "event": "round_end",
        **changes,
    }


def read(value: object) -> object:
    return read_report(msgspec.json.encode(value))


def read_round(**changes: object) -> RoundEndReport:
    report = read(round_end(**changes))
    assert isinstance(report, RoundEndReport)
    return report


# --- events -----------------------------------------------------------------------------------------------------


def test_real_map_result_is_parsed(corpus: Path) -> None:
    report = read_report((corpus / "matchzy-map-result.json").read_bytes())
    assert report == MapResult("18", 1, 13, 9, Team.TEAM1)


def test_map_numbers_are_converted_to_start_at_one() -> None:
    assert read({"event": "going_live", "matchid": 18, "map_number": 0}) == GoingLive("18", 1)
    assert read_round(map_number=2).map_number == 3


def test_round_end_has_the_statistics_that_the_plugin_fills() -> None:
    assert read_round() == RoundEndReport(
        match_id="18",
        map_number=1,
        round_number=15,
        winner_side=Side.T,
        reason=RoundEndReason.TERRORISTS_WIN,
        team1_score=13,
        team2_score=2,
        players=(
            PlayerReport(
                player_id=PLAYER, name="Ann", team=Team.TEAM1,
                stats={
                    "kills": 17, "deaths": 6, "assists": 5, "damage": 1668, "utility_damage": 40, "enemies_flashed": 3,
                    "headshot_kills": 9, "rounds_played": 15, "2k": 4, "3k": 2, "4k": 1, "5k": 0, "1v1": 1, "1v2": 0,
                    "score": 41, "mvp": 3,
                },
            ),
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (1, RoundEndReason.TARGET_BOMBED),
        (7, RoundEndReason.BOMB_DEFUSED),
        (8, RoundEndReason.CTS_WIN),
        (9, RoundEndReason.TERRORISTS_WIN),
        (10, RoundEndReason.DRAW),
        (11, RoundEndReason.HOSTAGES_RESCUED),
        (12, RoundEndReason.TARGET_SAVED),
        (13, RoundEndReason.HOSTAGES_NOT_RESCUED),
        (16, RoundEndReason.UNKNOWN),
        (17, RoundEndReason.TERRORISTS_SURRENDER),
        (18, RoundEndReason.CTS_SURRENDER),
        (None, RoundEndReason.UNKNOWN),
        ("9", RoundEndReason.UNKNOWN),
    ],
)
def test_round_end_reason_is_converted_from_its_number(number: object, reason: RoundEndReason) -> None:
    assert read_round(reason=number).reason is reason


@pytest.mark.parametrize(
    ("given_side", "side"),
    [
        ("2", Side.T),
        ("3", Side.CT),
        (2, Side.T),
        (3, Side.CT),
        ("ct", Side.CT),
        ("T", Side.T),
        ("1", None),
        (None, None),
    ],
)
def test_winning_side_may_be_number_or_name(given_side: object, side: Side | None) -> None:
    assert read_round(winner={"side": given_side, "team": "team1"}).winner_side is side


def test_round_end_may_have_no_winner() -> None:
    assert read_round(winner=None).winner_side is None


def test_series_start_is_parsed() -> None:
    event = {"event": "series_start", "matchid": "abc", "num_maps": 3, "team1": {"name": "A"}, "team2": {"name": "B"}}
    assert read(event) == SeriesStart("abc", 3, "A", "B")
    assert read({"event": "series_start"}) == SeriesStart("", None, "", "")


@pytest.mark.parametrize(
    ("named", "winner"), [("team1", Team.TEAM1), ("team2", Team.TEAM2), ("none", None), (None, None)]
)
def test_series_end_is_parsed(named: object, winner: Team | None) -> None:
    event = {"event": "series_end", "matchid": 18, "team1_series_score": 2, "team2_series_score": 1,
             "time_until_restore": 10, "winner": {"side": "0", "team": named}}  # fmt: skip
    assert read(event) == SeriesEnd("18", 2, 1, winner)


@pytest.mark.parametrize("event", ["backup_loaded", "match_paused", "side_picked", "player_ready", "knife_round_ended"])
def test_other_events_keep_their_name(event: str) -> None:
    report = read({"event": event, "matchid": 18, "map_number": 0, "winner": "team1"})
    assert isinstance(report, OtherReport)
    assert (report.match_id, report.event) == ("18", event)


# --- players ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry",
    [
        None,
        7,
        {},
        {"steamid": None},
        {"steamid": "0"},
        {"steamid": "BOT"},
        {"steamid": ""},
        {"steamid": "76561197960265728"},
        {"steamid": [PLAYER]},
        {"steamid": True},
    ],
)
def test_bots_and_invalid_ids_are_skipped(entry: object) -> None:
    real = {"steamid": int(PLAYER), "name": "Ann", "stats": {"mvp": 3}}
    report = read_round(team1=team(13, entry), team2=team(2, entry, real))
    assert report.players == (PlayerReport(player_id=PLAYER, name="Ann", team=Team.TEAM2, stats={"mvp": 3}),)


@pytest.mark.parametrize("number", [-1, 1.5, "3", None, True, 10**12])
def test_invalid_count_is_left_out(number: object) -> None:
    report = read_round(team1=team(13, {"steamid": PLAYER, "stats": {"mvp": number, "kills": 2}}))
    assert report.players[0].stats == {"kills": 2}


def test_number_of_players_is_bounded() -> None:
    entries = [{"steamid": str(int(PLAYER) + number)} for number in range(MAX_TEAM_PLAYERS + 5)]
    assert len(read_round(team1=team(1, *entries)).players) == MAX_TEAM_PLAYERS


def test_team_without_a_player_list_has_no_players() -> None:
    assert read_round(team1={"score": 1}).players == ()


def test_long_names_are_truncated() -> None:
    report = read_round(team1=team(1, {"steamid": PLAYER, "name": "n" * 9_000}), matchid="m" * 9_000)
    assert (len(report.players[0].name), len(report.match_id)) == (128, 64)


# --- malformed reports ------------------------------------------------------------------------------------------


def test_match_id_of_thousands_of_digits_is_ignored() -> None:
    report = read_report(b'{"event": "x", "matchid": ' + b"9" * 5_000 + b"}")
    assert isinstance(report, OtherReport)
    assert report.match_id == ""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b'{"event": "\\ud800"}', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not an object"),
        (b"{}", "no event name"),
        (b'{"event": 7}', "no event name"),
        (b'{"event": "going_live"}', "going_live without required fields"),
        (b'{"event": "going_live", "map_number": -1}', "going_live without required fields"),
        (b'{"event": "round_end"}', "round_end without required fields"),
        (b'{"event": "map_result", "map_number": 0, "team1": 1}', "map_result without required fields"),
        (b'{"event": "series_end", "team1_series_score": 1}', "series_end without required fields"),
        (b" " * (MAX_REPORT_BYTES + 1), "more than 262144 bytes"),
    ],
)
def test_malformed_report_has_a_reason(body: bytes, reason: str) -> None:
    report = read_report(body)
    assert isinstance(report, Malformed)
    assert report.reason == reason


words = st.sampled_from(["event", "round_end", "map_result", "map_number", "team1", "team2", "score", "players", "steamid",
                         "stats", "winner", "side", "matchid", "series_end", "series_start", "going_live"])  # fmt: skip
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10) | words
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=6), max_leaves=8
)


@given(st.binary(max_size=60) | values.map(lambda value: msgspec.json.encode(value)))
def test_arbitrary_body_never_raises(body: bytes) -> None:
    report = read_report(body)
    assert report_key(report) == report_key(read_report(body))


@examples(20)
@given(st.dictionaries(words, values, max_size=4))
def test_damaged_round_end_never_raises(changes: dict[str, object]) -> None:
    report_key(read_report(msgspec.json.encode(round_end(**changes))))


# --- keys -------------------------------------------------------------------------------------------------------


def test_key_does_not_depend_on_json_formatting() -> None:
    event = round_end()
    again = dict(reversed(event.items()))
    assert report_key(read_report(msgspec.json.encode(event))) == report_key(
        read_report(msgspec.json.format(msgspec.json.encode(again), indent=2))
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"round_number": 14},
        {"map_number": 1},
        {"matchid": 19},
        {"reason": 1},
        {"team2": team(3)},
        {"event": "map_result"},
    ],
)
def test_different_fact_has_a_different_key(changes: dict[str, object]) -> None:
    first, second = (read_report(msgspec.json.encode(event)) for event in (round_end(), round_end(**changes)))
    assert report_key(first) != report_key(second)


def test_ready_events_of_two_players_have_different_keys() -> None:
    keys = {report_key(read_report(b'{"event": "player_ready", "player": %d}' % player)) for player in (1, 2)}
    assert len(keys) == 2


def test_key_begins_with_the_report_type() -> None:
    assert report_key(read_report(msgspec.json.encode(round_end()))).startswith("round_end:")
