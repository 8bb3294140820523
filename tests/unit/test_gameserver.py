"""The pure parts of the entry point of game server images, and the rules it is written by."""

from __future__ import annotations

import ast
import base64
import hashlib
import hmac
import json
import re
import stat
import sys
from pathlib import Path

import pytest

from matchpod import __main__, gameserver
from matchpod.adapters.fleets.process import expand_command as expand_process_command
from matchpod.adapters.fleets.secret_cfg import cfg_name, write_cfg
from matchpod.cs2 import rcon
from matchpod.gameserver import (
    LOADED_MAP,
    FatalError,
    GameServer,
    Options,
    UsageError,
    bootstrap_password,
    choose_port,
    exit_code,
    expand_command,
    parse_arguments,
    parse_gameserver,
    read_secret,
)
from tests.conftest import corpus_dir
from tests.unit.test_cli import run

SOURCE = Path(gameserver.__file__).read_text("utf-8")
SECRET_FILE = {gameserver.SECRET_VARIABLE: "/run/secrets/fleet"}
SERVER = {
    "object_meta": {"name": "cs2-eu-abcde"},
    "status": {"state": "Scheduled", "ports": [{"name": "game", "port": 7001}]},
}


def server_with(**ports: int) -> GameServer:
    return GameServer("cs2-eu-abcde", "Scheduled", {name.replace("_", "-"): port for name, port in ports.items()})


# --- rules of the file ---------------------------------------------------------------------------------------------------


def test_file_has_no_syntax_newer_than_python_3_9() -> None:
    ast.parse(SOURCE, feature_version=(3, 9))
    with pytest.raises(SyntaxError):
        ast.parse("match x:\n    case 1: pass\n", feature_version=(3, 9))


def test_annotations_are_not_evaluated_so_newer_types_in_them_are_harmless() -> None:
    tree = ast.parse(SOURCE)
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)


def test_unions_of_types_are_used_in_annotations_only() -> None:
    tree = ast.parse(SOURCE)
    annotations = [
        part
        for node in ast.walk(tree)
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if part is not None
    ]
    inside = {id(node) for annotation in annotations for node in ast.walk(annotation)}
    unions = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)]
    assert unions
    assert [ast.unparse(node) for node in unions if id(node) not in inside] == []


def test_file_imports_the_standard_library_only() -> None:
    modules = set()
    for node in ast.walk(ast.parse(SOURCE)):
        if isinstance(node, ast.Import):
            modules |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            modules.add(str(node.module).partition(".")[0])
    assert modules <= sys.stdlib_module_names
    assert "matchpod" not in modules


# --- agreement with the service ------------------------------------------------------------------------------------------


def test_password_is_the_keyed_hash_of_the_name_without_padding() -> None:
    expected = base64.urlsafe_b64encode(hmac.new(b"s" * 32, b"cs2-eu-abcde", hashlib.sha256).digest()).decode()
    assert bootstrap_password(b"s" * 32, "cs2-eu-abcde") == expected.rstrip("=")
    # printf cs2-eu-abcde | openssl dgst -sha256 -hmac ssssssssssssssssssssssssssssssss -binary | base64
    assert bootstrap_password(b"s" * 32, "cs2-eu-abcde") == "fpc6LTPDUnYc7P6rbFEyXx4PKHzI6EIG8HIqs86s31Q"
    assert len(expected) == 44


def test_game_finds_its_password_where_the_simulator_reads_it() -> None:
    assert gameserver.PASSWORD_VARIABLE == rcon.PASSWORD_VARIABLE


