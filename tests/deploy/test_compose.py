"""The compose files fit the schema of compose, and the service accepts what they set."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml  # type: ignore[import-untyped]

from cs2_simulator.wire.launch import parse_arguments
from matchpod.settings import Settings, StaticFleetSettings, load_settings
from scripts.deploy_tools import COMPOSE_SCHEMA
from tests.deploy.tools import find_wheel

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "compose"
FILES = ("compose.yaml", "compose.cluster.yaml")
SECRETS = {"POSTGRES_PASSWORD": "a", "MATCHPOD_SECRET_KEY": "A" * 43 + "=", "GRAFANA_PASSWORD": "c"}
OWN_SERVICES = re.compile(r"matchpod(-\d)?|game-server-\d")


def read(name: str) -> Any:
    """Read a file with its variables replaced, as compose does."""
    text = (FOLDER / name).read_text()
    for variable, default in re.findall(r"\$\{(\w+):-([^}]*)\}", text):
        text = text.replace(f"${{{variable}:-{default}}}", default)
    return yaml.safe_load(re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: SECRETS[found[1]], text))


def load(environment: dict[str, str]) -> Settings:
    """Load the settings of a service, whose files are those that it mounts."""
    mounted = {Path("/etc/matchpod/matchpod.toml"): FOLDER / "matchpod.toml"}
    return load_settings(
        {"MATCHPOD_HOST": "0.0.0.0", **environment},
        lambda path: mounted[path].read_bytes() if path in mounted else None,
    )


@pytest.mark.parametrize("name", FILES)
def test_file_fits_the_schema_of_compose(name: str) -> None:
    with zipfile.ZipFile(find_wheel(COMPOSE_SCHEMA)) as wheel:
        schema = json.loads(wheel.read("check_jsonschema/builtin_schemas/vendor/compose-spec.json"))
    validator = jsonschema_rs.validator_for(schema)
    assert list(map(str, validator.iter_errors(read(name)))) == []
    assert not validator.is_valid({"services": {"a": {"image": "a", "readonly": True}}}), "unknown keys are found"


def services() -> list[tuple[str, Any]]:
    """Return the services of all files, with their options."""
    return [item for name in FILES for item in read(name)["services"].items()]


def test_our_containers_are_hardened_and_nothing_is_open_to_the_network() -> None:
    for service, options in services():
        assert all(port.startswith("127.0.0.1:") for port in options.get("ports", [])), service
        if OWN_SERVICES.fullmatch(service):
            assert options["read_only"] is True, service
            assert options["cap_drop"] == ["ALL"], service
            assert options["security_opt"] == ["no-new-privileges:true"], service
            assert (ROOT / options["build"]["dockerfile"]).is_file()


def test_no_container_has_a_terminal_since_its_log_would_keep_the_first_key() -> None:
    assert [service for service, options in services() if options.get("tty")] == []


def test_mounted_files_exist() -> None:
    volumes = [volume for _, options in services() for volume in options.get("volumes", [])]
    sources = [volume.split(":")[0] for volume in volumes if volume.startswith("./")]
    assert [source for source in sources if not (FOLDER / source).is_file()] == []


def test_services_have_time_to_stop() -> None:
    for service, options in services():
        if service.startswith("matchpod"):
            assert int(options["stop_grace_period"].removesuffix("s")) >= 5 + 25


def test_sandbox_is_reached_at_the_port_that_it_announces() -> None:
    (service,) = read("compose.yaml")["services"].values()
    settings = load(service["environment"])
    assert [region.code for region in settings.regions] == ["sandbox"]
    assert service["ports"] == [f"127.0.0.1:{settings.port}:{settings.port}"]
    assert settings.public_url == f"http://127.0.0.1:{settings.port}"


def test_replicas_have_the_same_settings_and_use_the_servers_that_run() -> None:
    services = read("compose.cluster.yaml")["services"]
    assert services["matchpod-1"] == services["matchpod-2"]
    (region,) = load(services["matchpod-1"]["environment"]).regions
    assert isinstance(region.fleet, StaticFleetSettings)
    address = services["proxy"]["networks"]["default"]["ipv4_address"]
    running = {}
    for name, service in services.items():
        if name.startswith("game-server"):
            assert (service["network_mode"], service["entrypoint"]) == ("service:proxy", ["cs2-simulator"])
            (options,) = parse_arguments(service["command"]).servers
            running[f"{address}:{options.port}"] = service["environment"]["MATCHPOD_RCON_PASSWORD"]
            assert options.speed == region.speed
    servers = tomllib.loads((FOLDER / "matchpod.toml").read_text())["regions"][0]["fleet"]["servers"]
    assert {server["address"]: server["rcon_password"] for server in servers} == running


def test_proxy_and_prometheus_know_both_replicas() -> None:
    environment = read("compose.cluster.yaml")["services"]["matchpod-1"]["environment"]
    proxied = re.findall(r"^\s*server (\S+:\d+) ", (FOLDER / "nginx.conf").read_text(), re.MULTILINE)
    assert proxied == ["matchpod-1:8080", "matchpod-2:8080"]
    (job,) = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    port = environment["MATCHPOD_OPS_PORT"]
    assert job["static_configs"] == [{"targets": [f"matchpod-1:{port}", f"matchpod-2:{port}"]}]


def test_proxy_logs_no_path_with_a_token() -> None:
    """The error log names the path too, when a replica cannot be reached."""
    (block,) = re.findall(r"location ~ \^/\(ingest\|[^{]*\{(.*?)\}", (FOLDER / "nginx.conf").read_text(), re.DOTALL)
    assert {"access_log off;", "error_log /dev/null crit;"} <= {line.strip() for line in block.splitlines()}


def test_secrets_are_written_once_for_their_owner_only(tmp_path: Path) -> None:
    script = tmp_path / "make_secrets.sh"
    script.write_bytes((FOLDER / "make_secrets.sh").read_bytes())
    first = subprocess.run(["sh", str(script)], capture_output=True, text=True, check=False)
    if "openssl" in first.stderr:
        pytest.skip("openssl is not installed")
    file = tmp_path / ".env"
    written = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {line.split("=")[0] for line in written.splitlines()} == SECRETS.keys()
    again = subprocess.run(["sh", str(script)], capture_output=True, text=True, check=False)
    assert (again.returncode, again.stderr) == (1, f"{file} exists already; it is not changed.\n")
    assert file.read_text() == written
    assert os.access(FOLDER / "make_secrets.sh", os.X_OK)
    key = written.splitlines()[0].partition("=")[2]
    assert load({"MATCHPOD_SECRET_KEY": key}).secret_key is not None
