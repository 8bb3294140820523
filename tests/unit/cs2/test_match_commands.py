from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import cycle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol import console_commands
from cs2_simulator.console.statements import statements
from matchpod.core.errors import InvalidParamsError
from matchpod.core.model import (
    CvarSetting,
    DmSubMode,
    GameSettings,
    MapsWon,
    MatchType,
    Overtime,
    SeriesFormat,
    StartSides,
    TeamRoster,
)
from matchpod.core.requests.text_rules import team_name_fault
from matchpod.core.requests.validation import RegionRules, read_match_request
from matchpod.cs2 import match_commands
from matchpod.cs2.cvar_names import CVAR_NAMES
from matchpod.cs2.cvars import read_custom_cvars
from tests.effort import seeded_random, sized

PLAYER_1 = "76561197990682262"
PLAYER_2 = "76561198034202275"
PLAYER_3 = "76561198034202276"
PLAYER_4 = "76561198034202277"

OUR_COMMANDS = """
bot_kick changelevel css_start game_mode game_type host_workshop_map log mp_logdetail mp_logdetail_items mp_logmoney
mp_restartgame mp_teamname_1 mp_teamname_2 mp_warmup_end mp_warmup_pausetimer mp_warmup_start sv_hibernate_when_empty
sv_log_roundstats sv_password
""".split()  # noqa: SIM905 - shorter than a list of quoted words

HOSTILE_PARTS = [
    '"', ";", "'", "`", "\\", '\\"', "\n", "\r", "\r\n", "\0", "\t", "\x0b", "\x0c", "\x1b", "\x7f", "\x85", "\u2028",
    "\u2029", "\u200b", "\u202e", "\ufeff", "\u00a0", "\u3000", "\ud800", "\U000e0001", "“", "”", "‘", "；", "＂", "//",
    "/", "/*", "{", "}", "(", ")", ":", ",", "$", "%", "%s", "+", "-", "|", "&&", "!", "\x01", "quit",
    "exec autoexec", "rcon_password x", "alias a b", "sv_cheats 1", "say hi", "changelevel", "mp_maxrounds", "a", "b",
    "7", "0.5", "Team", " ", "  ", "é", "日本", "🎯", "x" * 40, "y" * 600, "http://a/b", "workshop/1", "de_nuke",
]  # fmt: skip


def hostile(rng: random.Random) -> str:
    return "".join(rng.choice(HOSTILE_PARTS) for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4, 8))))


def open_deathmatch(**changes: object) -> GameSettings:
    return msgspec.structs.replace(GameSettings(match_type=MatchType.DEATHMATCH, maps=("de_dust2",)), **changes)


def competitive(**changes: object) -> GameSettings:
    settings = GameSettings(
        match_type=MatchType.COMPETITIVE,
        maps=("de_mirage",),
        team1=TeamRoster("Astralis", (PLAYER_1,)),
        team2=TeamRoster("NaVi", (PLAYER_2,)),
    )
    return msgspec.structs.replace(settings, **changes)


def of_type(match_type: MatchType, **changes: object) -> GameSettings:
    return msgspec.structs.replace(GameSettings(match_type=match_type, maps=("de_nuke",)), **changes)


def plugin_match(settings: GameSettings, **changes: object) -> dict[str, object]:
    address = {"log_url": "http://10.0.0.1/mz/t", "log_header_name": "Authorization", "log_header_value": "Bearer x"}
    return match_commands.matchzy_match(settings, **{"match_id": 27, **address, **changes})  # type: ignore[arg-type]


def tokenize(text: str) -> list[list[str]]:
    """Split a text into commands as a console does, each as a list of arguments."""
    return [[statement.name, *statement.args] for statement in statements(text)]


def cvars_of(commands: tuple[str, ...]) -> dict[str, str]:
    argvs = [argv for command in commands for argv in tokenize(command)]
    return {argv[0]: argv[1] for argv in argvs if len(argv) == 2}


# --- order and content of commands -------------------------------------------------------------------------------


