from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.errors import InvalidParamsError
from matchpod.core.faults import Fault, FaultCode
from matchpod.core.model import (
    CvarSetting,
    DmSubMode,
    MapsWon,
    MatchRequest,
    MatchType,
    OnNoShow,
    Overtime,
    SeriesFormat,
    TeamRoster,
)
from matchpod.core.requests.validation import (
    MAX_NAMED_REGIONS,
    CvarReading,
    DemoRules,
    RegionRules,
    read_match_request,
    series_maps,
)
from tests.unit.core.requests.shown_faults import shown

REGIONS = {
    "eu-central": RegionRules(),
    "closed": RegionRules(is_active=False),
    "sandbox": RegionRules(is_simulated=True),
}
DEMO_REGIONS = {
    "without": RegionRules(),
    "recorded": RegionRules(demos=DemoRules(is_default=True, tv_delay_s=90)),
    "recordable": RegionRules(demos=DemoRules(tv_delay_s=30)),
}
PLAYERS = [f"765611980000000{number:02}" for number in range(40)]


def read_cvars(text: str, *, allow_simulator: bool) -> CvarReading:
    """A fake parser: `sim` is for simulated servers only, `bad` has an invalid line 2, `huge` is invalid as a whole."""
    if text == "bad":
        return CvarReading(faults=(Fault(FaultCode.FORBIDDEN_CVAR, {"line": 2, "name": "bad"}),))
    if text == "huge":
        return CvarReading(faults=(Fault(FaultCode.TOO_MANY_BYTES, {"maximum": 8192}),))
    if text == "sim" and not allow_simulator:
        return CvarReading(faults=(Fault(FaultCode.SIMULATOR_CVAR, {"line": 1, "name": "sim"}),))
    return CvarReading(settings=(CvarSetting(text, "1"),))


def body(**game_settings: object) -> dict[str, Any]:
    settings = {"matchType": "competitive", "map": "de_nuke", **game_settings}
    return {"region": "eu-central", "gameType": "cs2", "gameSettings": settings}


def deathmatch(**game_settings: object) -> dict[str, Any]:
    return body(matchType="deathmatch", **game_settings)


def teams(team1: object = None, team2: object = None) -> dict[str, object]:
    return {"team1": {} if team1 is None else team1, "team2": {} if team2 is None else team2}


def read(value: object) -> MatchRequest:
    return read_match_request(value, regions=REGIONS, read_cvars=read_cvars)


def error_of(value: object) -> InvalidParamsError:
    with pytest.raises(InvalidParamsError) as caught:
        read(value)
    return caught.value


def faults_of(value: object) -> list[tuple[str, str]]:
    return shown(error_of(value).faults)


# --- valid bodies ------------------------------------------------------------------------------------------------


def test_minimal_body_requests_a_best_of_one() -> None:
    request = read(body())
    assert (request.region, request.game_type) == ("eu-central", "cs2")
    assert (request.callback_url, request.callback_auth_token, request.external_match_id) == (None, None, None)
    game = request.game_settings
    assert (game.match_type, game.maps, game.series_format) == (MatchType.COMPETITIVE, ("de_nuke",), SeriesFormat.BO1)
    assert (game.team1, game.team2, game.players, game.custom_cvars) == (None, None, (), ())


def test_every_field_of_a_series_is_read() -> None:
    request = read(
        {
            **body(
                matchType="wingman",
                maps=["de_vertigo", "workshop/123"],
                seriesFormat="bo3",
                teams=teams({"name": "Astralis", "players": PLAYERS[:2]}, {"name": "NaVi", "players": PLAYERS[2:4]}),
                serverPassword="let me in",
                joinSeconds=90,
                onNoShow="forfeit",
                autoStart=False,
                overtime={"maxRounds": 4, "startMoney": 0},
                mapsWon={"team2": 1},
                freezeTime=30.0,
                maxRounds=16,
                customCvars="mp_buytime",
            ),
            "callbackUrl": "https://a.example/cb",
            "callbackAuthToken": "Bearer x",
            "externalMatchId": "cup-7",
        }
    )
    assert (request.callback_url, request.callback_auth_token) == ("https://a.example/cb", "Bearer x")
    assert request.external_match_id == "cup-7"
    game = request.game_settings
    assert game.maps == ("de_nuke", "de_vertigo")
    assert (game.maps_won, game.map_count) == (MapsWon(0, 1), 2)
    assert (game.auto_start, game.overtime) == (False, Overtime(enabled=True, max_rounds=4, start_money=0))
    assert game.series_format is SeriesFormat.BO3
    assert game.team1 == TeamRoster("Astralis", tuple(PLAYERS[:2]))
    assert game.team2 == TeamRoster("NaVi", tuple(PLAYERS[2:4]))
    assert (game.server_password, game.freeze_time, game.max_rounds) == ("let me in", 30, 16)
    assert type(game.freeze_time) is int
    assert (game.join_seconds, game.on_no_show) == (90, OnNoShow.FORFEIT)
    assert game.custom_cvars == (CvarSetting("mp_buytime", "1"),)


