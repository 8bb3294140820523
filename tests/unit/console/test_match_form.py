"""The form for a new match: its fields, the body that it makes, and where faults are shown."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from matchpod.console import match_form
from matchpod.console.match_form import FIELDS, FormFaults, default_values, given_values, read_body, read_faults
from matchpod.core.errors import InvalidParamsError
from matchpod.core.model import MatchType
from matchpod.core.requests import text_rules
from matchpod.core.requests.validation import RegionRules, read_match_request
from matchpod.cs2.cvars import read_custom_cvars

PLAYER = "76561198000000001"
REGIONS = {"sandbox": RegionRules(is_simulated=True), "eu": RegionRules()}


def sandbox(**values: str) -> dict[str, str]:
    """Return the form of a sandbox with other values in it."""
    return {**default_values(region="sandbox", is_sandbox=True, external_id="demo-1"), **values}


def empty(**values: str) -> dict[str, str]:
    return {**default_values(region="eu", is_sandbox=False, external_id=""), **values}


def settings_of(values: Mapping[str, str]) -> dict[str, object]:
    settings = read_body(values)["gameSettings"]
    assert isinstance(settings, dict)
    return settings


def faults_of(values: Mapping[str, str]) -> FormFaults:
    """Return what the form shows after the service has validated its body."""
    try:
        read_match_request(read_body(values), regions=REGIONS, read_cvars=read_custom_cvars)
    except InvalidParamsError as exc:
        return read_faults(values, exc.faults)
    return FormFaults()


@pytest.mark.parametrize("match_type", MatchType)
def test_new_form_of_a_sandbox_can_be_sent_for_every_match_type(match_type: MatchType) -> None:
    assert faults_of(sandbox(matchType=match_type)) == FormFaults()
    assert faults_of(empty(matchType=match_type)) == FormFaults()


@pytest.mark.parametrize(
    ("given", "body"), [("", {}), ("true", {"recordDemo": True}), ("false", {"recordDemo": False})]
)
def test_form_asks_for_demos_if_it_says_so(given: str, body: dict[str, object]) -> None:
    settings = settings_of(sandbox(recordDemo=given))
    assert {name: value for name, value in settings.items() if name == "recordDemo"} == body


def test_new_form_of_other_regions_lists_no_made_up_players() -> None:
    assert settings_of(empty()) == {"matchType": "competitive", "map": "de_dust2", "seriesFormat": "bo1"}


def test_limits_choices_and_texts_are_those_of_the_request() -> None:
    assert FIELDS["team1Name"].max_length == text_rules.MAX_TEAM_NAME
    assert FIELDS["serverPassword"].max_length == text_rules.MAX_PASSWORD
    assert "From 0 to 60." in FIELDS["freezeTime"].help
    assert FIELDS["seriesFormat"].choices == (("bo1", "best of 1"), ("bo3", "best of 3"), ("bo5", "best of 5"))
    assert [value for value, _ in FIELDS["matchType"].choices] == list(MatchType)
    assert FIELDS["externalMatchId"].help == "Your own id for the match; need not be unique."
    assert match_form.match_types_of("teams") == ["competitive", "wingman"]
    assert match_form.match_types_of("players") == ["deathmatch"]


def test_all_fields_reach_the_body() -> None:
    values = sandbox(
        map2=" de_nuke ", map4="de_train", seriesFormat="bo3", freezeTime="0", maxRounds="24", serverPassword="s3cret",
        customCvars="mp_maxmoney 16000\n", scenario="pauses", callbackUrl=" https://example.com/cb",
        callbackAuthToken="Bearer x", labels=" event : finals\n\nat:12:30\n",
    )  # fmt: skip
    body = read_body(values)
    assert body["callbackUrl"] == "https://example.com/cb"
    assert body["callbackAuthToken"] == "Bearer x"
    settings = settings_of(values)
    assert settings["maps"] == ["de_nuke", "de_train"]
    assert (settings["freezeTime"], settings["maxRounds"]) == (0, 24)
    assert settings["customCvars"] == "mp_maxmoney 16000\nsim_scenario pauses"
    assert settings["serverPassword"] == "s3cret"
    assert settings["labels"] == {"event": "finals", "at": "12:30"}


def test_fields_of_objects_reach_the_body() -> None:
    assert not {"autoStart", "onNoShow", "overtime", "mapsWon"} & settings_of(sandbox()).keys()
    values = sandbox(
        joinSeconds="90", onNoShow="forfeit", autoStart="false", seriesFormat="bo3", mapsWonTeam2="1",
        overtimeEnabled="true", overtimeMaxRounds="4", overtimeStartMoney="12500",
    )  # fmt: skip
    settings = settings_of(values)
    assert (settings["joinSeconds"], settings["onNoShow"], settings["autoStart"]) == (90, "forfeit", False)
    assert settings["mapsWon"] == {"team2": 1}
    assert settings["overtime"] == {"enabled": True, "maxRounds": 4, "startMoney": 12500}
    assert faults_of(values) == FormFaults()


def test_fields_of_other_match_types_are_left_out() -> None:
    values = sandbox(matchType="deathmatch", players=PLAYER, dmSubMode="team", dmRoundMinutes="7,5")
    assert settings_of(values) == {
        "matchType": "deathmatch",
        "map": "de_dust2",
        "players": [PLAYER],
        "dmSubMode": "team",
        "dmRoundMinutes": 7.5,
    }
    assert "players" not in settings_of({**values, "matchType": "competitive"})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("region", "mars", "Is not a known region"),
        ("recordDemo", "true", "Must not be true: this service stores no demos"),
        ("matchType", "chess", "Must be one of competitive"),
        ("seriesFormat", "bo9", "Must be one of bo1"),
        ("map1", "", "Is required."),
        ("map1", "De Dust", "Must be a map name"),
        ("map3", "x y", "Must be a map name"),
        ("team1Name", "a;b", "Must not contain ;."),
        ("team2Name", "x" * 33, "Must be 1 to 32 characters."),
        ("freezeTime", "soon", "Must be a number."),
        ("freezeTime", "9" * 5000, "Must be a number."),
        ("freezeTime", "61", "Must be at most 60."),
        ("maxRounds", "1.5", "Must be a whole number."),
        ("mapsWonTeam1", "1", "Must be less than 1"),
        ("overtimeMaxRounds", "5", "Must be an even number"),
        ("overtimeStartMoney", "much", "Must be a number."),
        ("autoStart", "maybe", "Must be true or false."),
        ("serverPassword", "none", 'Must not be "none"'),
        ("callbackUrl", "ftp://x", "Must be an absolute http or https URL."),
        ("callbackAuthToken", " x", "Must be visible ASCII"),
        ("labels", "round 1: x", "Round 1 must have a name of 1 to 32 of"),
        ("labels", "finals", "Finals must be 1 to 64 characters."),
        ("labels", "\n".join(f"n{at}: x" for at in range(9)), "Must have at most 8 entries, not 9."),
        ("externalMatchId", "x" * 256, "Must be 1 to 255 characters."),
        ("customCvars", "mp_maxmoney 1\nrcon_password x", "Line 2: rcon_password may not be set by a match."),
        ("team1Players", f"{PLAYER}\n\nfoo", "Line 3: “foo” is not a SteamID."),
        ("team2Players", f"{PLAYER}", f"Line 1: {PLAYER} is already listed in line 1 of team 1."),
        ("team1Players", f"{PLAYER}\n[U:1:39734273]", f"Line 2: {PLAYER} is already listed in line 1."),
    ],
)
def test_fault_is_shown_beside_its_field(field: str, value: str, message: str) -> None:
    found = faults_of(sandbox(**{field: value}))
    assert any(text.startswith(message) for text in found.by_field[field])
    assert found.general == ()


def test_scenario_outside_a_sandbox_is_a_fault_of_the_scenario() -> None:
    found = faults_of(sandbox(region="eu", scenario="pauses", customCvars="mp_maxmoney 1"))
    assert list(found.by_field) == ["scenario"]
    assert "only allowed in simulator regions" in found.by_field["scenario"][0]


def test_too_many_players_are_a_fault_of_both_teams() -> None:
    many = "\n".join(str(int(PLAYER) + number) for number in range(40))
    assert "at most 32 players" in faults_of(sandbox(team1Players=many, team2Players="")).by_field["teams"][0]


def test_faults_of_a_deathmatch_name_the_line() -> None:
    found = faults_of(sandbox(matchType="deathmatch", players=f"{PLAYER}\n{PLAYER}\nx", dmRoundMinutes="0"))
    second, third = sorted(found.by_field["players"])
    assert second.startswith(f"Line 2: {PLAYER} is already listed in line 1")
    assert third.startswith("Line 3: “x” is not a SteamID")
    assert found.by_field["dmRoundMinutes"] == ["Must be at least 1."]


def test_all_faults_are_shown_at_once() -> None:
    found = faults_of(sandbox(map1="", freezeTime="x", team1Players="foo\nbar", callbackUrl="x"))
    assert set(found.by_field) == {"map1", "freezeTime", "team1Players", "callbackUrl"}
    assert len(found.by_field["team1Players"]) == 2


def test_fault_without_a_field_is_shown_in_general() -> None:
    many = "\n".join(f"x{number}" for number in range(200))
    found = faults_of(sandbox(team1Players=many))
    assert found.general
    assert found.general[0].startswith("Faults that are not listed: ")


def test_values_that_were_sent_are_kept_and_others_are_empty() -> None:
    values = given_values({"map1": "de_nuke", "team1Players": "a\r\nb", "unknown": "x"})
    assert values["map1"] == "de_nuke"
    assert values["team1Players"] == "a\nb"
    assert set(values) == set(FIELDS)


# --- sides --------------------------------------------------------------------------------------------------------


def test_sides_are_separated_by_spaces_or_commas() -> None:
    assert "sides" not in settings_of(sandbox())
    assert settings_of(sandbox(sides="team1_t"))["sides"] == ["team1_t"]
    given = sandbox(seriesFormat="bo3", sides=" team1_t, team1_ct knife")
    assert settings_of(given)["sides"] == ["team1_t", "team1_ct", "knife"]
    assert faults_of(given) == FormFaults()
    assert "sides" not in settings_of(sandbox(matchType="casual", sides="team1_t"))


def test_faults_of_sides_name_the_map() -> None:
    faults = faults_of(sandbox(seriesFormat="bo3", sides="team1_ct ct")).by_field
    assert faults == {
        "sides": [
            "Map 2: must be one of team1_ct, team1_t, knife.",
            "Must have 3 entries, one for each map of the series, not 2.",
        ]
    }