def test_setup_enables_the_log_first_and_loads_the_map_last() -> None:
    commands = match_commands.setup_commands(competitive(), map_name="de_mirage")
    assert commands[0] == "log on"
    assert commands[-3:] == ("game_type 0", "game_mode 1", "changelevel de_mirage")
    assert cvars_of(commands)["mp_logdetail"] == "3"
    assert cvars_of(commands)["sv_hibernate_when_empty"] == "0"
    assert "bot_kick" in commands


def test_gotv_of_a_recorded_match_is_on_before_its_map_loads_and_after_every_load() -> None:
    recorded = msgspec.structs.replace(competitive(), record_demo=True, tv_delay_s=45)
    *before, load = match_commands.setup_commands(recorded, map_name="de_mirage")
    assert load == "changelevel de_mirage"
    wanted = {"tv_enable": "1", "tv_delay": "45"}
    for cvars in (
        cvars_of(tuple(before)),
        cvars_of(match_commands.match_commands(recorded)),
        match_commands.expected_cvars(recorded),
    ):
        assert wanted.items() <= cvars.items()


def test_gotv_of_other_matches_stays_as_it_is() -> None:
    commands = (
        *match_commands.setup_commands(competitive(), map_name="de_mirage"),
        *match_commands.match_commands(competitive()),
    )
    assert not [command for command in commands if command.startswith("tv_")]


def test_each_match_type_has_its_game_mode() -> None:
    for match_type, game_type, game_mode in [
        (MatchType.CASUAL, "0", "0"),
        (MatchType.COMPETITIVE, "0", "1"),
        (MatchType.WINGMAN, "0", "2"),
        (MatchType.RETAKES, "0", "5"),
        (MatchType.DEATHMATCH, "1", "2"),
        (MatchType.CUSTOM, "3", "0"),
    ]:
        cvars = cvars_of(match_commands.setup_commands(of_type(match_type), map_name="de_nuke"))
        assert (cvars["game_type"], cvars["game_mode"]) == (game_type, game_mode)


def test_workshop_map_is_loaded_by_its_id() -> None:
    assert match_commands.load_map_command("workshop/3070284539") == "host_workshop_map 3070284539"


@pytest.mark.parametrize("name", ["", "de nuke", "de_nuke;quit", "workshop/", "workshop/1;quit", "../x", "DE_NUKE\n"])
def test_invalid_map_name_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="map"):
        match_commands.load_map_command(name)


def test_password_is_set_or_cleared() -> None:
    assert 'sv_password "let me in"' in match_commands.match_commands(competitive(server_password="let me in"))
    assert 'sv_password ""' in match_commands.match_commands(competitive())


def test_warmup_is_held_before_anything_else_is_set() -> None:
    custom = (CvarSetting("mp_overtime_enable", "1"),)
    first = ("mp_warmuptime 9999", "mp_warmuptime_all_players_connected 0", "mp_warmup_pausetimer 1")
    assert match_commands.match_commands(competitive(custom_cvars=custom))[:3] == first


@pytest.mark.parametrize(
    ("settings", "commands"),
    [
        (open_deathmatch(players=(PLAYER_1,)), ("mp_warmup_start",)),
        (open_deathmatch(), ("mp_restartgame 1",)),
        (competitive(), ()),
    ],
    ids=["held", "open", "plugin"],
)
def test_restart_commands_discard_play_during_setup(settings: GameSettings, commands: tuple[str, ...]) -> None:
    assert match_commands.restart_commands(settings) == commands


def test_our_settings_follow_custom_ones_and_override_them() -> None:
    custom = (
        CvarSetting("mp_overtime_enable", "1"),
        CvarSetting("mp_maxrounds", "2"),
        CvarSetting("mp_logdetail", "0"),
    )
    commands = match_commands.match_commands(competitive(custom_cvars=custom, max_rounds=16, freeze_time=0))
    assert commands.index("mp_overtime_enable 1") < commands.index("mp_maxrounds 16")
    cvars = cvars_of(commands)
    assert (cvars["mp_maxrounds"], cvars["mp_freezetime"], cvars["mp_logdetail"]) == ("16", "0", "3")
    assert [command.split()[0] for command in commands].count("mp_maxrounds") == 1


def test_omitted_settings_keep_the_defaults_of_the_mode() -> None:
    cvars = cvars_of(match_commands.match_commands(competitive()))
    assert "mp_maxrounds" not in cvars
    assert "mp_freezetime" not in cvars