def test_every_field_of_a_deathmatch_is_read() -> None:
    game = read(deathmatch(players=PLAYERS[:3], dmSubMode="team", dmRoundMinutes=7.5)).game_settings
    assert game.players == tuple(PLAYERS[:3])
    assert (game.dm_sub_mode, game.dm_round_minutes) == (DmSubMode.TEAM, 7.5)
    assert game.roster == tuple(PLAYERS[:3])


def test_names_and_players_of_teams_are_optional() -> None:
    game = read(body(teams=teams({"players": PLAYERS[:1]}, {"name": "NaVi"}))).game_settings
    assert game.team1 == TeamRoster("Team 1", (PLAYERS[0],))
    assert game.team2 == TeamRoster("NaVi", ())
    assert read(body(teams=teams())).game_settings.team2 == TeamRoster("Team 2", ())


def test_validation_does_not_modify_the_body() -> None:
    value = body(teams=teams({"players": PLAYERS[:2]}), maps=["de_nuke"])
    before = copy.deepcopy(value)
    read(value)
    assert value == before


def test_match_without_a_series_plays_one_map() -> None:
    for match_type in ["casual", "deathmatch", "retakes", "custom"]:
        assert read(body(matchType=match_type, maps=["de_dust2"])).game_settings.maps == ("de_nuke",)


def test_series_plays_map_then_maps_and_repeats_them() -> None:
    for series_format, pool, maps in [
        ("bo1", ["de_dust2"], ("de_nuke",)),
        ("bo3", [], ("de_nuke",) * 3),
        ("bo3", ["de_dust2"], ("de_nuke", "de_dust2", "de_nuke")),
        ("bo3", ["de_nuke", "de_dust2", "de_dust2", "de_train"], ("de_nuke", "de_dust2", "de_train")),
        ("bo5", ["a", "b"], ("de_nuke", "a", "b", "de_nuke", "a")),
        ("bo3", ["a", "b", "c", "d"], ("de_nuke", "a", "b")),
    ]:
        assert read(body(seriesFormat=series_format, maps=pool)).game_settings.maps == maps


@given(st.sampled_from("abc"), st.lists(st.sampled_from("abcdef"), max_size=8), st.sampled_from([1, 3, 5]))
def test_no_map_is_repeated_before_all_others_are_played(first: str, pool: list[str], length: int) -> None:
    maps = series_maps(first, pool, length)
    distinct = len({first, *pool})
    assert len(maps) == length
    assert maps[0] == first
    assert len(set(maps[:distinct])) == min(distinct, length)


# --- sides -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("series_format", "sides"),
    [("bo1", ["team1_t"]), ("bo3", ["knife", "team1_ct", "knife"]), ("bo5", ["team1_t"] * 4 + ["knife"])],
)
@pytest.mark.parametrize("match_type", ["competitive", "wingman"])
def test_sides_are_read_for_each_map(match_type: str, series_format: str, sides: list[str]) -> None:
    given = body(matchType=match_type, seriesFormat=series_format, sides=sides, teams=teams({"players": PLAYERS[:1]}))
    assert read(given).game_settings.sides == tuple(sides)


def test_sides_are_optional() -> None:
    assert read(body(seriesFormat="bo3")).game_settings.sides == ()
    assert read(body(seriesFormat="bo3", sides=None)).game_settings.sides == ()


