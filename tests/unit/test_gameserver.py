"""The pure parts of the entry point of game server images, and the rules it is written by."""

from __future__ import annotations

import ast
import base64
import hashlib
import hmac
import json
import re
import socket
import stat
import sys
from pathlib import Path

import pytest

import matchpod_gameserver
from cs2_protocol import rcon
from matchpod import __main__
from matchpod.adapters.fleets.process import expand_command as expand_process_command
from matchpod.adapters.fleets.secret_cfg import cfg_name, write_cfg
from matchpod_gameserver import log, password
from matchpod_gameserver.game import exit_code
from matchpod_gameserver.log import FatalError
from matchpod_gameserver.options import (
    HELP,
    PASSWORD_VARIABLE,
    SECRET_VARIABLE,
    DeriveOptions,
    Options,
    UsageError,
    expand_command,
    parse_arguments,
    parse_derive_arguments,
)
from matchpod_gameserver.password import bootstrap_password, read_password, read_secret, write_password
from matchpod_gameserver.rcon import LOADED_MAP
from matchpod_gameserver.sdk import SdkServer, choose_port, parse_gameserver
from matchpod_gameserver.usage import LOOK_S, PLAYER_PACKETS_S, Usage, count_connections, count_packets
from tests.corpus_folder import corpus_dir
from tests.unit.test_cli import run

FILES = sorted(Path(matchpod_gameserver.__file__).parent.glob("*.py"))
SECRET_FILE = {SECRET_VARIABLE: "/run/secrets/fleet"}
SERVER = {
    "object_meta": {"name": "cs2-eu-abcde"},
    "status": {"state": "Scheduled", "ports": [{"name": "game", "port": 7001}]},
}


def server_with(**ports: int) -> SdkServer:
    return SdkServer("cs2-eu-abcde", "Scheduled", {name.replace("_", "-"): port for name, port in ports.items()})


# --- rules of the files --------------------------------------------------------------------------------------------------


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def tree(request: pytest.FixtureRequest) -> ast.Module:
    """The syntax tree of each file, read as Python 3.9 reads it."""
    file: Path = request.param
    return ast.parse(file.read_text("utf-8"), feature_version=(3, 9))


def test_newer_syntax_would_be_noticed() -> None:
    with pytest.raises(SyntaxError):
        ast.parse("match x:\n    case 1: pass\n", feature_version=(3, 9))


def test_annotations_are_not_evaluated_so_newer_types_in_them_are_harmless(tree: ast.Module) -> None:
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)


def test_unions_of_types_are_used_in_annotations_only(tree: ast.Module) -> None:
    annotations = [
        part
        for node in ast.walk(tree)
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if part is not None
    ]
    inside = {id(node) for annotation in annotations for node in ast.walk(annotation)}
    unions = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)]
    assert [ast.unparse(node) for node in unions if id(node) not in inside] == []


def test_files_import_the_standard_library_and_each_other_only(tree: ast.Module) -> None:
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            modules.add(str(node.module).partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 1
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
    assert PASSWORD_VARIABLE == rcon.PASSWORD_VARIABLE


def test_cfg_file_is_the_one_a_process_fleet_writes(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write_cfg(tmp_path / "a", "cs2-eu-abcde", {"rcon_password": "x-Y_z"}, None)
    ours = Path(password.write_cfg(str(tmp_path / "b"), "cs2-eu-abcde", "x-Y_z"))
    theirs = tmp_path / "a" / cfg_name("cs2-eu-abcde")
    assert (ours.name, ours.read_text()) == (theirs.name, theirs.read_text())
    assert stat.S_IMODE(ours.stat().st_mode) == stat.S_IMODE(theirs.stat().st_mode) == 0o600


def test_cfg_file_replaces_an_older_one_and_does_not_follow_links(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("unchanged")
    (tmp_path / cfg_name("x")).symlink_to(target)
    path = Path(password.write_cfg(str(tmp_path), "x", "new"))
    assert path.read_text() == 'rcon_password "new"\n'
    assert not path.is_symlink()
    assert target.read_text() == "unchanged"


def test_cfg_folder_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=r"cannot be written into .*/none: No such file or directory$"):
        password.write_cfg(str(tmp_path / "none"), "x", "y")


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
        (["--grace-period", "-1", "--", "x"], "--grace-period must be a time above 0 such as 90, 30m or 12h, not `-1`"),
        (["--sdk-timeout", "0.0", "--", "x"], "--sdk-timeout must be a time above 0 such as 90, 30m or 12h, not `0.0`"),
        (["--start-timeout=1e9", "--", "x"], "--start-timeout must be a time above 0"),
        (["--max-life", "2d", "--", "x"], "--max-life must be a time above 0"),
        (["--idle-exit", "0m", "--", "x"], "--idle-exit must be a time above 0"),
        (["--idle-exit", "m", "--", "x"], "--idle-exit must be a time above 0"),
        (
            ["--secret-file", "s", "--password-file", "p", "--", "x"],
            "--password-file and --secret-file exclude each other",
        ),
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
    assert options == Options(secret_file="/run/secrets/fleet", max_life=seconds, idle_exit=seconds)


def test_password_file_replaces_the_secret() -> None:
    assert parse_arguments(["--password-file", "p", "--", "x"], {})[0] == Options(password_file="p")
    assert parse_arguments(["--password-file", "p", "--", "x"], SECRET_FILE)[0] == Options(password_file="p")


def test_password_is_derived_for_a_name_and_a_file() -> None:
    found = parse_derive_arguments(["--name", "cs2-eu-abcde", "--out=/run/p"], SECRET_FILE)
    assert found == DeriveOptions("/run/secrets/fleet", "cs2-eu-abcde", "/run/p")


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
    assert capfd.readouterr().out == HELP


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


def test_derived_password_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("an older one")
    write_password(str(file), bootstrap_password(b"s" * 32, "cs2-eu-abcde"))
    assert read_password(str(file)) == bootstrap_password(b"s" * 32, "cs2-eu-abcde")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"a secret of a fleet", b"x" * 42, b"x" * 44, b'";quit' + b"x" * 37])