def test_custom_bot_quota_is_kept() -> None:
    wanted = of_type(MatchType.CUSTOM, custom_cvars=(CvarSetting("bot_quota", "4"),))
    commands = match_commands.match_commands(wanted)
    assert "bot_quota 4" in commands
    assert "bot_kick" not in commands
    assert {"bot_quota 0", "bot_kick"} <= set(match_commands.match_commands(of_type(MatchType.CUSTOM)))


def test_named_teams_are_not_rebalanced() -> None:
    custom = (CvarSetting("mp_autoteambalance", "1"), CvarSetting("mp_limitteams", "2"))
    assert cvars_of(match_commands.match_commands(competitive(custom_cvars=custom)))["mp_autoteambalance"] == "0"
    without_teams = of_type(MatchType.CASUAL, custom_cvars=custom)
    assert cvars_of(match_commands.match_commands(without_teams))["mp_autoteambalance"] == "1"


def test_warmup_is_held_only_with_a_roster() -> None:
    waiting = of_type(MatchType.DEATHMATCH, players=(PLAYER_1,))
    cvars = cvars_of(match_commands.match_commands(waiting))
    assert (cvars["mp_warmup_pausetimer"], cvars["mp_warmuptime"]) == ("1", "9999")
    assert match_commands.warmup_commands(waiting) == ("mp_warmup_start",)
    assert "mp_warmup_pausetimer" not in cvars_of(match_commands.match_commands(of_type(MatchType.DEATHMATCH)))
    assert match_commands.warmup_commands(of_type(MatchType.DEATHMATCH)) == ()
    assert match_commands.warmup_commands(competitive()) == ()
    by_hand = of_type(MatchType.COMPETITIVE, auto_start=False)
    assert cvars_of(match_commands.match_commands(by_hand))["mp_warmup_pausetimer"] == "1"
    assert match_commands.warmup_commands(by_hand) == ("mp_warmup_start",)


def test_overridden_custom_cvars_are_not_in_the_match_file() -> None:
    custom = (CvarSetting("mp_warmuptime", "5"), CvarSetting("mp_c4timer", "35"))
    team1 = TeamRoster("A", ("76561198000000001",))
    asked = of_type(MatchType.COMPETITIVE, team1=team1, team2=TeamRoster("B"), custom_cvars=custom)
    match = match_commands.matchzy_match(
        asked, match_id=1, log_url="http://h/x", log_header_name="Authorization", log_header_value="x"
    )
    cvars = msgspec.convert(match["cvars"], dict[str, str])
    assert "mp_warmuptime" not in cvars
    assert cvars["mp_c4timer"] == "35"


def test_all_players_are_enemies_in_a_free_for_all() -> None:
    ffa = cvars_of(match_commands.match_commands(of_type(MatchType.DEATHMATCH)))
    team = cvars_of(match_commands.match_commands(of_type(MatchType.DEATHMATCH, dm_sub_mode=DmSubMode.TEAM)))
    assert (ffa["mp_teammates_are_enemies"], ffa["mp_dm_teammode"]) == ("1", "0")
    assert (team["mp_teammates_are_enemies"], team["mp_dm_teammode"]) == ("0", "1")
    assert ffa["mp_timelimit"] == "10"


def test_deathmatch_round_lasts_as_long_as_the_time_limit() -> None:
    for minutes, limit, round_time, ignores_conditions in [
        (1.0, "1", "1", "0"),
        (7.5, "7.5", "8", "0"),
        (60.0, "60", "60", "0"),
        (1440.0, "1440", "60", "1"),
    ]:
        cvars = cvars_of(match_commands.match_commands(of_type(MatchType.DEATHMATCH, dm_round_minutes=minutes)))
        assert (cvars["mp_timelimit"], cvars["mp_roundtime"], cvars["mp_roundtime_defuse"]) == (limit, round_time, "0")
        assert cvars["mp_ignore_round_win_conditions"] == ignores_conditions


