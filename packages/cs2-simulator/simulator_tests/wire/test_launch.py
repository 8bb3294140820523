"""Tests of the argument parser of `cs2-simulator`."""

from __future__ import annotations

import pytest

from cs2_simulator.options import ServerOptions
from cs2_simulator.scenarios import Scenario
from cs2_simulator.wire.launch import LaunchError, parse_arguments, scenario_list


def only_server(arguments: str) -> ServerOptions:
    (server,) = parse_arguments(arguments.split()).servers
    return server


def test_command_line_of_a_real_server_is_accepted() -> None:
    server = only_server(
        "-dedicated -console -usercon -game csgo -ip 0.0.0.0 -port 27020 -maxplayers_override 12 -authkey ABC "
        "+game_type 1 +game_mode 2 +map de_nuke +rcon_password secret +sv_setsteamaccount KEY +exec server.cfg"
    )
    assert server == ServerOptions(
        ip="0.0.0.0",
        port=27020,
        max_players=12,
        game_type=1,
        game_mode=2,
        map="de_nuke",
        rcon_password="secret",
        commands=("exec server.cfg",),
    )


def test_password_from_outside_applies_unless_the_command_line_has_one() -> None:
    for arguments, password in (([], "outside"), (["+rcon_password", "own"], "own")):
        (server,) = parse_arguments(arguments, rcon_password="outside").servers
        assert server.rcon_password == password


def test_console_commands_keep_their_order_and_arguments() -> None:
    arguments = [
        "+hostname",
        "My server",
        "+mp_x",
        "-1",
        "+log",
        "on",
        "+logaddress_add_http",
        'http://a/"b',
        "+bot_kick",
    ]
    (server,) = parse_arguments(arguments).servers
    assert server.commands == (
        'hostname "My server"',
        "mp_x -1",
        "log on",
        'logaddress_add_http "http://a/b"',
        "bot_kick",
    )


def test_options_of_the_simulator_are_parsed() -> None:
    launch = parse_arguments(
        ["--speed=30", "--seed", "7", "--scenario", "tie", "--players", "1,76561197960265730", "--no-mirror", "--quiet"]
    )
    (server,) = launch.servers
    assert launch.is_quiet
    assert (server.speed, server.seed, server.scenario, server.players) == (
        30.0, "7", Scenario.TIE, "1,76561197960265730",
    )  # fmt: skip
    assert not server.has_mirror


def test_farm_has_consecutive_ports_and_seeds() -> None:
    launch = parse_arguments(["--farm", "3", "-port", "28000", "--seed", "5"])
    assert [(server.port, server.seed) for server in launch.servers] == [(28000, "5"), (28001, "6"), (28002, "7")]


def test_help_and_list_options_are_recognized() -> None:
    assert parse_arguments(["--help"]).wants_help
    assert parse_arguments(["--list"]).wants_list
    assert not parse_arguments([]).wants_help


def test_list_names_the_variables_that_choose_and_repeat_a_match() -> None:
    lines = scenario_list().partition("\n\n")[2].splitlines()
    assert [line.split()[0] for line in lines if line.startswith("sim_")] == ["sim_scenario", "sim_seed"]


def test_seed_may_be_the_id_of_a_server() -> None:
    assert only_server("--seed srv_01hf7yat00000000000000000a").seed == "srv_01hf7yat00000000000000000a"


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ("de_dust2", "unexpected argument `de_dust2`: options begin with"),
        ("-port", "-port needs a value"),
        ("-port abc", "-port must be a whole number from 0 to 65535, not `abc`"),
        ("-port 70000", "-port must be a whole number from 0 to 65535"),
        ("+map de_dust2 de_nuke", "takes one value, but `de_nuke` follows"),
        ("--speed fast", "--speed must be a number above 0"),
        ("--speed 0", "--speed must be a number above 0"),
        ("--speed -1", "--speed must be a number above 0"),
        ("--speed nan", "--speed must be a number above 0"),
        ("--seed 1.5", "--seed must be a whole number from 0 to 999999999 or a name, not `1.5`"),
        ("--seed 1234567890", "--seed must be a whole number"),
        ("--seed srv_1 --farm 2", "--farm needs a number as --seed"),
        ("--players bob", "--players must be a comma-separated list of SteamID64s"),
        ("--farm 0", "--farm must be a whole number from 1 to"),
        ("--farm 10 -port 65530", "10 servers starting at port 65530 would need ports above 65535"),
        ("--quiet yes", "--quiet takes no value"),
        ("--sped 3", "did you mean --speed"),
        ("--zzzzzz", "--help lists"),
        ("--scenario overtme", "did you mean overtime"),
        ("--scenario zzzzzzzz", "did you mean full_match, no_show"),
        ("--farm -1", "--farm must be a whole number from 1 to 2000, not `-1`"),
        ("--farm 100000", "--farm must be a whole number from 1 to 2000"),
        ("-port ٣", "-port must be a whole number"),
        ("+map \udcff", "is not valid UTF-8"),
    ],
)
def test_invalid_arguments_are_explained(arguments: str, fault: str) -> None:
    with pytest.raises(LaunchError, match=fault):
        parse_arguments(arguments.split())