def test_file_that_has_no_derived_password_is_rejected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "password").write_bytes(content)
    with pytest.raises(FatalError, match="has no RCON password that `derive-password` has written"):
        read_password(str(tmp_path / "password"))


# --- what Agones says ----------------------------------------------------------------------------------------------------


def test_gameserver_is_read() -> None:
    answer = json.dumps(SERVER).encode()
    assert parse_gameserver(answer) == SdkServer("cs2-eu-abcde", "Scheduled", {"game": 7001})


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
    log.log("INFO", "game server ready", map="de_nuke", reason='two "words"', waited_s=3)
    log.log("WARNING", "plain")
    first, second = capfd.readouterr().err.splitlines()
    assert re.fullmatch(
        r'\d\d:\d\d:\d\d\.\d{3} INFO  game server ready  map=de_nuke reason="two \\"words\\"" waited_s=3', first
    )
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} WARNING plain", second)


# --- a match that was left -----------------------------------------------------------------------------------------------

HOUR_S = 3600.0


def observe(
    usage: Usage, seconds: float, *, is_allocated: bool = True, is_used: bool = False, since_s: float = 0.0
) -> float:
    """Look at a server as often as the program does; return the time at which it would be ended, or -1."""
    for number in range(int(seconds / LOOK_S) + 1):
        if usage.observe(since_s + number * LOOK_S, is_allocated=is_allocated, is_used=is_used):
            return number * LOOK_S
    return -1


def test_match_without_players_and_console_is_ended_after_the_limit() -> None:
    assert observe(Usage(0, 600), HOUR_S) == 600


def test_match_that_is_used_is_never_idle() -> None:
    assert observe(Usage(0, 600), 24 * HOUR_S, is_used=True) == -1


def test_use_begins_the_idle_time_anew() -> None:
    usage = Usage(0, 600)
    assert observe(usage, 595) == -1
    usage.observe(600, is_allocated=True, is_used=True)
    assert observe(usage, HOUR_S, since_s=600) == 600


def test_server_without_a_match_is_left_to_agones() -> None:
    assert observe(Usage(600, 600), HOUR_S, is_allocated=False) == -1


def test_life_counts_from_the_allocation() -> None:
    usage = Usage(600, 0)
    assert observe(usage, 24 * HOUR_S, is_allocated=False) == -1
    assert observe(usage, HOUR_S, is_used=True, since_s=25 * HOUR_S) == 600


def test_without_limits_nothing_ends() -> None:
    assert observe(Usage(0, 0), 24 * HOUR_S) == -1


def test_time_in_which_the_program_stood_still_does_not_count() -> None:
    usage = Usage(0, 600)
    usage.observe(0, is_allocated=True, is_used=True)
    assert usage.observe(HOUR_S, is_allocated=True, is_used=False) is None


TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:6987 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   1: 0A00002A:6987 0A000017:C350 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0 100 0 0 10 0
   2: 0A00002A:6987 0A000017:C351 06 00000000:00000000 00:00000000 00000000  1000        0 0 1 0 100 0 0 10 0
   3: 0A00002A:C352 0A000017:6987 01 00000000:00000000 00:00000000 00000000  1000        0 3 1 0 100 0 0 10 0
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when
   0: 0000000000000000FFFF00000A00002A:6987 0000000000000000FFFF00000A000017:C350 01 00000000:00000000 00:00000000
"""


@pytest.mark.parametrize(("table", "port", "number"), [(TCP, 27015, 1), (TCP6, 27015, 1), (TCP, 27016, 0), ("", 1, 0)])
def test_only_open_connections_to_the_port_count(table: str, port: int, number: int) -> None:
    assert count_connections(table, port) == number


def test_received_packets_are_read_from_the_kernel() -> None:
    before = count_packets(Path("/proc/net/snmp").read_text())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        for _ in range(100):
            own.sendto(b"x", own.getsockname())
            own.recv(1)
        assert count_packets(Path("/proc/net/snmp").read_text()) >= before + 100


def test_packets_of_both_protocols_count() -> None:
    table = "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts\nUdp: 40 3\nUdpLite: InDatagrams\nUdpLite: 7\n"
    assert count_packets(table) == 40
    assert count_packets(table, "Ip6InReceives\t9\nUdp6InDatagrams                 \t2\nUdp6NoPorts\t5\n") == 42


def test_one_player_is_above_the_limit_and_a_server_browser_below() -> None:
    assert 5 < PLAYER_PACKETS_S < 64