def test_teams_are_named_by_command_only_without_the_plugin() -> None:
    assert not [command for command in match_commands.match_commands(competitive()) if "teamname" in command]
    open_match = competitive(team1=TeamRoster("Les Bleus"), team2=TeamRoster("O'Neill (2)"))
    commands = match_commands.match_commands(open_match)
    assert commands[-2:] == ('mp_teamname_1 "Les Bleus"', 'mp_teamname_2 "O\'Neill (2)"')
    assert match_commands.match_commands(of_type(MatchType.CASUAL))[-2:] == ('mp_teamname_1 ""', 'mp_teamname_2 ""')


SIDES = (StartSides.TEAM1_CT, StartSides.TEAM1_T, StartSides.KNIFE)


def three_maps(**changes: object) -> GameSettings:
    maps = {"maps": ("de_nuke", "de_train", "de_dust2"), "series_format": SeriesFormat.BO3}
    return competitive(**{**maps, "sides": SIDES, **changes})


def test_match_file_has_the_sides_of_each_map() -> None:
    assert plugin_match(three_maps())["map_sides"] == ["team1_ct", "team1_t", "knife"]
    # Created before sides could be chosen.
    assert plugin_match(three_maps(sides=()))["map_sides"] == ["team1_ct"] * 3


def test_team_that_begins_as_ct_has_the_first_name() -> None:
    open_match = three_maps(team1=TeamRoster("Reds"), team2=TeamRoster("Blues"))
    for number, (first, second) in enumerate((("Reds", "Blues"), ("Blues", "Reds")), 1):
        names = (f'mp_teamname_1 "{first}"', f'mp_teamname_2 "{second}"')
        assert match_commands.team_name_commands(open_match, map_number=number) == names
        assert match_commands.match_commands(open_match, map_number=number)[-2:] == names
    assert match_commands.team_name_commands(three_maps(), map_number=2) == ()


def test_teams_of_a_series_have_names_even_if_the_caller_gave_none() -> None:
    unnamed = three_maps(team1=None, team2=None)
    assert match_commands.team_name_commands(unnamed, map_number=2) == (
        'mp_teamname_1 "Team 2"',
        'mp_teamname_2 "Team 1"',
    )


def test_server_without_plugin_restarts_the_map_instead_of_changing_it() -> None:
    cvars = cvars_of(match_commands.match_commands(of_type(MatchType.CASUAL)))
    assert (cvars["mp_match_end_restart"], cvars["mp_endmatch_votenextmap"]) == ("1", "0")
    assert "mp_match_end_restart" not in cvars_of(match_commands.match_commands(competitive()))


def test_play_is_started_by_the_plugin_if_it_runs_the_match() -> None:
    assert match_commands.start_commands(competitive()) == ("css_start",)
    assert match_commands.start_commands(of_type(MatchType.DEATHMATCH, players=(PLAYER_1,))) == (
        "mp_warmup_pausetimer 0",
        "mp_warmup_end",
        "mp_restartgame 1",
    )


def test_server_is_reset_for_the_next_match() -> None:
    assert match_commands.reset_commands() == ('sv_password ""', "logaddress_delall_http", "bot_kick")


@pytest.mark.parametrize("custom", [CvarSetting("mp_x;quit", "1"), CvarSetting("mp_x", 'a" b')])
def test_unsafe_variable_is_rejected(custom: CvarSetting) -> None:
    with pytest.raises(ValueError):
        match_commands.match_commands(competitive(custom_cvars=(custom,)))


def test_expected_cvars_equal_the_values_set() -> None:
    settings = competitive(max_rounds=16, custom_cvars=(CvarSetting("mp_buytime", "5"),))
    expected = match_commands.expected_cvars(settings)
    assert expected["mp_maxrounds"] == "16"
    assert "mp_buytime" not in expected
    assert "sv_password" not in expected
    after = cvars_of(match_commands.match_commands(settings))
    assert {name: after[name] for name in expected} == dict(expected)


# --- match file of the plugin ------------------------------------------------------------------------------------


def test_plugin_runs_only_series_matches_with_listed_players() -> None:
    assert match_commands.uses_plugin_match(competitive())
    assert match_commands.uses_plugin_match(competitive(team2=TeamRoster("B")))
    assert not match_commands.uses_plugin_match(competitive(team1=TeamRoster("A"), team2=TeamRoster("B")))
    assert not match_commands.uses_plugin_match(of_type(MatchType.DEATHMATCH, players=(PLAYER_1,)))


