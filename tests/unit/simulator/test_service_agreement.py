"""Test that the simulator accepts what the service sends, and that the service reads what the simulator prints."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol import console_commands
from cs2_protocol.console_answers import parse_cvar
from cs2_protocol.console_commands import MAX_PLUGIN_MATCH_ID
from cs2_protocol.log_lines.world_lines import StatsField, StatsMark, StatsPlayer
from cs2_simulator.play.flow.stats_rows import stats_block
from cs2_simulator.plugin.match_file import MatchFile, read_match
from cs2_simulator.variables import Variables
from matchpod.core.model import GameSettings, MatchType, TeamRoster
from matchpod.cs2 import match_commands
from matchpod.cs2.cvar_names import CVAR_NAMES
from matchpod.cs2.match_commands import matchzy_match
from matchpod.cs2.stats_block import StatsBlock
from simulator_tests.console.console_harness import ConsoleHarness
from simulator_tests.play.flow.test_stats_rows import played_round
from simulator_tests.plugin.plugin_harness import id64


@pytest.fixture
def harness() -> ConsoleHarness:
    return ConsoleHarness()


def test_every_variable_a_match_may_set_is_known() -> None:
    assert [name for name in sorted(CVAR_NAMES) if not Variables().is_known(name)] == []


@pytest.mark.parametrize("match_type", list(MatchType))
def test_all_commands_of_the_service_are_known(harness: ConsoleHarness, match_type: MatchType) -> None:
    settings = GameSettings(match_type=match_type, maps=("de_nuke",), max_rounds=24, freeze_time=10)
    commands = (
        *match_commands.setup_commands(settings, map_name="de_nuke"),
        *match_commands.match_commands(settings),
        *match_commands.start_commands(settings),
        console_commands.log_address_command("http://127.0.0.1:1/x"),
    )
    answers = [harness.execute(command) for command in commands]
    assert {answer for answer in answers if answer} <= {"Server logging enabled.\n"}


@pytest.mark.parametrize("match_type", [MatchType.COMPETITIVE, MatchType.DEATHMATCH])
def test_settings_of_the_service_can_be_read_back(harness: ConsoleHarness, match_type: MatchType) -> None:
    roster = (
        TeamRoster(name="A", players=("76561197960265729",)),
        TeamRoster(name="B", players=("76561197960265730",)),
    )
    settings = GameSettings(match_type=match_type, maps=("de_nuke",), team1=roster[0], team2=roster[1])
    for command in match_commands.match_commands(settings):
        harness.execute(command)
    for name, wanted in match_commands.expected_cvars(settings).items():
        value = parse_cvar(harness.execute(name), name)
        assert value is not None
        assert value.equals(wanted)


def test_match_file_of_the_service_is_accepted() -> None:
    settings = GameSettings(
        match_type=MatchType.WINGMAN,
        maps=("de_nuke", "workshop/3070284539", "de_train"),
        team1=TeamRoster("Team Blue", (id64(1), id64(2))),
        team2=TeamRoster("Team Red", (id64(3), id64(4))),
    )
    ours = matchzy_match(
        settings, match_id=MAX_PLUGIN_MATCH_ID, log_url="http://h/e", log_header_name="X-Token", log_header_value="v"
    )
    read_file = read_match(msgspec.json.encode(ours))
    assert isinstance(read_file, MatchFile)
    assert read_file.match_id == MAX_PLUGIN_MATCH_ID
    assert read_file.pool == ("de_nuke", "3070284539", "de_train")
    assert read_file.map_sides == ("team1_ct",) * 3
    assert (read_file.is_wingman, read_file.can_clinch, read_file.players_per_team) == (True, True, 2)
    assert list(read_file.team2.players) == [id64(3), id64(4)]
    assert read_file.cvars["matchzy_remote_log_url"] == "http://h/e"


def test_block_can_be_parsed_by_the_service() -> None:
    arena, *_ = played_round()
    block = StatsBlock()
    for line in stats_block(arena, round_number=2, ct_score=1, t_score=0):
        if isinstance(line, StatsMark):
            block.read_mark(line)
        elif isinstance(line, StatsField):
            block.read_field(line)
        elif isinstance(line, StatsPlayer):
            block.read_player(line)
    assert (block.round_number, len(block.rows), block.rows[0].kills, block.rows[0].damage) == (2, 2, 1, 100.0)
