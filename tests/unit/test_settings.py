"""Settings: defaults, precedence, all faults at once, no secrets in messages, and the documentation page."""

from __future__ import annotations

import base64
import copy
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from matchpod.settings import (
    AgonesFleetSettings,
    ProcessFleetSettings,
    Secret,
    Settings,
    SettingsError,
    StaticFleetSettings,
    StaticServerSettings,
    load_settings,
)
from matchpod.settings.fleets import AGONES_FLEET, PROCESS_FLEET, READERS, STATIC_SERVER
from matchpod.settings.table import Setting
from matchpod.settings.values import REGION, SERVICE, RegionSettings
from scripts import write_configuration

KEY = base64.b64encode(bytes(range(32))).decode()
HIDDEN = "hunter2"
DERIVED = ("name", "location", "allows_simulator", "command", "public_ip")
"""Fields whose value follows from others unless they are set."""


def no_file(_: Path) -> bytes | None:
    return None


def file_at(location: str, text: str) -> Callable[[Path], bytes | None]:
    return lambda path: text.encode() if path == Path(location) else None


def load(environment: Mapping[str, str] | None = None, text: str = "") -> Settings:
    return load_settings(environment or {}, file_at("var/matchpod.toml", text))


def faults_of(environment: Mapping[str, str] | None = None, text: str = "") -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load(environment, text)
    assert str(caught.value) == "\n".join(caught.value.faults)
    return caught.value.faults


def region(fleet: str, extra: str = "") -> str:
    return f'[[regions]]\ncode = "eu"\n{extra}\n[regions.fleet]\n{fleet}\n'


def regions(*fleets: str) -> str:
    tables = (f'[[regions]]\ncode = "r{number}"\n[regions.fleet]\n{fleet}\n' for number, fleet in enumerate(fleets))
    return "".join(tables)


def static(*addresses: str) -> str:
    servers = ", ".join(f'{{ address = "{address}", rcon_password = "x" }}' for address in addresses)
    return f'kind = "static"\nservers = [{servers}]'


def fleet_fault(fleet: str, extra: str = "") -> str:
    (fault,) = faults_of(text=region(fleet, extra))
    return fault


# --- defaults -----------------------------------------------------------------------------------------------------


def test_all_settings_are_optional() -> None:
    settings = load_settings({"PATH": "/bin"}, no_file)
    assert (settings.host, settings.port, settings.data_dir) == ("127.0.0.1", 8080, Path("var"))
    assert (settings.config, settings.database_url, settings.secret_key) == (None, None, None)
    assert (settings.database_path, settings.key_path) == (Path("var/matchpod.sqlite3"), Path("var/secret.key"))
    assert (settings.log_format, settings.log_level, settings.callback_private) == ("human", "info", None)
    assert (settings.pending_s, settings.rate_limit, settings.console) == (600, None, True)
    assert settings.min_free_disk_mb == 512
    assert (settings.max_live_matches, settings.max_creations_per_minute, settings.max_streams) == (1000, 600, 1000)
    assert settings.max_matches_per_process is None
    assert (settings.raw_log_days, settings.event_days) == (30, 365)
    assert (settings.cors_origins, settings.extra_cvars) == ((), ())


@pytest.mark.parametrize(
    ("host", "setting", "is_allowed"),
    [
        *(("127.0.0.1", "", True), ("127.9.9.9", "", True), ("::1", "", True), ("localhost", "", True)),
        *(("0.0.0.0", "", False), ("::", "", False), ("192.0.2.7", "", False), ("matches.example", "", False)),
        *(("0.0.0.0", "allow", True), ("127.0.0.1", "deny", False)),
    ],
)
def test_private_callbacks_are_denied_unless_only_this_machine_can_call(
    host: str, setting: str, *, is_allowed: bool
) -> None:
    settings = load_settings({"MATCHPOD_HOST": host, "MATCHPOD_CALLBACK_PRIVATE": setting}, no_file)
    assert settings.allows_private_callbacks is is_allowed


@pytest.mark.parametrize(
    ("host", "public_url", "is_allowed"),
    [
        *(("127.0.0.1", "http://127.0.0.1:8080", True), ("127.0.0.1", "http://localhost", True)),
        *(("::1", "http://[::1]:8080", True), ("localhost", "https://LOCALHOST:8443", True)),
        *(("127.0.0.1", "https://play.example", False), ("::1", "http://192.0.2.7", False)),
        *(("127.0.0.1", "http://10.0.0.7:8080", False), ("127.0.0.1", "https://127.0.0.1.example", False)),
        ("0.0.0.0", "http://127.0.0.1:8080", False),
    ],
)
def test_private_callbacks_are_denied_behind_a_proxy_with_a_public_url(
    host: str, public_url: str, *, is_allowed: bool
) -> None:
    settings = load_settings({"MATCHPOD_HOST": host, "MATCHPOD_PUBLIC_URL": public_url}, no_file)
    assert settings.allows_private_callbacks is is_allowed
    allowed = load_settings({"MATCHPOD_PUBLIC_URL": public_url, "MATCHPOD_CALLBACK_PRIVATE": "allow"}, no_file)
    assert allowed.allows_private_callbacks