def test_match_file_contains_maps_sides_teams_and_log_address() -> None:
    maps = ("de_mirage", "workshop/3070284539", "de_nuke")
    match = plugin_match(
        competitive(
            maps=maps, series_format=SeriesFormat.BO3, max_rounds=16, custom_cvars=(CvarSetting("mp_buytime", "5"),)
        )
    )
    assert match["matchid"] == 27
    assert (match["num_maps"], match["maplist"]) == (3, ["de_mirage", "3070284539", "de_nuke"])
    assert match["map_sides"] == ["team1_ct"] * 3
    assert match["team1"] == {"name": "Astralis", "players": {PLAYER_1: ""}}
    assert match["spectators"] == {"players": {}}
    assert (match["skip_veto"], match["clinch_series"], match["wingman"]) == (True, True, False)
    assert (match["players_per_team"], match["min_players_to_ready"]) == (5, 5)
    cvars = match["cvars"]
    assert isinstance(cvars, dict)
    assert cvars["matchzy_remote_log_url"] == "http://10.0.0.1/mz/t"
    assert cvars["matchzy_remote_log_header_key"] == "Authorization"
    assert cvars["matchzy_remote_log_header_value"] == "Bearer x"
    assert (cvars["mp_maxrounds"], cvars["mp_buytime"], cvars["sv_hibernate_when_empty"]) == ("16", "5", "0")


@pytest.mark.parametrize(("sizes", "needed"), [((2, 2), 2), ((3, 2), 2), ((1, 0), 1)])
def test_listed_players_can_be_ready_if_they_start_play(sizes: tuple[int, int], needed: int) -> None:
    listed = (PLAYER_1, PLAYER_2, PLAYER_3, PLAYER_4, "76561198000000005")
    teams = {"team1": TeamRoster("A", listed[: sizes[0]]), "team2": TeamRoster("B", listed[3 : 3 + sizes[1]])}
    match = plugin_match(competitive(auto_start=False, **teams))
    assert (match["players_per_team"], match["min_players_to_ready"]) == (needed, needed)


def test_plugin_plays_all_maps_of_a_series_in_which_a_team_was_given_one() -> None:
    maps = ("de_mirage", "de_nuke")
    match = plugin_match(competitive(maps=maps, series_format=SeriesFormat.BO3, maps_won=MapsWon(1, 0)))
    assert (match["num_maps"], match["maplist"], match["clinch_series"]) == (2, list(maps), False)


@pytest.mark.parametrize(
    ("overtime", "cvars"),
    [
        (None, {}),
        (Overtime(), {"mp_overtime_enable": "1"}),
        (Overtime(enabled=False), {"mp_overtime_enable": "0"}),
        (
            Overtime(max_rounds=4, start_money=0),
            {"mp_overtime_enable": "1", "mp_overtime_maxrounds": "4", "mp_overtime_startmoney": "0"},
        ),
    ],
)
def test_overtime_is_as_requested(overtime: Overtime | None, cvars: dict[str, str]) -> None:
    custom = () if overtime is None else (CvarSetting("mp_overtime_enable", "7"),)
    settings = competitive(overtime=overtime, custom_cvars=custom)
    for sent in (cvars_of(match_commands.match_commands(settings)), plugin_match(settings)["cvars"]):
        assert isinstance(sent, dict)
        assert {name: value for name, value in sent.items() if "overtime" in name} == cvars


def test_match_file_lists_coaches_with_their_team_and_spectators() -> None:
    match = plugin_match(competitive(team1=TeamRoster("A", (PLAYER_1,), (PLAYER_3,)), spectators=(PLAYER_4,)))
    assert match["team1"] == {"name": "A", "players": {PLAYER_1: "", PLAYER_3: ""}, "coaches": {PLAYER_3: ""}}
    assert match["spectators"] == {"players": {PLAYER_4: ""}}
    assert (match["players_per_team"], match["min_players_to_ready"]) == (5, 5)


