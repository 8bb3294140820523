"""The manifests in deploy/examples and the page about them agree with the program that they start."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from matchpod import gameserver
from matchpod.gameserver import Options, parse_arguments

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")
yaml = pytest.importorskip("yaml", reason="the manifests are read with PyYAML, which is not installed")


def manifests(name: str) -> list[Any]:
    return list(yaml.safe_load_all((ROOT / "deploy" / "examples" / name).read_text("utf-8")))


@pytest.fixture
def template() -> Any:
    """The template of the GameServers in the example of a fleet."""
    (fleet,) = manifests("fleet.yaml")
    assert (fleet["apiVersion"], fleet["kind"]) == ("agones.dev/v1", "Fleet")
    return fleet["spec"]["template"]["spec"]


@pytest.fixture
def container(template: Any) -> Any:
    (container,) = template["template"]["spec"]["containers"]
    return container


def test_port_of_the_game_is_the_port_of_the_node_for_both_protocols(template: Any) -> None:
    assert template["ports"] == [{"name": "game", "portPolicy": "Passthrough", "protocol": "TCPUDP"}]


def test_command_is_valid_for_the_entry_point(template: Any, container: Any) -> None:
    assert container["command"] == ["python3", "/opt/matchpod/gameserver.py"]
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    options, command = parse_arguments(container["args"], variables)
    assert all(isinstance(argument, str) for argument in container["args"])
    assert command[command.index("-port") + 1] == "{port}"
    assert command.index("+exec") < command.index("+map")
    assert options.grace_period < template["template"]["spec"]["terminationGracePeriodSeconds"]


def test_secret_is_mounted_where_it_is_read(template: Any, container: Any) -> None:
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    (mount,) = [mount for mount in container["volumeMounts"] if mount["name"] == "fleet-secret"]
    assert mount["readOnly"] is True
    assert variables[gameserver.SECRET_VARIABLE] == f"{mount['mountPath']}/secret"
    (volume,) = [volume for volume in template["template"]["spec"]["volumes"] if volume["name"] == "fleet-secret"]
    assert volume["secret"] == {"secretName": "matchpod-fleet", "defaultMode": 0o440}
    assert "create secret generic matchpod-fleet --from-literal=secret=" in PAGE


def test_password_file_is_executed_from_the_folder_it_is_written_to(template: Any, container: Any) -> None:
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    options, command = parse_arguments(container["args"], variables)
    folder, _, name = command[command.index("+exec") + 1].partition("/")
    assert (options.cfg_dir, name) == (f"{container['workingDir']}/csgo/cfg/{folder}", "{cfg}")
    assert options.cfg_dir in [mount["mountPath"] for mount in container["volumeMounts"]]


def test_health_is_reported_several_times_within_the_limit(template: Any) -> None:
    health = template["health"]
    assert health["periodSeconds"] >= 2 * gameserver.HEALTH_S
    assert health["failureThreshold"] * health["periodSeconds"] > 2 * (gameserver.HEALTH_S + gameserver.REQUEST_S)


def test_autoscaler_scales_the_fleet() -> None:
    (fleet,), (scaler,) = manifests("fleet.yaml"), manifests("fleetautoscaler.yaml")
    assert scaler["spec"]["fleetName"] == fleet["metadata"]["name"]
    assert scaler["metadata"]["namespace"] == fleet["metadata"]["namespace"]
    buffer = scaler["spec"]["policy"]["buffer"]
    assert buffer["bufferSize"] <= buffer["minReplicas"] <= buffer["maxReplicas"]


def test_role_has_only_the_rights_that_the_service_needs() -> None:
    account, role, binding = manifests("rbac.yaml")
    rights = {
        (group, resource): rule["verbs"]
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert rights == {
        ("allocation.agones.dev", "gameserverallocations"): ["create"],
        ("agones.dev", "gameservers"): ["get", "list", "watch", "delete"],
        ("agones.dev", "fleets"): ["get", "list"],
    }
    assert role["metadata"]["namespace"] == manifests("fleet.yaml")[0]["metadata"]["namespace"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account["metadata"]}]


def test_page_lists_every_option_with_its_default() -> None:
    for field, default in Options._field_defaults.items():
        (row,) = re.findall(rf"^\| `--{field.replace('_', '-')} .*$", PAGE, re.MULTILINE)
        if isinstance(default, float):
            assert f"| {default:g} |" in row


def test_every_example_and_link_on_the_page_exists() -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGE):
        assert target.startswith("https://") or (ROOT / "docs" / target).is_file(), target
    for example in (ROOT / "deploy" / "examples").iterdir():
        assert f"../deploy/examples/{example.name}" in PAGE