def test_sides_must_be_given_for_all_maps_of_the_series() -> None:
    for count in [0, 1, 2, 4]:
        message = f"must have 3 entries, one for each map of the series, not {count}"
        value = body(seriesFormat="bo3", sides=["team1_ct"] * count)
        assert faults_of(value) == [("gameSettings.sides", message)]


def test_all_faults_of_the_sides_are_reported() -> None:
    faults = faults_of(body(sides=["ct", 1, "team1_ct", "knife"], seriesFormat="bo3"))
    assert [path.removeprefix("gameSettings.") for path, _ in faults] == ["sides[0]", "sides[1]", "sides[3]", "sides"]
    assert faults[0][1] == "must be one of team1_ct, team1_t, knife"


def test_number_of_sides_is_not_reported_for_an_invalid_format() -> None:
    assert faults_of(body(seriesFormat="bo2", sides=["team1_t", "team1_ct"])) == [
        ("gameSettings.seriesFormat", "must be one of bo1, bo3, bo5")
    ]


@pytest.mark.parametrize("given", [{}, {"teams": {"team1": {}, "team2": {"name": "Reds"}}}])
def test_knife_round_needs_a_listed_player(given: dict[str, object]) -> None:
    ((path, message),) = faults_of(body(sides=["knife"], **given))
    assert path == "gameSettings.sides[0]"
    assert message.startswith("must not be knife in a match without listed players")
    assert read(body(sides=["team1_t"], **given)).game_settings.sides == ("team1_t",)


def test_knife_round_is_no_fault_beside_an_invalid_roster() -> None:
    paths = [path for path, _ in faults_of(body(sides=["knife"], teams=teams({"players": ["x"]}, {})))]
    assert paths == ["gameSettings.teams.team1.players[0]"]
    assert [path for path, _ in faults_of(body(sides=["knife"], teams={"team1": {}}))] == ["gameSettings.teams.team2"]


# --- faults of the body ------------------------------------------------------------------------------------------


def test_body_that_is_not_an_object_is_one_fault() -> None:
    for value in [None, [], "x", 3, True, [body()]]:
        assert faults_of(value) == [("", "must be a JSON object")]
        assert str(error_of(value)) == "the request body must be a JSON object"


def test_missing_required_fields_are_reported() -> None:
    missing = [("region", "is required"), ("gameType", "is required"), ("gameSettings", "is required")]
    assert faults_of({}) == missing
    assert faults_of({"region": None, "gameType": None, "gameSettings": None}) == missing
    value = body() | {"gameSettings": {}}
    assert faults_of(value) == [("gameSettings.matchType", "is required"), ("gameSettings.map", "is required")]


def test_invalid_field_of_the_body_is_reported() -> None:
    for field, value, message in [
        ("region", "mars", "is not a known region; known regions: eu-central, closed, sandbox"),
        (
            "region",
            "eu-centrale",
            "is not a known region; did you mean eu-central? Known regions: eu-central, closed, sandbox",
        ),
        ("region", "closed", "is not accepting new servers"),
        ("region", 5, "must be a string"),
        ("gameType", "csgo", "must be cs2"),
        ("gameType", ["cs2"], "must be a string"),
        ("gameSettings", [], "must be a JSON object"),
        ("gameSettings", "x", "must be a JSON object"),
        ("callbackUrl", "ftp://x/", "must be an absolute http or https URL"),
        ("callbackUrl", 1, "must be a string"),
        ("callbackAuthToken", "a\r\nb", "must be visible ASCII characters, with whitespace only between them"),
        ("externalMatchId", "", "must be 1 to 255 characters"),
        ("externalMatchId", 7, "must be a string"),
        ("callbackURL", "http://x/", "is not a known field; did you mean callbackUrl?"),
    ]:
        assert faults_of(body() | {field: value}) == [(field, message)]


