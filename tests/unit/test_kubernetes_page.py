"""The manifests in deploy/examples and the pages about them agree with the program that they start."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from matchpod.settings.values import SERVICE
from matchpod_gameserver import game, sdk
from matchpod_gameserver.options import (
    DERIVE,
    SECRET_VARIABLE,
    DeriveOptions,
    Options,
    parse_arguments,
    parse_derive_arguments,
)

ROOT = Path(__file__).resolve().parents[2]
POD = "cs2-eu-abcde-fghij"
PAGES = ("kubernetes.md", "game-server-image.md", "agones-region.md")
PAGE = "\n".join((ROOT / "docs" / name).read_text("utf-8") for name in PAGES)
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
    assert container["command"] == ["matchpod-gameserver"]
    options, command = parse_arguments(container["args"], {})
    assert all(isinstance(argument, str) for argument in container["args"])
    assert command[command.index("-port") + 1] == "{port}"
    assert command.index("+exec") < command.index("+map")
    assert options.grace_period < template["template"]["spec"]["terminationGracePeriodSeconds"]


def test_only_the_init_container_mounts_the_secret(template: Any, container: Any) -> None:
    (init,) = template["template"]["spec"]["initContainers"]
    assert "fleet-secret" not in mounts(container)
    assert "env" not in container
    assert init["command"] == [*container["command"], DERIVE]
    assert init["image"] == container["image"]
    variables = {variable["name"]: variable.get("value", "") for variable in init["env"]}
    options = parse_derive_arguments(_expanded(init["args"]), variables)
    assert options.secret_file == f"{mounts(init)['fleet-secret']['mountPath']}/secret"
    assert mounts(init)["fleet-secret"]["readOnly"] is True
    (volume,) = [volume for volume in template["template"]["spec"]["volumes"] if volume["name"] == "fleet-secret"]
    assert volume["secret"] == {"secretName": "matchpod-fleet", "defaultMode": 0o440}
    assert "create secret generic matchpod-fleet --from-literal=secret=" in PAGE


def test_password_is_derived_for_the_name_of_the_pod_and_read_where_it_is_written(
    template: Any, container: Any
) -> None:
    (init,) = template["template"]["spec"]["initContainers"]
    options = parse_derive_arguments(_expanded(init["args"]), {SECRET_VARIABLE: "x"})
    assert options.name == POD
    assert {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}} in init["env"]
    read, _ = parse_arguments(container["args"], {})
    assert read.password_file == options.out
    assert options.out.rpartition("/")[0] == mounts(init)["password"]["mountPath"]
    assert mounts(container)["password"] == {**mounts(init)["password"], "readOnly": True}
    (volume,) = [volume for volume in template["template"]["spec"]["volumes"] if volume["name"] == "password"]
    assert volume["emptyDir"]["medium"] == "Memory"


def test_pod_is_hardened_like_that_of_the_chart(template: Any, container: Any) -> None:
    pod = template["template"]["spec"]
    (init,) = pod["initContainers"]
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    plain = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert init["securityContext"] == {**plain, "readOnlyRootFilesystem": True}
    assert container["securityContext"] == {
        **plain,
        "readOnlyRootFilesystem": False,
    }  # what it writes elsewhere is not known
    assert all("memory" in one["resources"]["limits"] for one in (init, container))


def test_orphan_costs_hours(container: Any) -> None:
    options, _ = parse_arguments(container["args"], {})
    assert 0 < options.idle_exit < options.max_life <= 24 * 3600
    assert options.max_life >= 6 * 3600, "longer than any match"


def _expanded(arguments: list[str]) -> list[str]:
    """Replace the variable, as Kubernetes does."""
    return [argument.replace("$(POD_NAME)", POD) for argument in arguments]


def mounts(container: Any) -> dict[str, Any]:
    return {mount["name"]: mount for mount in container["volumeMounts"]}


def test_server_runs_in_a_folder_of_its_own_on_the_disk_of_the_node(template: Any, container: Any) -> None:
    options, command = parse_arguments(container["args"], {})
    assert command[0] == "{game}/bin/linuxsteamrt64/cs2"
    assert command[command.index("+exec") + 1] == "{cfg}"
    volumes = {volume["name"]: volume for volume in template["template"]["spec"]["volumes"]}
    places = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert places[options.install_dir]["readOnly"] is True
    assert volumes[places[options.instances_dir]["name"]]["emptyDir"] == {}, "it is not in memory, and has no limit"
    assert container["resources"]["requests"]["ephemeral-storage"]
    assert "ephemeral-storage" not in container["resources"]["limits"], "a pod over it is evicted with its match"


def test_health_is_reported_several_times_within_the_limit(template: Any) -> None:
    health = template["health"]
    assert health["periodSeconds"] >= 2 * game.HEALTH_S
    assert health["failureThreshold"] * health["periodSeconds"] > 2 * (game.HEALTH_S + sdk.REQUEST_S)


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


def test_policy_opens_the_game_for_all_and_the_console_for_the_service_only() -> None:
    (policy,) = manifests("networkpolicy.yaml")
    account, role, _ = manifests("rbac.yaml")
    spec = policy["spec"]
    assert policy["metadata"]["namespace"] == role["metadata"]["namespace"]
    assert spec["podSelector"] == {"matchLabels": {"agones.dev/role": "gameserver"}}
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    game_rule, console_rule = spec["ingress"]
    assert game_rule == {"ports": [{"protocol": "UDP", "port": 7000, "endPort": 8000}]}
    assert console_rule["ports"] == [{"protocol": "TCP", "port": 7000, "endPort": 8000}]
    (service,) = console_rule["from"]
    assert set(service) == {"namespaceSelector", "podSelector"}, "one entry: both must fit"
    assert (
        service["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] == account["metadata"]["namespace"]
    )
    posts = spec["egress"][0]
    (port,) = [setting.default for setting in SERVICE if setting.key == "port"]
    assert posts == {"to": [service], "ports": [{"protocol": "TCP", "port": port}]}
    outside = spec["egress"][-1]["to"][0]["ipBlock"]
    assert "10.0.0.0/8" in outside["except"]


def test_page_lists_every_option_with_its_default() -> None:
    for field, default in {**DeriveOptions._field_defaults, **Options._field_defaults}.items():
        (row,) = re.findall(rf"^\| `--{field.replace('_', '-')} .*$", PAGE, re.MULTILINE)
        if isinstance(default, float) and default:
            assert f"| {default:g} |" in row


def test_every_example_is_on_the_page() -> None:
    for example in (ROOT / "deploy" / "examples").iterdir():
        assert f"../deploy/examples/{example.name}" in PAGE