def test_cfg_file_is_the_one_a_process_fleet_writes(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write_cfg(tmp_path / "a", "cs2-eu-abcde", {"rcon_password": "x-Y_z"}, None)
    ours = Path(gameserver.write_cfg(str(tmp_path / "b"), "cs2-eu-abcde", "x-Y_z"))
    theirs = tmp_path / "a" / cfg_name("cs2-eu-abcde")
    assert (ours.name, ours.read_text()) == (theirs.name, theirs.read_text())
    assert stat.S_IMODE(ours.stat().st_mode) == stat.S_IMODE(theirs.stat().st_mode) == 0o600


def test_cfg_file_replaces_an_older_one_and_does_not_follow_links(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("unchanged")
    (tmp_path / cfg_name("x")).symlink_to(target)
    path = Path(gameserver.write_cfg(str(tmp_path), "x", "new"))
    assert path.read_text() == 'rcon_password "new"\n'
    assert not path.is_symlink()
    assert target.read_text() == "unchanged"


def test_cfg_folder_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=r"cannot be written into .*/none: No such file or directory$"):
        gameserver.write_cfg(str(tmp_path / "none"), "x", "y")


def test_placeholders_are_replaced_as_in_a_process_fleet() -> None:
    template = ["./cs2", "-ip", "{ip}", "-port", "{port}", "+exec", "{cfg}", "+hostname", "{name}, {port}"]
    values = {"ip": "0.0.0.0", "port": "7001", "cfg": "a.cfg"}
    assert expand_command(template[:-2], values) == expand_process_command(template[:-2], values)
    assert expand_command(template, {**values, "name": "n"})[-1] == "n, 7001"


# --- arguments -----------------------------------------------------------------------------------------------------------


def test_defaults_are_below_the_grace_period_of_kubernetes() -> None:
    options, command = parse_arguments(["--", "./cs2", "-port", "{port}"], SECRET_FILE)
    assert command == ["./cs2", "-port", "{port}"]
    assert options == Options(secret_file="/run/secrets/fleet")
    assert options.grace_period < 30


def test_options_are_read_until_the_two_dashes() -> None:
    arguments = ["--secret-file", "s", "--cfg-dir=/cfg", "--grace-period", "7.5", "--ip", "::", "--port-name", "srcds"]
    options, command = parse_arguments([*arguments, "--", "./cs2", "--ip", "--", "{cfg}"], {})
    assert options == Options(secret_file="s", cfg_dir="/cfg", grace_period=7.5, ip="::", port_name="srcds")
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
        (["--grace-period", "-1", "--", "x"], "--grace-period must be a number of seconds above 0, not `-1`"),
        (["--sdk-timeout", "0.0", "--", "x"], "--sdk-timeout must be a number of seconds above 0, not `0.0`"),
        (["--start-timeout=1e9", "--", "x"], "--start-timeout must be a number of seconds"),
        (["--secret-file", "", "--", "x"], "--secret-file needs a value"),
        (["--", "x", "{map}"], "the command has the unknown placeholder {map}; --help lists all placeholders"),
        (["--", "x", "{cfg}"], "--cfg-dir and the placeholder {cfg} in the command need each other"),
        (["--cfg-dir", "/cfg", "--", "x"], "--cfg-dir and the placeholder {cfg} in the command need each other"),
    ],
)
def test_invalid_arguments_are_one_sentence(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        parse_arguments(arguments, SECRET_FILE)


def test_missing_secret_names_the_option_and_the_variable() -> None:
    message = "the secret of the fleet is missing; set --secret-file or MATCHPOD_FLEET_SECRET_FILE to its file"
    with pytest.raises(UsageError, match=message):
        parse_arguments(["--", "x"], {})


def test_every_option_is_in_the_help() -> None:
    for name, default in Options._field_defaults.items():
        assert f"--{name.replace('_', '-')} " in gameserver.HELP
        if isinstance(default, float):
            assert f"(default {default:g})" in gameserver.HELP


def test_main_reports_invalid_arguments_in_a_line_of_the_log(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["matchpod", "gameserver", "--nonsense"])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit) as exit_info:
        __main__.main()
    assert exit_info.value.code == 2
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} ERROR unknown option `--nonsense`; .*\n", capfd.readouterr().err)


def test_command_is_listed_in_the_help_of_the_app(capfd: pytest.CaptureFixture[str]) -> None:
    assert "gameserver" in run("--help").stdout
    assert run("gameserver", "--help").exit_code == 0
    assert capfd.readouterr().out == gameserver.HELP


# --- the secret ----------------------------------------------------------------------------------------------------------


def test_secret_is_read_without_the_line_break_at_its_end(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"0123456789abcdef\n")
    assert read_secret(str(file)) == b"0123456789abcdef"


