"""Reading the arguments of the command line."""

from __future__ import annotations

import re

import pytest

from matchpod_gameserver.options import (
    HELP,
    REMOVE_INSTANCES,
    RUN_INSTANCE,
    SECRET_VARIABLE,
    DeriveOptions,
    InstanceOptions,
    Options,
    UsageError,
    expand_command,
    parse_arguments,
    parse_derive_arguments,
    parse_instance_arguments,
)

SECRET_FILE = {SECRET_VARIABLE: "/run/secrets/fleet"}


def test_defaults_are_below_the_grace_period_of_kubernetes() -> None:
    options, command = parse_arguments(["--", "./cs2", "-port", "{port}"], SECRET_FILE)
    assert command == ["./cs2", "-port", "{port}"]
    assert options == Options(secret_file="/run/secrets/fleet", log_format="human")
    assert options.grace_period < 30


def test_options_are_read_until_the_two_dashes() -> None:
    arguments = ["--secret-file", "s", "--cfg-dir=/cfg", "--grace-period", "7.5", "--ip", "::", "--port-name", "srcds"]
    options, command = parse_arguments([*arguments, "--", "./cs2", "--ip", "--", "{cfg}"], {})
    assert options == Options(
        secret_file="s", cfg_dir="/cfg", grace_period=7.5, ip="::", port_name="srcds", log_format="human"
    )
    assert command == ["./cs2", "--ip", "--", "{cfg}"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the command of the game server is missing; put it after --, as in: -- ./cs2 -port {port}"),
        (["--"], "the command of the game server is missing"),
        (["./cs2"], "unknown option `./cs2`; --help lists all options, and the command follows after --"),
        (["--grace", "5", "--", "x"], "unknown option `--grace`"),
        (["--grace-period", "--", "x"], "--grace-period needs a value"),
        (["--ip"], "--ip needs a value"),
        (["--grace-period", "-1", "--", "x"], "--grace-period must be a time above 0 such as 90, 30m or 12h, not `-1`"),
        (["--sdk-timeout", "0.0", "--", "x"], "--sdk-timeout must be a time above 0 such as 90, 30m or 12h, not `0.0`"),
        (["--start-timeout=1e9", "--", "x"], "--start-timeout must be a time above 0"),
        (["--max-life", "2d", "--", "x"], "--max-life must be a time above 0"),
        (["--idle-exit", "0m", "--", "x"], "--idle-exit must be a time above 0"),
        (["--idle-exit", "m", "--", "x"], "--idle-exit must be a time above 0"),
        (
            ["--secret-file", "s", "--password-file", "p", "--", "x"],
            "--password-file and --secret-file cannot be used together",
        ),
        (["--secret-file", "", "--", "x"], "--secret-file needs a value"),
        (["--", "x", "{map}"], "the command has the unknown placeholder {map}; --help lists all placeholders"),
        (
            ["--install-dir", "/cs2", "--", "x", "{game}"],
            "--install-dir, --instances-dir and the placeholder {game} in",
        ),
        (["--", "x", "{game}"], "--install-dir, --instances-dir and the placeholder {game} in the command must be"),
        (["--", "x", "{cfg}"], "--cfg-dir and the placeholder {cfg} in the command must be used together"),
        (["--log-format", "xml", "--", "x"], "--log-format must be human or json, not `xml`"),
        (["--cfg-dir", "/cfg", "--", "x"], "--cfg-dir and the placeholder {cfg} in the command must be used together"),
    ],
)
def test_invalid_arguments_are_one_sentence(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        parse_arguments(arguments, SECRET_FILE)


def test_missing_secret_names_the_option_and_the_variable() -> None:
    message = "the secret of the fleet is missing; set --password-file, --secret-file or MATCHPOD_FLEET_SECRET_FILE"
    with pytest.raises(UsageError, match=message):
        parse_arguments(["--", "x"], {})


def test_every_option_is_in_the_help() -> None:
    for name, default in {**DeriveOptions._field_defaults, **Options._field_defaults}.items():
        assert f"  --{name.replace('_', '-')} " in HELP
        if isinstance(default, float) and default:
            assert f"(default {default:g})" in HELP
    assert HELP.count("(default: no limit)") == list(Options._field_defaults.values()).count(0.0)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("1.5", 1.5), ("90s", 90), ("30m", 1800), ("12h", 43_200)])
