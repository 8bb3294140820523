"""Tests of the parser of match files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_simulator.plugin.match_file import MatchFile, Rejection, plain_name, read_match
from simulator_tests.plugin.plugin_harness import id64, match


def read(**changes: object) -> MatchFile | Rejection:
    return read_match(json.dumps(match(**changes)).encode())  # type: ignore[arg-type]


def accepted(**changes: object) -> MatchFile:
    read_file = read(**changes)
    assert isinstance(read_file, MatchFile), read_file
    return read_file


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"maplist": None}, "Missing mandatory field: maplist"),
        ({"team1": None}, "Missing mandatory field: team1"),
        ({"team2": None}, "Missing mandatory field: team2"),
        ({"num_maps": None}, "Missing mandatory field: num_maps"),
        ({"matchid": 2**31}, "matchid should be an integer!"),
        ({"matchid": "3f2a"}, "matchid should be an integer!"),
        ({"matchid": True}, "matchid should be an integer!"),
        ({"matchid": 1.5}, "matchid should be an integer!"),
        ({"matchid": "9" * 5000}, "matchid should be an integer!"),
        ({"players_per_team": "five"}, "players_per_team should be an integer!"),
        ({"num_maps": 2}, "map_sides should be equal to or greater than num_maps!"),
        ({"num_maps": 2, "map_sides": None}, "num_maps should be equal to or greater than maplist!"),
        ({"num_maps": 0}, "num_maps should be equal to or greater than maplist!"),
        ({"maplist": []}, "maplist should contain atleast 1 map!"),
        ({"maplist": "de_dust2"}, "maplist should be an Array!"),
        ({"veto_mode": "ban"}, "veto_mode should be an Array!"),
        ({"map_sides": ["ct"]}, 'map_sides should be "team1_ct", "team1_t", or "knife"!'),
        ({"team1": {"name": "A", "players": [id64(1)]}}, "team1 should have 'players' JSON!"),
        ({"team2": {"name": "A"}}, "team2 should have 'players' JSON!"),
        ({"team1": "A"}, "team1 should be a JSON structure!"),
        ({"team1": {"players": {}}}, "team1 has no name"),
        ({"spectators": []}, "spectators should be a JSON structure!"),
        ({"cvars": []}, "cvars should be a JSON structure!"),
        ({"wingman": "maybe"}, "wingman should be a boolean!"),
    ],
)
def test_invalid_match_file_is_rejected_with_a_reason(changes: dict[str, object], reason: str) -> None:
    assert read(**changes) == Rejection(reason)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_invalid_json_is_rejected(body: bytes) -> None:
    assert read_match(body) == Rejection("not JSON", is_readable=False)


def test_lone_surrogates_are_replaced() -> None:
    read_file = accepted(
        team1={"name": "A", "id": "\ud800", "players": {id64(1): "a\udc00"}}, cvars={"x\ud800": "\ud83d"}
    )
    assert (read_file.team1.id, read_file.team1.players, read_file.cvars) == (
        "\ufffd",
        {id64(1): "a\ufffd"},
        {"x\ufffd": "\ufffd"},
    )
    assert accepted(matchid=27, team2={"name": "A", "players": {id64(1): "\U0001f600"}}).team2.players == {
        id64(1): "\U0001f600"
    }


def test_numbers_and_booleans_may_be_strings() -> None:
    read_file = accepted(matchid=" +27 ", wingman="TRUE")
    assert (read_file.match_id, read_file.is_wingman) == (27, True)


def test_values_of_variables_are_converted_to_text() -> None:
    assert accepted(cvars={"a": 1, "b": True, "c": 1.5, "d": None, "e": "x"}).cvars == {
        "a": "1",
        "b": "True",
        "c": "1.5",
        "d": "",
        "e": "x",
    }


def test_team_may_have_an_id_and_forced_names() -> None:
    team = accepted(team1={"id": 5, "name": "A", "players": {id64(1): "Ann"}}).team1
    assert (team.id, team.players) == ("5", {id64(1): "Ann"})


def test_team_name_keeps_letters_digits_spaces_underscores_and_hyphens() -> None:
    assert plain_name('Ätna_Ω-7 "; quit//²') == "Ätna_Ω-7  quit"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["maplist", "team1", "team2", "num_maps", "players", "name", "matchid"]), inner
            )
        ),
    )
)
def test_any_json_is_accepted_or_rejected(value: object) -> None:
    assert isinstance(read_match(json.dumps(value).encode()), MatchFile | Rejection)