def test_port_for_metrics_is_another_one() -> None:
    for port, ops_port in (("8080", 9090), ("0", 0)):
        assert load({"MATCHPOD_PORT": port, "MATCHPOD_OPS_PORT": str(ops_port)}).ops_port == ops_port
    same = {"MATCHPOD_PORT": "9", "MATCHPOD_OPS_PORT": "9"}
    assert faults_of(same) == ("ops_port is 9, as is port; it must be another port.",)


def test_port_for_uploads_is_another_one() -> None:
    ports = {"MATCHPOD_UPLOAD_PORT": "9", "MATCHPOD_OPS_PORT": "9", "MATCHPOD_PORT": "8"}
    assert faults_of(ports) == ("upload_port is 9, as is ops_port; it must be another port.",)
    assert load_settings({"MATCHPOD_UPLOAD_PORT": "0", "MATCHPOD_PORT": "0"}, no_file).upload_port == 0


def test_demos_are_uploaded_where_the_log_is_posted_unless_settings_say_otherwise() -> None:
    port = {"MATCHPOD_UPLOAD_PORT": "8081"}
    assert load_settings({}, no_file).upload_base() is None
    assert load_settings(port, no_file).upload_base() == "http://127.0.0.1:8081"
    assert load_settings({"MATCHPOD_UPLOAD_PORT": "0"}, no_file).upload_base(7) == "http://127.0.0.1:7"
    public = {**port, "MATCHPOD_PUBLIC_URL": "https://play.example"}
    assert load_settings(public, no_file).upload_base() == "https://play.example"
    logs = {**public, "MATCHPOD_LOG_URL": "http://matchpod.internal"}
    assert load_settings(logs, no_file).upload_base() == "http://matchpod.internal"
    without_proxy = {**public, "MATCHPOD_LOG_URL": "http://matchpod.internal:8080"}
    assert load_settings(without_proxy, no_file).upload_base() == "http://matchpod.internal:8081"
    own_port = {**port, "MATCHPOD_PUBLIC_URL": "https://play.example:8080"}
    assert load_settings(own_port, no_file).upload_base() == "https://play.example:8080"
    own = {**logs, "MATCHPOD_UPLOAD_URL": "http://uploads.internal"}
    assert load_settings(own, no_file).upload_base() == "http://uploads.internal"


def test_region_may_upload_demos_elsewhere() -> None:
    fleet = 'kind = "process"\nports = "1-2"'
    elsewhere = region(fleet, 'log_url = "http://log.example"')
    assert load(text=elsewhere).upload_urls == {"eu": "http://log.example"}
    assert load({"MATCHPOD_UPLOAD_URL": "http://up.example"}, elsewhere).upload_urls == {"eu": "http://log.example"}
    direct = region(fleet, 'log_url = "http://log.example:8080"')
    assert load({"MATCHPOD_UPLOAD_PORT": "8082"}, direct).upload_urls == {"eu": "http://log.example:8082"}
    both = region(fleet, 'log_url = "http://log.example"\nupload_url = "http://eu.example"')
    assert load({"MATCHPOD_UPLOAD_URL": "http://up.example"}, both).upload_urls == {"eu": "http://eu.example"}


@pytest.mark.parametrize("url", ["file:///srv/demos", "s3://cup", "s3://cup/a?endpoint=http://h:9&region=eu-1"])
def test_demos_are_stored_in_a_folder_or_a_bucket(url: str) -> None:
    assert load({"MATCHPOD_DEMO_STORAGE": url}).demo_storage_url == url


@pytest.mark.parametrize(
    "url",
    [
        *("/srv/demos", "file://host/srv", "file:demos", "s3:///folder", "s3://B", "s3://cup?endpoint=h"),
        *("s3://key:secret@cup", "s3://cup?acl=public", "http://cup", "s3://cup/#a", "file:///srv?x=1"),
    ],
)
def test_other_places_for_demos_are_rejected(url: str) -> None:
    (fault,) = faults_of({"MATCHPOD_DEMO_STORAGE": url})
    assert "it must be a URL like file:///srv/demos or s3://" in fault


def test_demos_are_stored_in_the_data_folder_unless_set() -> None:
    assert load({"MATCHPOD_DATA_DIR": "/data"}).demo_storage_url == "file:///data/demos"


def test_default_region_is_simulated() -> None:
    (sandbox,) = load_settings({}, no_file).regions
    assert (sandbox.code, sandbox.speed, sandbox.allows_simulator) == ("sandbox", 30.0, True)
    assert isinstance(sandbox.fleet, ProcessFleetSettings)
    assert sandbox.fleet.ports == tuple(range(27100, 27200))
    assert " ".join(sandbox.fleet.command) == (
        f"{sys.executable} "
        "-m matchpod simulate -port {port} -ip {ip} +map {map} +game_type {game_type} +game_mode {game_mode} "
        "--players {players} --speed {speed} --seed {server_id} --quiet"
    )