def test_times_are_seconds_or_have_a_unit(text: str, seconds: float) -> None:
    options, _ = parse_arguments(["--max-life", text, f"--idle-exit={text}", "--", "x"], SECRET_FILE)
    assert options == Options(secret_file="/run/secrets/fleet", max_life=seconds, idle_exit=seconds, log_format="human")


def test_password_file_replaces_the_secret() -> None:
    assert parse_arguments(["--password-file", "p", "--", "x"], {})[0] == Options(password_file="p", log_format="human")
    assert parse_arguments(["--password-file", "p", "--", "x"], SECRET_FILE)[0] == Options(
        password_file="p", log_format="human"
    )


def test_password_is_derived_for_a_name_and_a_file() -> None:
    found = parse_derive_arguments(["--name", "cs2-eu-abcde", "--out=/run/p"], SECRET_FILE)
    assert found == DeriveOptions("/run/secrets/fleet", "cs2-eu-abcde", "/run/p", log_format="human")


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["--name", "x"], SECRET_FILE, "--out is missing"),
        (["--out", "x"], SECRET_FILE, "--name is missing"),
        (["--out", "x", "--name", "y"], {}, "set --secret-file or MATCHPOD_FLEET_SECRET_FILE"),
        (["--ip", "x"], SECRET_FILE, "unknown option `--ip`"),
        (
            ["--out", "x", "--name", "$(POD_NAME)"],
            SECRET_FILE,
            "--name must be the name of a GameServer, not `$(POD_NAME)`",
        ),
    ],
)
def test_invalid_arguments_of_derive_password_are_one_sentence(
    arguments: list[str], environment: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        parse_derive_arguments(arguments, environment)


def test_placeholders_are_replaced() -> None:
    template = ["./cs2", "-port", "{port}", "+hostname", "{name}, {port}"]
    assert expand_command(template, {"port": "7001", "name": "n"}) == ["./cs2", "-port", "7001", "+hostname", "n, 7001"]


def test_unknown_format_in_the_variable_is_reported() -> None:
    with pytest.raises(UsageError, match=r"^MATCHPOD_LOG_FORMAT must be human or json, not `xml`$"):
        parse_arguments(["--", "x"], {**SECRET_FILE, "MATCHPOD_LOG_FORMAT": "xml"})
    options, _ = parse_arguments(["--", "x"], {**SECRET_FILE, "MATCHPOD_LOG_FORMAT": ""})
    assert options.log_format == "human"


PLACE = ("--instances-dir", "/instances", "--owner", "mp-1")


def test_file_for_the_password_may_be_in_the_folder_of_the_server() -> None:
    arguments = ["--install-dir=/cs2", "--instances-dir=/i", "--", "{game}/bin/linuxsteamrt64/cs2", "+exec", "{cfg}"]
    assert parse_arguments(arguments, SECRET_FILE)[0].install_dir == "/cs2"


def test_options_of_the_commands_for_folders_are_read() -> None:
    options, command = parse_instance_arguments(
        RUN_INSTANCE, [*PLACE, "--name", "srv_1", "--install-dir", "/cs2", "--", "{game}/cs2.sh"], {}
    )
    assert options == InstanceOptions("/cs2", "/instances", "mp-1", "srv_1", log_format="human")
    assert command == ["{game}/cs2.sh"]
    assert parse_instance_arguments(REMOVE_INSTANCES, PLACE, {})[0].name == ""


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        (REMOVE_INSTANCES, ("--owner", "mp-1"), "--instances-dir is missing"),
        (REMOVE_INSTANCES, (*PLACE, "--", "x"), "the command of the game server follows after -- with run-instance"),
        (RUN_INSTANCE, (*PLACE, "--name", "a", "--", "x"), "--install-dir is missing"),
        (RUN_INSTANCE, (*PLACE, "--name", "a", "--install-dir", "/cs2"), "the command of the game server follows"),
        (
            RUN_INSTANCE,
            (*PLACE, "--name", "../a", "--install-dir", "/cs2", "--", "x"),
            "--name may only contain letters",
        ),
        (
            RUN_INSTANCE,
            (*PLACE, "--name", "a", "--cfg", "a/b", "--install-dir", "/", "--", "x"),
            "--cfg may only contain",
        ),
    ],
)
def test_faults_of_the_commands_for_folders_are_sentences(
    command: str, arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        parse_instance_arguments(command, arguments, {})