def test_invalid_setting_is_reported() -> None:
    for field, value, message in [
        ("matchType", "ranked", "must be one of competitive, casual, deathmatch, wingman, retakes, custom"),
        ("map", "de nuke", "must be a map name (1 to 64 of a-z 0-9 _) or workshop/ followed by the item's number"),
        ("map", True, "must be a string"),
        ("maps", "de_nuke", "must be an array of strings"),
        ("maps", ["a"] * 65, "must list at most 64 maps"),
        ("seriesFormat", "bo7", "must be one of bo1, bo3, bo5"),
        ("sides", "team1_ct", "must be an array of strings"),
        ("sides", [], "must have 1 entry, for the only map, not 0"),
        ("sides", ["team1_ct", "team1_t"], "must have 1 entry, for the only map, not 2"),
        ("teams", [], "must be a JSON object"),
        ("serverPassword", "a;b", "must not contain quotes or semicolons (found ;)"),
        ("joinSeconds", 59, "must be at least 60"),
        ("joinSeconds", 3601, "must be at most 3600"),
        ("onNoShow", "win", "must be one of cancel, forfeit"),
        ("autoStart", "false", "must be true or false"),
        ("autoStart", 0, "must be true or false"),
        ("recordDemo", "true", "must be true or false"),
        ("overtime", True, "must be a JSON object"),
        ("mapsWon", [1, 0], "must be a JSON object"),
        ("freezeTime", -1, "must be at least 0"),
        ("freezeTime", 61, "must be at most 60"),
        ("freezeTime", 1.5, "must be a whole number"),
        ("maxRounds", 0, "must be at least 1"),
        ("maxRounds", 201, "must be at most 200"),
        ("maxRounds", True, "must be a number"),
        ("maxRounds", "24", "must be a number"),
        ("maxRounds", float("nan"), "must be a finite number"),
        ("maxRounds", 10**400, "must be at most 200"),
        ("customCvars", ["mp_buytime 1"], "must be a string"),
        ("customCvars", "bad", "line 2: bad may not be set by a match"),
        ("customCvars", "huge", "must be at most 8192 bytes"),
        ("maxRound", 3, "is not a known field; did you mean maxRounds?"),
        ("dmSubMode", "ffa", "is only for matchType deathmatch, not competitive"),
        ("dmRoundMinutes", 5, "is only for matchType deathmatch, not competitive"),
        ("players", [], "is only for matchType deathmatch, not competitive"),
    ]:
        assert faults_of(body(**{field: value})) == [(f"gameSettings.{field}", message)]


def test_invalid_setting_of_a_deathmatch_is_reported() -> None:
    for field, value, message in [
        ("players", "x", "must be an array of strings"),
        ("players", PLAYERS[:33], "must list at most 32 players"),
        ("dmSubMode", "solo", "must be one of ffa, team"),
        ("dmRoundMinutes", 0.5, "must be at least 1"),
        ("dmRoundMinutes", 1440.5, "must be at most 1440"),
        ("dmRoundMinutes", 10**400, "must be at most 1440"),
        ("dmRoundMinutes", False, "must be a number"),
        ("onNoShow", "forfeit", "is only for matchType competitive or wingman, not deathmatch"),
        ("autoStart", False, "is only for matchType competitive or wingman, not deathmatch"),
        ("recordDemo", True, "is only for matchType competitive or wingman, not deathmatch"),
        ("overtime", {}, "is only for matchType competitive or wingman, not deathmatch"),
        ("mapsWon", {"team1": 1}, "is only for matchType competitive or wingman, not deathmatch"),
        ("seriesFormat", "bo3", "is only for matchType competitive or wingman, not deathmatch"),
        ("spectators", [PLAYERS[0]], "is only for matchType competitive or wingman, not deathmatch"),
        ("sides", ["knife", "x"], "is only for matchType competitive or wingman, not deathmatch"),
        ("teams", {"team1": {}, "team2": {}}, "is only for matchType competitive or wingman, not deathmatch"),
    ]:
        assert faults_of(deathmatch(**{field: value})) == [(f"gameSettings.{field}", message)]


@pytest.mark.parametrize("match_type", ["casual", "retakes", "custom"])
def test_teams_and_players_are_rejected_in_other_modes(match_type: str) -> None:
    paths = [path for path, _ in faults_of(body(matchType=match_type, teams=teams(), players=PLAYERS[:1]))]
    assert paths == ["gameSettings.players", "gameSettings.teams", "gameSettings.players"]