def test_every_field_is_a_setting_whose_default_has_its_type() -> None:
    assert len(SERVICE) == len(msgspec.structs.fields(Settings)) - 1  # the regions are tables
    for struct in (Settings, RegionSettings, ProcessFleetSettings, StaticServerSettings, AgonesFleetSettings):
        for field in msgspec.structs.fields(struct):
            setting = field.default_factory
            if isinstance(setting, Setting) and not setting.is_required and field.name not in DERIVED:
                assert msgspec.convert(setting(), field.type) == setting()


def test_every_setting_is_required_or_has_a_default_or_a_fallback() -> None:
    for setting in [*SERVICE, *REGION, *PROCESS_FLEET, *STATIC_SERVER, *AGONES_FLEET]:
        assert setting.is_required + (setting.default is not None) + bool(setting.fallback) == 1
        assert setting.meaning.endswith(".")


# --- sources ------------------------------------------------------------------------------------------------------


def test_environment_overrides_the_file_and_the_file_overrides_defaults() -> None:
    settings = load({"MATCHPOD_PORT": "9000"}, 'port = 9001\nhost = "0.0.0.0"')
    assert (settings.port, settings.host, settings.log_level) == (9000, "0.0.0.0", "info")
    assert settings.config == Path("var/matchpod.toml")


def test_empty_variable_counts_as_not_set() -> None:
    assert load({"MATCHPOD_PORT": "", "MATCHPOD_SECRET_KEY": ""}).port == 8080


def test_default_config_file_is_in_the_data_folder() -> None:
    read = file_at("/srv/pod/matchpod.toml", "port = 9001")
    assert load_settings({"MATCHPOD_DATA_DIR": "/srv/pod"}, read).port == 9001


def test_config_file_is_read_and_may_set_the_data_folder() -> None:
    settings = load_settings({"MATCHPOD_CONFIG": "/etc/pod.toml"}, file_at("/etc/pod.toml", 'data_dir = "/srv/pod"'))
    assert (settings.config, settings.data_dir) == (Path("/etc/pod.toml"), Path("/srv/pod"))


def test_explicit_config_file_must_exist() -> None:
    with pytest.raises(SettingsError, match=r'^MATCHPOD_CONFIG is "x\.toml"; it must be a file that exists\.$'):
        load_settings({"MATCHPOD_CONFIG": "x.toml"}, no_file)


def test_settings_can_be_given_in_the_environment() -> None:
    settings = load(
        {
            "MATCHPOD_PUBLIC_URL": "https://pod.example/base/",
            "MATCHPOD_DATABASE_URL": f"postgresql://pod:{HIDDEN}@db/pod",
            "MATCHPOD_SECRET_KEY": KEY,
            "MATCHPOD_LOG_FORMAT": "json",
            "MATCHPOD_LOG_LEVEL": "debug",
            "MATCHPOD_CALLBACK_PRIVATE": "deny",
            "MATCHPOD_CONSOLE": "off",
            "MATCHPOD_PENDING_S": "0",
            "MATCHPOD_RATE_LIMIT": "60",
            "MATCHPOD_MAX_BODY_BYTES": "65536",
            "MATCHPOD_EXTRA_CVARS": "my_mode, other_mode",
            "MATCHPOD_CORS_ORIGINS": "https://cup.example, http://127.0.0.1:3000",
        }
    )
    assert settings.ingest_base() == "https://pod.example/base"
    assert settings.database_url == Secret(f"postgresql://pod:{HIDDEN}@db/pod")
    assert settings.secret_key is not None
    assert settings.secret_key.reveal() == KEY
    assert (settings.log_format, settings.log_level, settings.callback_private) == ("json", "debug", False)
    assert not settings.console
    assert (settings.pending_s, settings.rate_limit, settings.max_body_bytes) == (0, 60, 65536)
    assert settings.extra_cvars == ("my_mode", "other_mode")
    assert settings.cors_origins == ("https://cup.example", "http://127.0.0.1:3000")


def test_trusted_proxies_are_those_of_this_machine_unless_set() -> None:
    for given, networks in [
        ("", ("127.0.0.0/8", "::1/128")),
        ("off", ()),
        ("10.0.0.0/8, 192.0.2.7,2001:db8::/32", ("10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32")),
    ]:
        assert load_settings({"MATCHPOD_TRUSTED_PROXIES": given}, no_file).trusted_proxies == networks


def test_game_servers_of_a_region_use_its_log_url_or_that_of_all() -> None:
    own = region('kind = "process"\nports = "100-109"', 'log_url = "https://eu.example/"')
    both = own + regions('kind = "process"\nports = "200-209"')
    assert load({}, both).log_urls == {"eu": "https://eu.example"}
    everywhere = {"MATCHPOD_LOG_URL": "http://matchpod.svc:8080", "MATCHPOD_PUBLIC_URL": "https://pod.example"}
    assert load(everywhere, both).log_urls == {"eu": "https://eu.example", "r0": "http://matchpod.svc:8080"}
    assert load(everywhere, both).ingest_base() == "https://pod.example"