@pytest.mark.parametrize(("content", "message"), [(b"", "has 0 bytes"), (b"  0123456789abcde \n", "has 15 bytes")])
def test_short_secret_is_rejected(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    with pytest.raises(FatalError, match=f"{message}; it needs 16 or more"):
        read_secret(str(file))


def test_missing_secret_file_is_one_sentence() -> None:
    with pytest.raises(FatalError, match=r"^the secret of the fleet cannot be read from /none: No such file"):
        read_secret("/none")


# --- what Agones says ----------------------------------------------------------------------------------------------------


def test_gameserver_is_read() -> None:
    answer = json.dumps(SERVER).encode()
    assert parse_gameserver(answer) == GameServer("cs2-eu-abcde", "Scheduled", {"game": 7001})


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff", b"{}", b'{"object_meta": {}}', b'{"object_meta": null, "status": {}}']
    + [json.dumps({**SERVER, "status": {"ports": ports}}).encode() for ports in ([{"name": "a"}], [1], {"a": 1}, 7)],
)
def test_other_answers_are_reported(body: bytes) -> None:
    with pytest.raises(OSError, match="did not answer with a GameServer"):
        parse_gameserver(body)


@pytest.mark.parametrize("status", [{}, None, {"ports": None}, {"ports": []}])
def test_gameserver_without_ports_is_not_usable_yet(status: object) -> None:
    body = json.dumps({**SERVER, "status": status}).encode()
    with pytest.raises(OSError, match=r"the GameServer cs2-eu-abcde has no ports; list them in its spec.ports"):
        parse_gameserver(body)


def test_port_with_both_protocols_is_found_by_its_name() -> None:
    both = server_with(query=1, srcds_tcp=7002, srcds_udp=7002, game_tcp=7001, game_udp=7001)
    assert choose_port(both, "") == 7001
    assert choose_port(both, "srcds") == 7002
    assert choose_port(both, "query") == 1
    assert choose_port(both, "srcds-tcp") == 7002


def test_udp_port_is_preferred_because_players_use_it() -> None:
    assert choose_port(server_with(game_tcp=1, game_udp=2), "") == 2


def test_first_port_is_used_unless_a_name_is_given() -> None:
    assert choose_port(server_with(default=7777, other=1), "") == 7777
    with pytest.raises(FatalError, match=r"^the GameServer cs2-eu-abcde has no port `game`; it has default, other$"):
        choose_port(server_with(default=7777, other=1), "game")


# --- the game ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "map_name"),
    [
        ("loaded spawngroup(  1)  : SV:  [1: de_inferno | main lump | mapload]\n", "de_inferno"),
        ("noise\nloaded spawngroup( 12)  : SV:  [12: ze_winter_p | main lump | mapload]\r\nmore", "ze_winter_p"),
        ("loaded spawngroup(  2)  : SV:  [2: prefabs/misc/team_select | main lump | mapload | point_prefab]\n", None),
        ("hostname : loaded spawngroup(  1)  : SV:  [1: de_fake | main lump | mapload]\n", None),
        ("---------spawngroups----\n---------players--------\n#end\n", None),
        ("", None),
    ],
)
def test_map_is_loaded_if_its_spawn_group_is(status: str, map_name: str | None) -> None:
    found = LOADED_MAP.search(status)
    assert (found and found[1]) == map_name


@pytest.mark.skipif(not corpus_dir().is_dir(), reason="no recorded answers; set MATCHPOD_CORPUS to their folder")
@pytest.mark.parametrize(
    ("file", "map_name"),
    [("status_1.41.2.8_bots_hibernating.txt", "de_inferno"), ("status_1.41.8.1_empty.txt", "ze_winter_warehouse_p")],
)
def test_map_is_found_in_recorded_answers(file: str, map_name: str) -> None:
    found = LOADED_MAP.search((corpus_dir() / file).read_text())
    assert found is not None
    assert found[1] == map_name


@pytest.mark.parametrize(
    ("ended", "is_requested", "code"),
    [(0, False, 1), (3, False, 3), (-11, False, 139), (0, True, 0), (3, True, 0), (-15, True, 0), (-9, True, 137)],
)
def test_exit_code_is_0_only_after_a_request_that_was_followed(ended: int, is_requested: bool, code: int) -> None:
    assert exit_code(ended, is_requested=is_requested) == code


def test_log_line_has_time_level_message_and_fields(capfd: pytest.CaptureFixture[str]) -> None:
    gameserver.log("INFO", "game server ready", map="de_nuke", reason='two "words"', waited_s=3)
    gameserver.log("WARNING", "plain")
    first, second = capfd.readouterr().err.splitlines()
    assert re.fullmatch(
        r'\d\d:\d\d:\d\d\.\d{3} INFO  game server ready  map=de_nuke reason="two \\"words\\"" waited_s=3', first
    )
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} WARNING plain", second)