def test_players_and_teams_exclude_each_other() -> None:
    assert ("gameSettings.players", "must not be set together with teams") in faults_of(
        deathmatch(players=PLAYERS[:1], teams=teams())
    )
    without_type = body(players=PLAYERS[:1], teams=teams(), matchType="?")
    assert ("gameSettings.players", "must not be set together with teams") in faults_of(without_type)


def test_both_teams_are_required_and_unknown_fields_are_rejected() -> None:
    value = body(teams={"team1": {"nam": "x"}, "team3": {}})
    assert faults_of(value) == [
        ("gameSettings.teams.team3", "is not a known field; did you mean team2?"),
        ("gameSettings.teams.team1.nam", "is not a known field; did you mean name?"),
        ("gameSettings.teams.team2", "is required"),
    ]
    assert faults_of(body(teams=teams([], 7))) == [
        ("gameSettings.teams.team1", "must be a JSON object"),
        ("gameSettings.teams.team2", "must be a JSON object"),
    ]


def test_invalid_team_name_is_not_replaced_by_the_default() -> None:
    assert faults_of(body(teams=teams({"name": ""}, {"name": "a;b"}))) == [
        ("gameSettings.teams.team1.name", "must be 1 to 32 characters"),
        ("gameSettings.teams.team2.name", "must not contain ;"),
    ]


def test_each_invalid_player_is_reported_with_the_index() -> None:
    value = deathmatch(players=[PLAYERS[0], 76561198000000001, "x", PLAYERS[1], PLAYERS[0]])
    assert faults_of(value) == [
        ("gameSettings.players[1]", "must be a string"),
        ("gameSettings.players[2]", "must be a 64-bit player ID: 17 digits starting with 7656119"),
        ("gameSettings.players[4]", "is already listed at gameSettings.players[0]"),
    ]


def test_player_in_both_teams_is_rejected() -> None:
    value = body(teams=teams({"players": PLAYERS[:2]}, {"players": [PLAYERS[2], PLAYERS[1]]}))
    assert faults_of(value) == [
        ("gameSettings.teams.team2.players[1]", "is already listed at gameSettings.teams.team1.players[1]")
    ]


def test_both_teams_together_list_at_most_32_players() -> None:
    assert (
        len(read(body(teams=teams({"players": PLAYERS[:16]}, {"players": PLAYERS[16:32]}))).game_settings.roster) == 32
    )
    value = body(teams=teams({"players": PLAYERS[:16]}, {"players": PLAYERS[16:33]}))
    assert faults_of(value) == [("gameSettings.teams", "must list at most 32 players, coaches and spectators together")]


def test_coaches_and_spectators_are_listed_beside_the_players() -> None:
    value = body(teams=teams({"players": PLAYERS[:2], "coaches": [PLAYERS[2]]}), spectators=PLAYERS[3:5])
    settings = read(value).game_settings
    assert settings.team1 == TeamRoster("Team 1", tuple(PLAYERS[:2]), (PLAYERS[2],))
    assert (settings.spectators, settings.roster) == (tuple(PLAYERS[3:5]), tuple(PLAYERS[:2]))


def test_person_is_listed_once_over_players_coaches_and_spectators() -> None:
    value = body(teams=teams({"players": PLAYERS[:1]}, {"coaches": [PLAYERS[0]]}), spectators=[PLAYERS[0], "x"])
    assert faults_of(value) == [
        ("gameSettings.teams.team2.coaches[0]", "is already listed at gameSettings.teams.team1.players[0]"),
        ("gameSettings.spectators[1]", "must be a 64-bit player ID: 17 digits starting with 7656119"),
        ("gameSettings.spectators[0]", "is already listed at gameSettings.teams.team1.players[0]"),
    ]


def test_at_most_32_people_are_listed() -> None:
    listed = teams({"players": PLAYERS[:30], "coaches": [PLAYERS[30]]})
    assert len(read(body(teams=listed, spectators=[PLAYERS[31]])).game_settings.spectators) == 1
    assert faults_of(body(teams=listed, spectators=PLAYERS[31:33])) == [
        ("gameSettings.spectators", "must list at most 32 players, coaches and spectators together")
    ]


def test_coaches_need_a_listed_player() -> None:
    assert faults_of(body(teams=teams({"coaches": [PLAYERS[0]]}))) == [
        ("gameSettings.teams.team1.coaches", "need listed players: the match plugin seats coaches, and runs only then")
    ]