def test_default_port_of_an_origin_is_dropped_as_browsers_do() -> None:
    given = "https://a.example:443, http://a.example:80, https://[::1]:443, https://a.example:80, http://a.example:443"
    settings = load_settings({"MATCHPOD_CORS_ORIGINS": given}, no_file)
    assert settings.cors_origins == (
        *("https://a.example", "http://a.example", "https://[::1]", "https://a.example:80", "http://a.example:443"),
    )


def test_scheme_of_the_public_url_is_in_lower_case() -> None:
    settings = load_settings({"MATCHPOD_PUBLIC_URL": "HTTPS://Pod.example/Base"}, no_file)
    assert settings.public_url == "https://Pod.example/Base"


def test_ingest_url_has_an_address_that_can_be_reached() -> None:
    for host, base in [
        ("127.0.0.1", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:8080"),
        ("::", "http://[::1]:8080"),
        ("2001:db8::1", "http://[2001:db8::1]:8080"),
        ("pod.example", "http://pod.example:8080"),
    ]:
        assert load({"MATCHPOD_HOST": host}).ingest_base() == base


def test_ingest_url_has_the_bound_port_if_the_setting_is_0() -> None:
    assert load({"MATCHPOD_PORT": "0"}).ingest_base(4711) == "http://127.0.0.1:4711"


# --- faults -------------------------------------------------------------------------------------------------------


def test_fault_of_an_invalid_value_says_what_is_allowed() -> None:
    for name, value, allowed in [
        ("PORT", "65536", "a whole number from 0 to 65535"),
        ("PORT", "80 80", "a whole number from 0 to 65535"),
        ("HOST", "300.1.1.1", "an IP address or a host name"),
        ("HOST", "a b", "an IP address or a host name"),
        ("PUBLIC_URL", "pod.example", "an http:// or https:// URL without user name, query and fragment"),
        ("PUBLIC_URL", "http://pod.example/?a", "an http:// or https:// URL without user name, query and fragment"),
        ("LOG_FORMAT", "xml", "human or json"),
        ("LOG_LEVEL", "loud", "debug, info, warning or error"),
        ("CALLBACK_PRIVATE", "yes", "allow or deny"),
        ("RATE_LIMIT", "0", "off or a whole number from 1 to 1000000"),
        ("EXTRA_CVARS", "a;b", "names of console variables, separated by commas"),
        *(
            ("CORS_ORIGINS", origin, "* or origins such as https://cup.example, separated by commas")
            for origin in ("cup.example", "https://cup.example/", "https://Cup.example", "https://a.example,")
        ),
        *(
            ("TRUSTED_PROXIES", networks, "off, or addresses and networks such as 10.0.0.0/8, separated by commas")
            for networks in ("proxy.example", "10.0.0.1/8", "10.0.0.0/33", "0.0.0.0/0", "10.0.0.1, ::/0", "10.0.0.1,")
        ),
        ("LOG_URL", "matchpod:8080", "an http:// or https:// URL without user name, query and fragment"),
        ("DATA_DIR", " ", "a path"),
    ]:
        assert faults_of({f"MATCHPOD_{name}": value}) == (f'MATCHPOD_{name} is "{value}"; it must be {allowed}.',)


def test_callback_proxy_is_an_http_url_and_a_secret() -> None:
    for url in ("http://proxy.example:3128", f"http://pod:{HIDDEN}@10.0.0.1/", "http://[2001:db8::1]:3128"):
        settings = load_settings({"MATCHPOD_CALLBACK_PROXY": url}, no_file)
        assert settings.callback_proxy == Secret(url)
        assert HIDDEN not in repr(settings)
    for url in ("https://proxy.example", "proxy.example:3128", "http://", "http://a b", "http://proxy.example:0"):
        (fault,) = faults_of({"MATCHPOD_CALLBACK_PROXY": url})
        assert fault.startswith(
            "MATCHPOD_CALLBACK_PROXY has an invalid value (not shown); it must be a URL like http://"
        )
    assert len(faults_of({"MATCHPOD_CALLBACK_PROXY": "http://proxy.example/path"})) == 1
    assert len(faults_of({"MATCHPOD_CALLBACK_PROXY": "http://proxy.example:x"})) == 1


def test_fault_names_the_key_and_the_file() -> None:
    for line, fault in [
        ("port = true", "port in var/matchpod.toml is true; it must be a whole number from 0 to 65535."),
        ("port = 1.5", "port in var/matchpod.toml is 1.5; it must be a whole number from 0 to 65535."),
        ("host = ['a']", "host in var/matchpod.toml is a list; it must be an IP address or a host name."),
        ("host = {a = 1}", "host in var/matchpod.toml is a table; it must be an IP address or a host name."),
        ("host = 2026-01-01", "host in var/matchpod.toml is a date or time; it must be an IP address or a host name."),
        (
            "extra_cvars = 3",
            "extra_cvars in var/matchpod.toml is 3; it must be names of console variables, separated by commas.",
        ),
        ("prot = 1", "prot in var/matchpod.toml is not a known key; did you mean port?"),
        ("config = 'x'", "config in var/matchpod.toml is not a known key."),
        ("regions = []", "regions in var/matchpod.toml must be one or more tables that begin with [[regions]]."),
        ("regions = 'eu'", "regions in var/matchpod.toml must be one or more tables that begin with [[regions]]."),
    ]:
        assert faults_of(text=line) == (fault,)


def test_unknown_variables_are_faults_with_the_nearest_name() -> None:
    assert faults_of({"MATCHPOD_PROT": "1", "MATCHPOD_XYZZY": "1"}) == (
        "MATCHPOD_PROT is not a known setting; did you mean MATCHPOD_PORT?",
        "MATCHPOD_XYZZY is not a known setting.",
    )


def test_all_faults_are_reported_at_once() -> None:
    text = 'port = -1\nspeed = 3\n[[regions]]\n[regions.fleet]\nkind = "process"\nhosts = "x"\n'
    faults = faults_of({"MATCHPOD_LOG_LEVEL": "loud", "MATCHPOD_HOTS": "x"}, text)
    assert [fault.split()[0] for fault in faults] == [
        "MATCHPOD_HOTS",
        "MATCHPOD_LOG_LEVEL",
        "port",
        "speed",
        "regions[1].code",
        "regions[1].fleet.hosts",
        "regions[1].fleet.ports",
    ]


@pytest.mark.parametrize("content", [b"port = ", b"\xff", b"port = " + b"9" * 5000, b"a = " + b"[" * 5000])
def test_file_that_is_not_toml_is_reported(content: bytes) -> None:
    with pytest.raises(SettingsError, match=r"The file var/matchpod\.toml is not (TOML|UTF-8)") as caught:
        load_settings({"MATCHPOD_PORT": "x"}, lambda _: content)
    assert [fault.split()[0] for fault in caught.value.faults] == ["MATCHPOD_PORT", "The"]


# --- regions ------------------------------------------------------------------------------------------------------


TWO_PORTS = 'kind = "process"\nports = "1-2"\n'
AGONES = 'kind = "agones"\nfleet = "cs2"\nsecret_file = "/etc/fleet/secret"'
FOLDERS = 'install_dir = "/cs2"\ninstances_dir = "/servers"\n'


def test_region_needs_only_a_code_and_a_fleet() -> None:
    (eu,) = load(
        text=region('kind = "process"\nports = "27015-27016"\ncommand = ["{python}", "{port}{rcon_password}"]')
    ).regions
    assert (eu.name, eu.location, eu.speed, eu.allows_simulator) == ("eu", "eu", 1.0, False)
    assert eu.fleet == ProcessFleetSettings(
        command=(sys.executable, "{port}{rcon_password}"),
        ports=(27015, 27016),
        host="127.0.0.1",
        public_ip="127.0.0.1",
        environment={},
        working_dir=None,
        memory_mb=None,
    )
    assert eu.fleet.memory_bytes is None


def test_secrets_of_servers_are_passed_in_a_file() -> None:
    text = 'kind = "process"\nports = "1-2"\ncfg_dir = "/srv/cfg"\nsteam_tokens = ["ABCDEFGH", "IJKLMNOP"]\nuser = 1000'
    (eu,) = load(text=region(f'{text}\ncommand = ["cs2", "{{port}}", "+exec", "{{cfg}}"]')).regions
    assert isinstance(eu.fleet, ProcessFleetSettings)
    assert (eu.fleet.cfg_dir, eu.fleet.user) == (Path("/srv/cfg"), "1000")
    assert [token.reveal() for token in eu.fleet.steam_tokens] == ["ABCDEFGH", "IJKLMNOP"]
    assert "ABCDEFGH" not in repr(eu)


def test_region_with_its_own_command_may_allow_simulator_cvars() -> None:
    fleet = 'kind = "process"\nports = "1-1"\ncommand = ["{port}", "{rcon_password}"]'
    assert load(text=region(fleet, "allows_simulator = true")).regions[0].allows_simulator


def test_servers_may_have_folders_and_ports_for_gotv_of_their_own() -> None:
    command = 'tv_ports = "27020-27021"\ncommand = ["{game}/cs2.sh", "{port}", "{tv_port}", "{cfg}"]'
    text = f'{TWO_PORTS}{FOLDERS}addons = ["metamod"]\nsteamclient = "/s.so"\n{command}'
    (eu,) = load(text=region(text)).regions
    assert isinstance(eu.fleet, ProcessFleetSettings)
    assert (eu.fleet.install_dir, eu.fleet.instances_dir) == (Path("/cs2"), Path("/servers"))
    assert (eu.fleet.addons, eu.fleet.steamclient, eu.fleet.tv_ports) == (("metamod",), Path("/s.so"), (27020, 27021))


def test_port_for_gotv_conflicts_with_that_of_another_server() -> None:
    text = 'kind = "process"\nports = "27015-27020"\ntv_ports = "27020-27025"\ncommand = ["cs2", "{port}", "{tv_port}"]'
    assert "use 127.0.0.1:27020 more than once; each must belong to one server" in fleet_fault(text)


def test_faults_of_a_fleet_name_the_key_with_its_path() -> None:
    for fleet, key, fault in [
        ('kind = "cloud"', "kind", 'is "cloud"; it must be process, static or agones.'),
        ("", "kind", "is missing; it must be process, static or agones."),
        ('kind = "process"', "ports", "is missing; it must be two ports"),
        ('kind = "process"\nports = "9-8"', "ports", 'is "9-8"; it must be two ports'),
        ('kind = "process"\nports = "0-8"', "ports", 'is "0-8"; it must be two ports'),
        ('kind = "static"', "servers", "must be a list like"),
        ('kind = "static"\nservers = ["a"]', "servers", "must be a list like"),
        (static("1.2.3.4:0"), "servers[1].address", 'is "1.2.3.4:0"; it must be an address and a port'),
    ]:
        assert fleet_fault(fleet).startswith(f"regions[1].fleet.{key} in var/matchpod.toml {fault}")


def test_faults_of_a_process_fleet_name_the_key_with_its_path() -> None:
    only_command = "has no effect; the command must contain"
    own_folder = "has no effect with install_dir, because every server has a folder of its own"
    tv_ports = "and the placeholder {tv_port} in the command need each other"
    for more, key, fault in [
        ('command = ["{port}", "{rcon_password}", "{prot}"]', "command", "is a list;"),
        (
            'command = ["{cfg}"]\ncfg_dir = "cfg"',
            "command",
            "is a list; it must be a list of arguments that contains {port}",
        ),
        ('command = ["{port}", "{cfg}"]', "cfg_dir", "is missing; the command has the placeholder {cfg}."),
        ('cfg_dir = "cfg"', "cfg_dir", f"{only_command} the placeholder {{cfg}}."),
        ('steam_tokens = ["ABCDEFGH", "IJKLMNOP"]', "steam_tokens", only_command),
        (
            'cfg_dir = "c"\ncommand = ["{port}{cfg}"]\nsteam_tokens = ["ABCDEFGH"]',
            "steam_tokens",
            "has 1 tokens for 2 ports; every port needs its own.",
        ),
        ('command = ["{game}/cs2", "{port}"]', "install_dir", "is missing; the command has the placeholder {game}."),
        ('addons = ["MatchZy"]', "addons", "has no effect without install_dir."),
        (
            'command = ["{game}", "{port}"]\ninstall_dir = "/cs2"',
            "instances_dir",
            "is missing; it must be the folder in which",
        ),
        (FOLDERS + 'command = ["cs2", "{port}"]', "install_dir", f"{only_command} the placeholder"),
        (FOLDERS + 'command = ["{game}", "{port}"]\nworking_dir = "/"', "working_dir", own_folder),
        (FOLDERS + 'command = ["{game}", "{port}", "{cfg}"]\ncfg_dir = "/cfg"', "cfg_dir", f"{own_folder}."),
        (
            FOLDERS + 'command = ["{game}", "{port}"]\naddons = ["../x"]',
            "addons",
            "is a list; it must be a list of names, like",
        ),
        ('tv_ports = "11-12"', "tv_ports", tv_ports),
        ('command = ["{port}", "{tv_port}"]', "tv_ports", tv_ports),
        (
            'tv_ports = "11-13"\ncommand = ["{port}", "{tv_port}"]',
            "tv_ports",
            "has 3 ports for 2 servers; every server needs its own.",
        ),
        ('steam_tokens = ["ABC;quit"]', "steam_tokens", "has an invalid value (not shown);"),
        ('user = "a:b"', "user", 'is "a:b"; it must be the name or number of a user.'),
        ('host = "0.0.0.0"', "public_ip", "is missing;"),
        ("environment = 3", "environment", "is 3;"),
        ("environment = { A = 3 }", "environment", "is a table;"),
    ]:
        assert fleet_fault(TWO_PORTS + more).startswith(f"regions[1].fleet.{key} in var/matchpod.toml {fault}")


@pytest.mark.parametrize(
    ("address", "read"),
    [
        ("203.0.113.7:27015", "203.0.113.7:27015"),
        ("[2001:DB8:0::7]:27015", "[2001:db8::7]:27015"),
        ("CS1.Example.org:27015", "cs1.example.org:27015"),
        ("cs1:1", "cs1:1"),
    ],
)
def test_static_server_has_an_ip_address_or_a_host_name(address: str, read: str) -> None:
    fleet = load(text=region(static(address))).regions[0].fleet
    assert isinstance(fleet, StaticFleetSettings)
    assert [server.address for server in fleet.servers] == [read]


@pytest.mark.parametrize(
    "address",
    [
        *("203.0.113.7", "203.0.113:27015", "203.0.113.256:1", "2001:db8::7:27015", "[203.0.113.7]:1"),
        *("cs_1:1", "-a:1", "a:70000", ":1"),
    ],
)
def test_other_addresses_of_static_servers_are_rejected(address: str) -> None:
    assert "it must be an address and a port" in fleet_fault(static(address))


def test_allows_simulator_is_a_boolean() -> None:
    assert fleet_fault(TWO_PORTS, 'allows_simulator = "no"').endswith("it must be true or false.")


@pytest.mark.parametrize("speed", ["0", "1001", "nan", "'2'", "true"])
def test_speed_is_a_number_from_1_to_1000(speed: str) -> None:
    assert "it must be a number from 1 to 1000" in fleet_fault('kind = "process"\nports = "1-2"', f"speed = {speed}")


def test_regions_must_not_share_codes_or_addresses() -> None:
    text = region('kind = "process"\nports = "100-109"') + region('kind = "process"\nports = "109-120"')
    assert faults_of(text=text) == (
        "regions in var/matchpod.toml has the code eu more than once; codes must be unique.",
        "regions in var/matchpod.toml use 127.0.0.1:109 more than once; each must belong to one server.",
    )
    fault = fleet_fault(static("1.2.3.4:1", "1.2.3.4:2", "1.2.3.4:1", "1.2.3.4:2"))
    assert "use 1.2.3.4:1 and 1 more addresses more than once" in fault


def test_regions_must_not_share_a_fleet_of_agones() -> None:
    fleet = f"{AGONES}\n"
    sentence = "regions in var/matchpod.toml use the Fleet cs2 more than once: {}; each must belong to one region."
    assert faults_of(text=regions(fleet, fleet)) == (sentence.format("r0 and r1"),)
    assert faults_of(text=regions(fleet, fleet + 'selector = { tier = "a" }')) == (sentence.format("r0 and r1"),)
    games = fleet + 'namespace = "games"'
    assert faults_of(text=regions(fleet, games, fleet)) == (sentence.format("r0 and r2"),)
    east = fleet + 'kubeconfig = "east"'
    for other in (games, east, f'{east}\ncontext = "b"', fleet.replace("cs2", "cs2-east")):
        assert len(load(text=regions(fleet, other)).regions) == 2


def test_servers_of_one_fleet_may_be_divided_by_labels() -> None:
    tiers = [f'{AGONES}\nselector = {{ tier = "{tier}" }}' for tier in "ab"]
    assert len(load(text=regions(*tiers)).regions) == 2


def test_ports_of_a_fleet_on_every_address_conflict_with_other_addresses() -> None:
    everywhere = 'kind = "process"\nhost = "0.0.0.0"\npublic_ip = "203.0.113.7"\nports = "100-109"'
    assert faults_of(text=regions(everywhere, 'kind = "process"\nports = "109-120"')) == (
        "regions in var/matchpod.toml use 0.0.0.0:109 more than once; each must belong to one server.",
    )


def test_fleets_on_different_addresses_may_use_the_same_ports() -> None:
    fleets = [f'kind = "process"\nhost = "{host}"\nports = "100-109"' for host in ("127.0.0.1", "127.0.0.2")]
    assert len(load(text=regions(*fleets)).regions) == 2


def test_agones_fleet_needs_only_its_name_and_its_secret() -> None:
    (found,) = load(text=region(AGONES)).regions
    assert found.fleet == AgonesFleetSettings(
        fleet="cs2",
        secret_file=Path("/etc/fleet/secret"),
        previous_secret_file=None,
        kubeconfig=None,
        context=None,
        namespace=None,
        selector={},
        owner=None,
        address_types=("ExternalIP", "ExternalDNS", "InternalIP"),
        console_address_types=(),
        port_name="game",
        pending_s=None,
    )


def test_all_settings_of_an_agones_fleet() -> None:
    more = (
        'kubeconfig = "/etc/kube/config"\ncontext = "eu"\nnamespace = "games"\nselector = { tier = "a" }\n'
        'address_types = ["InternalIP"]\nport_name = "cs2"\npending_s = 60\n'
        'previous_secret_file = "/etc/fleet/previous"\nconsole_address_types = ["PodIP"]'
    )
    (found,) = load(text=region(f"{AGONES}\n{more}")).regions
    assert isinstance(found.fleet, AgonesFleetSettings)
    assert found.fleet.console_address_types == ("PodIP",)
    assert found.fleet.previous_secret_file == Path("/etc/fleet/previous")
    assert (found.fleet.kubeconfig, found.fleet.context) == (Path("/etc/kube/config"), "eu")
    assert (found.fleet.selector, found.fleet.address_types) == ({"tier": "a"}, ("InternalIP",))
    assert (found.fleet.namespace, found.fleet.port_name, found.fleet.pending_s) == ("games", "cs2", 60)


def test_faults_of_an_agones_fleet() -> None:
    for more, fault in [
        ('context = "eu"', "regions[1].fleet.context in var/matchpod.toml has no effect without kubeconfig."),
        ('address_types = ["Public"]', "it must be some of ExternalIP, ExternalDNS, InternalIP"),
        ('namespace = "Games"', "it must be 1 to 63 of a-z 0-9 and -"),
        ('selector = { tier = "" }', "it must be a table of labels"),
        ("pending_s = -1", "it must be a whole number from 0 to 86400"),
    ]:
        assert fault in fleet_fault(f"{AGONES}\n{more}")


# --- secrets ------------------------------------------------------------------------------------------------------


def test_database_url_may_have_several_hosts() -> None:
    for url in ("postgresql://pod:pw@db1:5432,db2:5433/pod", "postgresql://db1,db2/pod?target_session_attrs=any"):
        assert load({"MATCHPOD_DATABASE_URL": url}).database_url == Secret(url)
    for url in ("postgresql://pod@db1,/pod", "postgresql://pod@,db2/pod", "postgresql://pod@db1:5432,db2:x/pod"):
        (fault,) = faults_of({"MATCHPOD_DATABASE_URL": url})
        assert fault.endswith(
            "it must be a URL like postgresql://user:password@host:5432/name, with one or more hosts."
        )


def test_secret_key_may_be_several_keys() -> None:
    settings = load({"MATCHPOD_SECRET_KEY": f"{KEY}, {KEY}"})
    assert settings.secret_key == Secret(f"{KEY}, {KEY}")
    for text in (f"{KEY},", f"{KEY},{HIDDEN}", f"{KEY};{KEY}"):
        (fault,) = faults_of({"MATCHPOD_SECRET_KEY": text})
        assert fault.endswith("it must be 32 bytes in base64, or several such keys separated by commas.")
        assert KEY not in fault


def test_no_message_contains_a_secret() -> None:
    for environment, text in [
        ({"MATCHPOD_SECRET_KEY": HIDDEN}, ""),
        ({"MATCHPOD_SECRET_KEY": HIDDEN + "="}, ""),
        ({"MATCHPOD_DATABASE_URL": f"mysql://pod:{HIDDEN}@db/pod"}, ""),
        ({"MATCHPOD_DATABASE_URL": f"postgresql://pod@db:{HIDDEN}/pod"}, ""),
        ({"MATCHPOD_PUBLIC_URL": f"https://pod:{HIDDEN}@pod.example"}, ""),
        ({}, f'secret_key = "{HIDDEN}"'),
        ({}, f'secret_kye = "{HIDDEN}"'),
        ({}, region(f'kind = "static"\nservers = [{{ address = "1.2.3.4:1", rcon_password = "{HIDDEN}\\"" }}]')),
        ({}, region(f'kind = "static"\nservers = "{HIDDEN}"')),
    ]:
        assert HIDDEN not in "\n".join(faults_of(environment, text))


def test_no_repr_contains_a_secret() -> None:
    servers = f'[{{ address = "198.51.100.4:27015", rcon_password = "{HIDDEN}" }}]'
    settings = load(
        {"MATCHPOD_DATABASE_URL": f"postgres://pod:{HIDDEN}@db/pod"}, region(f'kind = "static"\nservers = {servers}')
    )
    fleet = settings.regions[0].fleet
    assert isinstance(fleet, StaticFleetSettings)
    assert (fleet.servers[0].address, fleet.servers[0].rcon_password.reveal()) == ("198.51.100.4:27015", HIDDEN)
    assert HIDDEN not in f"{settings!r} {settings}"
    assert "<secret>" in repr(settings)


def test_secrets_can_be_compared_but_not_copied_or_encoded() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert len({Secret("a"), Secret("a")}) == 1
    with pytest.raises(TypeError):
        copy.deepcopy(Secret("a"))
    with pytest.raises(TypeError):
        msgspec.json.encode(Secret("a"))


# --- documentation page -------------------------------------------------------------------------------------------


def test_page_is_up_to_date() -> None:
    page = write_configuration.PAGE.read_text(encoding="utf-8")
    assert page == write_configuration.write_page(), "run python -m scripts.write_configuration"


def test_page_describes_every_kind_of_fleet() -> None:
    for kind in READERS:
        assert f'### `[regions.fleet]` with `kind = "{kind}"`' in write_configuration.write_page()


def test_page_is_written_to_the_given_path(tmp_path: Path) -> None:
    assert write_configuration.main(tmp_path / "page.md") == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == write_configuration.write_page()


def test_example_on_the_page_loads() -> None:
    page = write_configuration.PAGE.read_text(encoding="utf-8")
    settings = load(text=page.split("```toml\n", 1)[1].split("```", 1)[0])
    assert [region.code for region in settings.regions] == ["sandbox", "eu-central", "us-east", "asia"]
    kinds = [type(region.fleet) for region in settings.regions]
    assert kinds == [ProcessFleetSettings, ProcessFleetSettings, StaticFleetSettings, AgonesFleetSettings]
    europe = settings.regions[1].fleet
    assert isinstance(europe, ProcessFleetSettings)
    assert (europe.public_ip, europe.memory_bytes) == ("203.0.113.7", None)
    assert (europe.install_dir, europe.addons) == (Path("/srv/cs2"), ("metamod", "MatchZy"))


def test_messages_on_the_page_are_the_real_ones() -> None:
    text = region('kind = "process"\nports = "1-2"\nprots = "1-2"')
    faults = faults_of({"MATCHPOD_LOG_FORMAT": "xml", "MATCHPOD_PROT": "1"}, text)
    assert "\n".join(faults) in write_configuration.PAGE.read_text(encoding="utf-8")


def test_region_that_records_needs_the_port_for_uploads() -> None:
    text = region(TWO_PORTS, "record_demos = true\ntv_delay = 30")
    assert faults_of(text=text) == ("record_demos of eu has no effect without upload_port.",)
    (eu,) = load({"MATCHPOD_UPLOAD_PORT": "0"}, text).regions
    assert (eu.record_demos, eu.tv_delay) == (True, 30)