def test_match_file_has_no_variables_that_hold_warmup() -> None:
    # The plugin executes these variables again when play starts.
    cvars = plugin_match(competitive())["cvars"]
    assert isinstance(cvars, dict)
    assert not [name for name in cvars if "warmup" in name]


def test_wingman_team_has_two_players_or_the_number_listed() -> None:
    wingman = competitive(match_type=MatchType.WINGMAN)
    assert plugin_match(wingman)["wingman"] is True
    assert plugin_match(wingman)["players_per_team"] == 2
    three = TeamRoster("C", (PLAYER_1, PLAYER_2, PLAYER_3))
    assert plugin_match(competitive(match_type=MatchType.WINGMAN, team1=three))["players_per_team"] == 3


@pytest.mark.parametrize("match_id", [0, -1, 2**31])
def test_match_id_that_is_not_a_positive_32_bit_number_is_rejected(match_id: int) -> None:
    with pytest.raises(ValueError, match="match id"):
        plugin_match(competitive(), match_id=match_id)


def test_match_without_a_roster_has_no_match_file() -> None:
    with pytest.raises(ValueError, match="listed"):
        plugin_match(of_type(MatchType.CASUAL))


@pytest.mark.parametrize("name", ["a;quit", 'a"b', "a//b", "a\nquit", "", " a"])
def test_team_name_that_the_plugin_would_execute_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="team name"):
        plugin_match(competitive(team1=TeamRoster(name, (PLAYER_1,))))


# --- input from callers cannot inject commands -------------------------------------------------------------------


def _argv_of(make: Callable[[str], str], text: str) -> list[list[str]] | None:
    try:
        return tokenize(make(text))
    except ValueError:
        return None


def _load_match(text: str) -> str:
    return console_commands.load_match_command("http://a/m", header_name="H", header_value=text)


def _map_argv(text: str) -> list[str]:
    return ["host_workshop_map", text[9:]] if text.startswith("workshop/") else ["changelevel", text]


# Every function that inserts a text into a command, with the expected arguments.
SINKS: dict[str, tuple[Callable[[str], str], Callable[[str], list[str]]]] = {
    "quoted": (lambda text: f"echo {console_commands.quoted(text)}", lambda text: ["echo", text]),
    "bare": (lambda text: f"echo {console_commands.bare(text)}", lambda text: ["echo", text]),
    "kickid": (lambda text: console_commands.kick_command(3, text), lambda text: ["kickid", "3", text]),
    "url": (
        lambda text: console_commands.log_address_command(f"http://a/{text}"),
        lambda text: ["logaddress_add_http", f"http://a/{text}"],
    ),
    "header": (_load_match, lambda text: ["matchzy_loadmatch_url", "http://a/m", "H", text]),
    "map": (match_commands.load_map_command, _map_argv),
}


def _check_sink(sink: str, text: str) -> bool:
    make, argv = SINKS[sink]
    found = _argv_of(make, text)
    assert found in (None, [argv(text)]), (sink, text)
    return found is not None


def _check_cvars(line: str) -> int:
    settings = read_custom_cvars(line).settings
    if settings:
        commands = match_commands.match_commands(competitive(custom_cvars=settings))
        held, first_own = commands.index("mp_warmup_pausetimer 1") + 1, commands.index("mp_logdetail 3")
        assert [tokenize(command) for command in commands[held:first_own]] == [
            [[each.name, each.value]] for each in settings
        ]
        assert all(each.name in CVAR_NAMES and each.value in line for each in settings)
    return len(settings)


def _check_team_name(text: str) -> bool:
    if team_name_fault(text):
        return False
    # The plugin executes the command without quotes.
    (argv,) = tokenize(f"mp_teamname_1 {text}")
    assert argv[0] == "mp_teamname_1"
    assert "".join(argv[1:]) == text.replace(" ", "")
    return True


@pytest.mark.law
def test_hostile_strings_are_rejected_or_stay_one_argument() -> None:
    rng = seeded_random("hostile strings")
    accepted: Counter[str] = Counter()
    # Each string is passed to `quoted` and `bare`, and to one of the other functions in turn.
    others = cycle(sink for sink in SINKS if sink not in ("quoted", "bare"))
    forms = cycle(("mp_buytime {}", 'mp_buytime "{}"'))
    strings = sized(5_000, 1_000_000)
    for _ in range(strings):
        text = hostile(rng)
        for sink in ("quoted", "bare", next(others)):
            accepted[sink] += _check_sink(sink, text)
        accepted["cvar"] += _check_cvars(next(forms).format(text))
        accepted["team name"] += _check_team_name(text)
    assert len(accepted) == 8
    assert min(accepted.values()) > strings // 200, accepted