@pytest.mark.parametrize("given", [{}, {"teams": teams()}, {"teams": teams({"players": PLAYERS[:5]})}])
def test_forfeit_needs_listed_players_in_both_teams(given: dict[str, object]) -> None:
    ((path, message),) = faults_of(body(onNoShow="forfeit", **given))
    assert path == "gameSettings.onNoShow"
    assert message.startswith("must not be forfeit unless both teams list players")
    assert read(body(onNoShow="cancel", **given)).game_settings.on_no_show is OnNoShow.CANCEL


def test_forfeit_is_no_fault_beside_an_invalid_roster() -> None:
    paths = [path for path, _ in faults_of(body(onNoShow="forfeit", teams=teams({"players": ["x"]}, {})))]
    assert paths == ["gameSettings.teams.team1.players[0]"]


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        ({"overtime": {"maxRounds": 5}}, "overtime.maxRounds", "must be an even number: overtime has two halves"),
        ({"overtime": {"maxRounds": 0}}, "overtime.maxRounds", "must be at least 2"),
        ({"overtime": {"startMoney": 65_536}}, "overtime.startMoney", "must be at most 65535"),
        ({"overtime": {"enabled": 1}}, "overtime.enabled", "must be true or false"),
        ({"overtime": {"rounds": 6}}, "overtime.rounds", "is not a known field; did you mean maxRounds?"),
        ({"mapsWon": {"team1": 1}}, "mapsWon.team1", "must be less than 1, with which a bo1 is won"),
        (
            {"mapsWon": {"team2": 2}, "seriesFormat": "bo3"},
            "mapsWon.team2",
            "must be less than 2, with which a bo3 is won",
        ),
        ({"mapsWon": {"team1": -1}}, "mapsWon.team1", "must be at least 0"),
        ({"mapsWon": {"team1": 1.5}, "seriesFormat": "bo5"}, "mapsWon.team1", "must be a whole number"),
    ],
)
def test_invalid_field_of_an_object_is_reported(given: dict[str, object], path: str, message: str) -> None:
    assert faults_of(body(**given)) == [(f"gameSettings.{path}", message)]


def test_given_maps_are_not_checked_beside_an_invalid_format() -> None:
    assert [path for path, _ in faults_of(body(seriesFormat="bo2", mapsWon={"team1": 1}))] == [
        "gameSettings.seriesFormat"
    ]


@pytest.mark.parametrize(("team1", "team2", "count"), [(0, 0, 5), (1, 0, 4), (2, 1, 2), (2, 2, 1)])
def test_one_map_less_is_played_for_each_that_a_team_was_given(team1: int, team2: int, count: int) -> None:
    given = {"seriesFormat": "bo5", "maps": ["de_mirage"], "mapsWon": {"team1": team1, "team2": team2}}
    assert len(read(body(**given)).game_settings.maps) == count
    assert read(body(**given, sides=["team1_t"] * count)).game_settings.sides == ("team1_t",) * count
    ((path, _),) = faults_of(body(**given, sides=["team1_t"] * (count + 1)))
    assert path == "gameSettings.sides"


def test_deathmatch_has_a_time_to_join() -> None:
    assert read(deathmatch(joinSeconds=3600)).game_settings.join_seconds == 3600


def test_simulator_variables_are_allowed_in_simulated_regions_only() -> None:
    value = body(customCvars="sim")
    assert faults_of(value) == [("gameSettings.customCvars", "line 1: sim is only allowed in simulator regions")]
    assert read(value | {"region": "sandbox"}).game_settings.custom_cvars == (CvarSetting("sim", "1"),)
    # An unknown region is the only fault: it may be a misspelled simulated region.
    assert [path for path, _ in faults_of(value | {"region": "sandbx"})] == ["region"]


def test_all_faults_are_reported_at_once() -> None:
    value = {"region": "mars", "gameSettings": {"matchType": "casual", "maxRounds": 0, "freezeTime": "x"}, "extra": 1}
    error = error_of(value)
    assert [str(fault.path) for fault in error.faults] == [
        "extra",
        "region",
        "gameType",
        "gameSettings.map",
        "gameSettings.freezeTime",
        "gameSettings.maxRounds",
    ]
    assert str(error) == "6 faults in the request body"
    assert (error.status, error.code) == (400, "INVALID_PARAMS")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