@given(st.text(max_size=80))
def test_any_text_is_rejected_or_stays_one_quoted_argument(text: str) -> None:
    argv = _argv_of(partial(console_commands.kick_command, 3), text)
    assert argv in (None, [["kickid", "3", text]])


@given(st.text(max_size=40))
def test_any_text_is_rejected_or_stays_one_bare_argument(text: str) -> None:
    assert _check_sink("bare", text) is (re.fullmatch(r"[A-Za-z0-9_.-]+", text) is not None)


def _request(rng: random.Random) -> dict[str, object]:
    """Return a request body with valid, unusual or hostile texts."""

    def text(*good: str) -> str:
        return rng.choice(good) if rng.random() < 0.8 else hostile(rng)

    settings: dict[str, object] = {
        "map": text("de_nuke", "workshop/123"),
        "serverPassword": text("let me in", "p{a}(s):s\\", "ünïcode", "//x"),
        "customCvars": text(
            'mp_buytime 5\nmp_t_default_primary "weapon_ak47"', "sim_seed 7", "mp_c4timer 1 // x", "", "mp_buytime -1"
        ),
        "maxRounds": rng.choice((1, 30, 200)),
        "freezeTime": rng.choice((0, 60)),
    }
    if rng.random() < 0.6:
        players = [[PLAYER_1], [PLAYER_2]] if rng.random() < 0.5 else [[], []]
        settings |= {
            "matchType": rng.choice(("competitive", "wingman")),
            "seriesFormat": rng.choice(("bo1", "bo3", "bo5")),
            "maps": [text("de_inferno"), text("de_dust2")],
            "teams": {
                "team1": {"name": text("Astralis", "O'Neill (1): a,b", "日本 🎯", "+-/"), "players": players[0]},
                "team2": {"name": text("NaVi", "!?&|<>", "#1 @home"), "players": players[1]},
            },
        }
    else:
        settings |= {"matchType": "deathmatch", "players": [PLAYER_1], "dmRoundMinutes": rng.choice((1, 7.25, 1440))}
    return {"region": "sandbox", "gameType": "cs2", "gameSettings": settings}


@pytest.mark.law
def test_accepted_requests_give_only_single_known_commands() -> None:
    rng, requests = seeded_random("requests"), sized(600, 30_000)
    regions = {"sandbox": RegionRules(is_simulated=True)}
    accepted = 0
    for _ in range(requests):
        try:
            request = read_match_request(_request(rng), regions=regions, read_cvars=read_custom_cvars)
        except InvalidParamsError:
            continue
        accepted += 1
        settings = request.game_settings
        commands = (
            *match_commands.setup_commands(settings, map_name=settings.maps[0]),
            *match_commands.match_commands(settings),
            *match_commands.warmup_commands(settings),
            *match_commands.start_commands(settings),
            *(match_commands.load_map_command(name) for name in settings.maps),
        )
        if match_commands.uses_plugin_match(settings):
            cvars = plugin_match(settings)["cvars"]
            assert isinstance(cvars, dict)
            for name, value in cvars.items():
                assert tokenize(f'{name} "{value}"') == [[name, value]]
        for command in commands:
            assert len(command.encode()) < 500
            (argv,) = tokenize(command)
            assert argv[0] in OUR_COMMANDS or argv[0] in CVAR_NAMES or argv[0].startswith("sim_"), command
            assert len(argv) <= 2, command
            # Text without line ends and semicolons is one command under any rules of quoting and escaping.
            assert not set(command) & set(";\n\r\0")
        after = cvars_of(commands)
        assert all(
            after[setting.name] == setting.value for setting in settings.custom_cvars if setting.name in ("mp_buytime",)
        )
        assert after["sv_password"] == (settings.server_password or "")
    assert accepted > requests // 10