PATHS = [
    ("region",),
    ("gameType",),
    ("callbackUrl",),
    ("callbackAuthToken",),
    ("externalMatchId",),
    ("gameSettings",),
    *(
        ("gameSettings", name)
        for name in ("matchType", "map", "maps", "seriesFormat", "teams", "players", "serverPassword")
    ),
    *(
        ("gameSettings", name)
        for name in ("dmSubMode", "dmRoundMinutes", "freezeTime", "maxRounds", "customCvars", "x")
    ),
    ("gameSettings", "teams", "team1"),
    ("gameSettings", "teams", "team1", "name"),
    ("gameSettings", "teams", "team2", "players"),
]


@given(st.sampled_from(PATHS), JSON)
def test_any_json_in_any_field_gives_a_match_or_encodable_faults(path: tuple[str, ...], value: object) -> None:
    changed = body(teams=teams({"name": "A"}, {"players": PLAYERS[:1]}))
    place = changed
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    answer: object
    try:
        answer = read(changed)
    except InvalidParamsError as error:
        answer = [str(error), shown(error.faults)]
    msgspec.json.encode(answer)


def test_fault_of_an_unknown_region_names_a_limited_number() -> None:
    regions = {f"r{number}": RegionRules(is_active=True, is_simulated=False) for number in range(100)}
    with pytest.raises(InvalidParamsError) as caught:
        read_match_request(body() | {"region": "mars"}, regions=regions, read_cvars=read_cvars)
    assert caught.value.faults[0].message.count(",") == MAX_NAMED_REGIONS - 1


# --- demos --------------------------------------------------------------------------------------------------------


LISTED = teams({"players": PLAYERS[:1]}, {})


def recorded_in(region: str, value: dict[str, Any]) -> MatchRequest:
    return read_match_request({**value, "region": region}, regions=DEMO_REGIONS, read_cvars=read_cvars)


def recording_faults(region: str, value: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidParamsError) as caught:
        recorded_in(region, value)
    return shown(caught.value.faults)


@pytest.mark.parametrize(
    ("region", "given", "recorded"),
    [
        ("without", {}, (False, 0)),
        ("without", {"recordDemo": False}, (False, 0)),
        ("recorded", {}, (True, 90)),
        ("recorded", {"recordDemo": None}, (True, 90)),
        ("recorded", {"recordDemo": False}, (False, 0)),
        ("recordable", {}, (False, 0)),
        ("recordable", {"recordDemo": True}, (True, 30)),
    ],
)
def test_match_with_listed_players_is_recorded_as_its_caller_or_its_region_says(
    region: str, given: dict[str, object], recorded: tuple[bool, int]
) -> None:
    game = recorded_in(region, body(teams=LISTED, **given)).game_settings
    assert (game.record_demo, game.tv_delay_s) == recorded


@pytest.mark.parametrize("value", [body(), body(teams=teams()), deathmatch(players=PLAYERS[:2])])
def test_region_that_records_does_not_record_what_the_plugin_does_not_run(value: dict[str, Any]) -> None:
    assert not recorded_in("recorded", value).game_settings.record_demo


def test_recording_needs_a_storage() -> None:
    ((path, message),) = recording_faults("without", body(recordDemo=True, teams=LISTED))
    assert path == "gameSettings.recordDemo"
    assert message.startswith("must not be true: this service stores no demos")


@pytest.mark.parametrize("listed", [{}, {"teams": teams()}])
def test_recording_needs_listed_players(listed: dict[str, object]) -> None:
    ((path, message),) = recording_faults("recordable", body(recordDemo=True, **listed))
    assert path == "gameSettings.recordDemo"
    assert message.startswith("must not be true unless players are listed")


def test_invalid_players_are_the_only_fault_of_a_recorded_match() -> None:
    listed = teams({"players": ["x"]}, {})
    paths = [path for path, _ in recording_faults("recordable", body(recordDemo=True, teams=listed))]
    assert paths == ["gameSettings.teams.team1.players[0]"]
