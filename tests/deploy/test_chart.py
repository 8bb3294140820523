"""The Helm chart: what it renders is valid, hardened and understood by the service, and values that cannot work fail."""

from __future__ import annotations

import ipaddress
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml  # type: ignore[import-untyped]

from matchpod.console.routes import ROUTES
from matchpod.service.ingest.urls import DEMOS_PATH
from matchpod.settings import load_settings
from matchpod.settings.values import SERVICE
from matchpod.web.routes import ENDPOINTS
from matchpod_gameserver.options import parse_arguments, parse_derive_arguments
from scripts import write_chart
from scripts.deploy_tools import KUBERNETES_SCHEMAS
from tests.deploy.rendered_chart import (
    ALL_NAMES,
    CHART,
    KUBERNETES,
    NAMES,
    NAMESPACE,
    RENDERED,
    SAMPLES,
    Object,
    enclosing_chart,
    helm,
    load_all,
    render,
)
from tests.deploy.tools import find_wheel

__all__ = ["enclosing_chart"]
ROOT = CHART.parents[2]
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
EXTENSIONS = {"Fleet", "FleetAutoscaler", "ServiceMonitor", "PrometheusRule", "Middleware"}
"""Kinds that Kubernetes has only with Agones, the Prometheus operator and Traefik."""

INGRESS = {"enabled": True, "host": "cs.example.net"}
NO_FOLDER = (
    "demos.storage must be a bucket, like s3://bucket/folder, with PostgreSQL or more than one replica: "
    "a folder is used by one process only, and there is no volume."
)


@pytest.fixture
def everything(enclosing_chart: Path) -> dict[str, list[Object]]:
    return render(enclosing_chart, KUBERNETES[-1])


@pytest.fixture
def rendered(everything: dict[str, list[Object]]) -> dict[str, list[Object]]:
    """The objects of the files in `ci`."""
    return {name: everything[name] for name in NAMES}


def kinds(objects: list[Object], kind: str) -> list[Object]:
    return [one for one in objects if one["kind"] == kind]


def named(objects: list[Object], kind: str, name: str = "matchpod") -> Object:
    (found,) = [one for one in kinds(objects, kind) if one["metadata"]["name"] == name]
    return found


def pod_of(one: Object) -> Object | None:
    spec: Object = one.get("spec", {})
    match one["kind"]:
        case "Pod":
            return spec
        case "Deployment" | "Job":
            return spec["template"]["spec"]  # type: ignore[no-any-return]
        case "CronJob":
            return spec["jobTemplate"]["spec"]["template"]["spec"]  # type: ignore[no-any-return]
        case "Fleet":
            return spec["template"]["spec"]["template"]["spec"]  # type: ignore[no-any-return]
    return None


def pods(rendered: dict[str, list[Object]]) -> list[tuple[str, Object]]:
    found = [(f"{name}/{one['kind']}", pod_of(one)) for name, objects in rendered.items() for one in objects]
    return [(name, pod) for name, pod in found if pod is not None]


def containers(pod: Object) -> list[Object]:
    return [*pod.get("initContainers", []), *pod["containers"]]


@cache
def definitions(version: str) -> Any:
    with zipfile.ZipFile(find_wheel(KUBERNETES_SCHEMAS)) as wheel:
        return json.loads(
            wheel.read(f"kubernetes_validate/kubernetes-json-schema/v{version}-local-strict/_definitions.json")
        )


@cache
def validator(version: str, name: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for({"$defs": definitions(version)["$defs"], "$ref": f"#/$defs/{name}"})


def definition(one: Object) -> str:
    """The name of the schema of an object."""
    group, _, version = one["apiVersion"].rpartition("/")
    folder = {"": "core", "rbac.authorization.k8s.io": "rbac", "networking.k8s.io": "networking"}.get(group, group)
    return f"io.k8s.api.{folder}.{version}.{one['kind']}"


# --- what is rendered -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", RENDERED)
def test_chart_is_rendered_for_every_version_of_kubernetes(enclosing_chart: Path, version: str) -> None:
    assert all(render(enclosing_chart, version).values())
    assert not [
        file for file in (CHART / "templates").rglob("*") if file.is_file() and "Capabilities" in file.read_text()
    ]


@pytest.mark.parametrize("version", RENDERED)
def test_objects_are_valid(everything: dict[str, list[Object]], version: str) -> None:
    for name, objects in everything.items():
        for one in objects:
            if one["kind"] == "Fleet":
                template = one["spec"]["template"]["spec"]["template"]
                found = validator(version, "io.k8s.api.core.v1.PodTemplateSpec").iter_errors(template)
            elif one["kind"] in EXTENSIONS:
                continue
            else:
                found = validator(version, definition(one)).iter_errors(one)
            assert [f"{name}/{one['kind']}: {fault}" for fault in found] == []


def test_unknown_field_is_found(rendered: dict[str, list[Object]]) -> None:
    deployment = json.loads(json.dumps(named(rendered["cluster"], "Deployment")))
    deployment["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    assert list(validator(KUBERNETES[0], definition(deployment)).iter_errors(deployment))


def test_helm_finds_no_fault() -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


def test_pods_are_not_root_and_cannot_change_their_image(everything: dict[str, list[Object]]) -> None:
    for name, pod in pods(everything):
        security = pod["securityContext"]
        assert security["runAsNonRoot"] is True, name
        assert "Fleet" in name or security["fsGroupChangePolicy"] == "OnRootMismatch", name
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert security.get("runAsUser", 1) > 0, name
        for container in containers(pod):
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False, name
            assert own["capabilities"] == {"drop": ["ALL"]}, name
            # What CS2 writes outside of its own folder is not known; the simulated server and the service write nothing.
            is_cs2 = container["name"] == "game" and any("/cs2" in word for word in container["args"])
            assert own["readOnlyRootFilesystem"] is not is_cs2, name
            assert container["resources"]["limits"]["memory"], name


def test_kubernetes_adds_no_variables_that_look_like_settings(everything: dict[str, list[Object]]) -> None:
    """A Service called matchpod would add MATCHPOD_PORT=tcp://…, and the service would not start."""
    assert all(pod["enableServiceLinks"] is False for _, pod in pods(everything))


def test_no_secret_is_in_the_environment(everything: dict[str, list[Object]]) -> None:
    secrets = {setting.variable for setting in SERVICE if setting.is_secret}
    seen = set()
    for name, pod in pods(everything):
        for variable in (one for container in containers(pod) for one in container.get("env", [])):
            if variable["name"] in secrets:
                seen.add(variable["name"])
                assert list(variable["valueFrom"]) == ["secretKeyRef"], name
    assert seen == secrets


def test_only_pods_that_use_the_api_have_a_token(everything: dict[str, list[Object]]) -> None:
    for name, objects in everything.items():
        for one in objects:
            pod = pod_of(one)
            if pod is None or one["kind"] == "Fleet":
                continue
            uses_api = one["kind"] == "Deployment" and bool(kinds(objects, "Role") or name == "no-rights")
            assert pod["automountServiceAccountToken"] is uses_api, (name, one["kind"])


def test_every_key_of_a_mounted_volume_exists_and_every_volume_is_mounted(everything: dict[str, list[Object]]) -> None:
    for name, pod in pods(everything):
        volumes = [volume["name"] for volume in pod.get("volumes", [])]
        mounted = {mount["name"] for container in containers(pod) for mount in container.get("volumeMounts", [])}
        assert sorted(mounted) == sorted(volumes), name
        assert not any("subPath" in mount for one in containers(pod) for mount in one.get("volumeMounts", [])), name


def test_probes_ask_the_port_that_is_not_public(rendered: dict[str, list[Object]]) -> None:
    for name in ("sandbox", "cluster"):
        (container,) = named(rendered[name], "Deployment")["spec"]["template"]["spec"]["containers"]
        paths = {kind: container[kind]["httpGet"] for kind in ("startupProbe", "readinessProbe", "livenessProbe")}
        assert paths == {
            "startupProbe": {"path": "/healthz", "port": "ops"},
            "readinessProbe": {"path": "/readyz", "port": "ops"},
            "livenessProbe": {"path": "/healthz", "port": "ops"},
        }
        ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
        environment = {one["name"]: one.get("value") for one in container["env"]}
        assert (ports["http"], ports["ops"]) == (environment["MATCHPOD_PORT"], environment["MATCHPOD_OPS_PORT"])


def test_stopping_pod_is_killed_only_after_all_its_grace_periods(rendered: dict[str, list[Object]]) -> None:
    pod = named(rendered["cluster"], "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    grace_s = int({one["name"]: one.get("value") for one in container["env"]}["MATCHPOD_STOP_GRACE_S"])
    asleep_s = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert asleep_s > 0
    assert pod["terminationGracePeriodSeconds"] > asleep_s + grace_s + 25


def test_sqlite_has_one_pod_at_a_time_and_replicas_are_never_all_gone(rendered: dict[str, list[Object]]) -> None:
    sandbox, cluster = (named(rendered[name], "Deployment")["spec"] for name in ("sandbox", "cluster"))
    assert (sandbox["replicas"], sandbox["strategy"]) == (1, {"type": "Recreate"})
    assert kinds(rendered["sandbox"], "PodDisruptionBudget") == []
    assert cluster["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    budget = named(rendered["cluster"], "PodDisruptionBudget")["spec"]
    labels = cluster["template"]["metadata"]["labels"]
    assert budget["maxUnavailable"] < cluster["replicas"]
    assert budget["selector"]["matchLabels"].items() <= labels.items()
    spread = cluster["template"]["spec"]["topologySpreadConstraints"]
    assert {one["topologyKey"] for one in spread} == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
    assert all(one["labelSelector"]["matchLabels"].items() <= labels.items() for one in spread)


def test_services_select_the_pods_of_the_service_only(rendered: dict[str, list[Object]]) -> None:
    for name in ("sandbox", "cluster"):
        objects = rendered[name]
        labels = {
            one["kind"]: (one["spec"].get("jobTemplate", one)["spec"].get("template") or one)["metadata"]["labels"]
            for one in objects
            if one["kind"] in {"Deployment", "Job", "CronJob", "Pod"}
        }
        for service in kinds(objects, "Service"):
            selector = service["spec"]["selector"].items()
            assert [kind for kind, found in labels.items() if selector <= found.items()] == ["Deployment"], name


def test_metrics_are_never_public(everything: dict[str, list[Object]]) -> None:
    for service in (one for objects in everything.values() for one in kinds(objects, "Service")):
        if service["spec"].get("type", "ClusterIP") != "ClusterIP":
            assert {port["name"] for port in service["spec"]["ports"]} <= {"http", "uploads"}
    served = [one.path for one in ENDPOINTS] + [one.path for one in ROUTES]
    first = {f"/{path.split('/')[1]}" for path in served}
    hidden = {"/metrics", "/readyz", "/healthz", "/openapi-internal.json"}
    for name, objects in everything.items():
        paths = {path for ingress in kinds(objects, "Ingress") for path in paths_of(ingress)}
        assert not paths & hidden, name
        assert all(any(path.startswith(prefix) for path in served) for prefix in paths - {DEMOS_PATH}), name
        if name in {"cluster", "sandbox", "traefik"}:
            assert first - paths == hidden, name


def paths_of(ingress: Object) -> list[str]:
    return [path["path"] for rule in ingress["spec"]["rules"] for path in rule["http"]["paths"]]


def test_paths_with_tokens_have_ingresses_of_their_own_that_are_not_logged(everything: dict[str, list[Object]]) -> None:
    nginx = {one["metadata"]["name"]: one for one in kinds(everything["cluster"], "Ingress")}
    assert {name: paths_of(one) for name, one in nginx.items()} == {
        "matchpod": ["/api", "/console", "/docs", "/openapi.json"],
        "matchpod-demos": ["/ingest/demos"],
        "matchpod-ingest": ["/ingest"],
        "matchpod-links": ["/console/login", "/overlay"],
    }
    annotations = {name: one["metadata"]["annotations"] for name, one in nginx.items()}
    log, ranges = (f"nginx.ingress.kubernetes.io/{key}" for key in ("enable-access-log", "whitelist-source-range"))
    assert {name: (one.get(log), one.get(ranges)) for name, one in annotations.items()} == {
        "matchpod": (None, None),
        "matchpod-demos": ("false", "198.51.100.0/24"),
        "matchpod-ingest": ("false", "198.51.100.0/24"),
        "matchpod-links": ("false", None),
    }
    traefik = {
        one["metadata"]["name"]: one["metadata"].get("annotations", {})
        for one in kinds(everything["traefik"], "Ingress")
    }
    router = "traefik.ingress.kubernetes.io/router"
    assert traefik == {
        "matchpod": {},
        "matchpod-ingest": {
            f"{router}.observability.accesslogs": "false",
            f"{router}.middlewares": "matchpod-matchpod-ingest@kubernetescrd",
        },
        "matchpod-links": {f"{router}.observability.accesslogs": "false"},
    }
    (middleware,) = kinds(everything["traefik"], "Middleware")
    assert middleware["spec"] == {"ipAllowList": {"sourceRange": ["192.0.2.0/24", "2001:db8::/32"]}}
    for one in kinds(everything["plain-ingress"], "Ingress"):
        assert one["metadata"]["annotations"] == {"a.example/b": "c"}
    (only,) = kinds(everything["no-ingest"], "Ingress")
    assert paths_of(only) == ["/api", "/openapi.json"]


def environment_of(objects: list[Object]) -> dict[str, Any]:
    (container,) = named(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    return {one["name"]: one.get("value") for one in container["env"]}


def test_browsers_use_the_ingress_and_game_servers_in_the_cluster_the_service(
    everything: dict[str, list[Object]],
) -> None:
    inside = "http://matchpod.matchpod.svc:8080"
    public = {
        name: environment_of(everything[name])["MATCHPOD_PUBLIC_URL"]
        for name in ("defaults", "plain-ingress", "traefik")
    }
    assert public == {
        "defaults": inside,
        "plain-ingress": "http://cs.example.net",
        "traefik": "https://cs.example.net",
    }
    mixed = everything["inside-and-elsewhere"]
    assert environment_of(mixed)["MATCHPOD_LOG_URL"] == inside
    settings = tomllib.loads(named(mixed, "Secret", "matchpod-settings")["stringData"]["matchpod.toml"])
    assert {one["code"]: one.get("log_url") for one in settings["regions"]} == {
        "try": None,
        "us": "https://cs.example.net",
        "asia": "https://asia.example.net",
        "lan": "https://cs.example.net",
    }
    # Whose servers are in that file is not known here.
    assert "MATCHPOD_LOG_URL" not in environment_of(everything["settings-file"])


def test_stopped_service_needs_no_database_and_takes_no_backups(
    everything: dict[str, list[Object]],
) -> None:
    for name in ("stopped", "restored", "restored-postgresql"):
        assert named(everything[name], "Deployment")["spec"]["replicas"] == 0
        assert [job for job in kinds(everything[name], "Job") if "migrate" in job["metadata"]["name"]] == []
    assert named(everything["restored"], "CronJob", "matchpod-backup")["spec"]["suspend"] is True
    assert named(everything["cluster"], "CronJob", "matchpod-backup")["spec"]["suspend"] is False
    for name, folders in (("restored", {"data", "backup"}), ("restored-postgresql", {"backup"})):
        (job,) = kinds(everything[name], "Job")
        assert job["metadata"]["annotations"]["helm.sh/hook"] == "post-install,post-upgrade"
        pod = pod_of(job)
        assert pod is not None
        claims = {one["name"] for one in pod["volumes"] if "persistentVolumeClaim" in one}
        assert claims == folders
        assert all(one["readOnly"] for c in containers(pod) for one in c["volumeMounts"] if one["name"] == "backup")


def test_migration_is_a_hook_before_the_pods_and_needs_nothing_of_the_release(
    rendered: dict[str, list[Object]],
) -> None:
    job = named(rendered["cluster"], "Job", "matchpod-migrate")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    pod = pod_of(job)
    assert pod is not None
    assert pod["containers"][0]["args"] == ["migrate"]
    assert {next(iter(volume.keys() - {"name"})) for volume in pod["volumes"]} == {"emptyDir"}
    assert "serviceAccountName" not in pod
    assert kinds(rendered["sandbox"], "Job") == []


def test_rights_are_those_of_the_example_in_the_namespaces_of_fleets_only(rendered: dict[str, list[Object]]) -> None:
    example = list(load_all((ROOT / "deploy/examples/rbac.yaml").read_text()))
    (expected,) = [one["rules"] for one in example if one["kind"] == "Role"]
    for name in NAMES:
        roles = kinds(rendered[name], "Role")
        assert [role["metadata"]["namespace"] for role in roles] == ["game-servers"] * (
            name in {"cluster", "try", "other-cluster"}
        )
        assert all(role["rules"] == expected for role in roles)
        bindings = [
            (one["metadata"]["namespace"], one["subjects"][0]["namespace"])
            for one in kinds(rendered[name], "RoleBinding")
        ]
        assert bindings == [("game-servers", NAMESPACE)] * len(roles)
        assert kinds(rendered[name], "ClusterRole") == []


def test_commands_of_game_servers_are_valid(everything: dict[str, list[Object]]) -> None:
    for fleet in (one for objects in everything.values() for one in kinds(objects, "Fleet")):
        template = fleet["spec"]["template"]["spec"]
        assert template["ports"] == [
            {"name": "game", "portPolicy": "Passthrough", "protocol": "TCPUDP", "container": "game"}
        ]
        pod = template["template"]["spec"]
        (init,), (game,) = pod["initContainers"], pod["containers"]
        derive = [word.replace("$(POD_NAME)", "matchpod-eu-abcde-fghij") for word in init["args"]]
        parse_derive_arguments(derive, {"MATCHPOD_FLEET_SECRET_FILE": "/run/fleet/secret"})
        options, command = parse_arguments(game["args"], {})
        assert options.grace_period < pod["terminationGracePeriodSeconds"]
        assert command[command.index("-port") + 1] == "{port}"
        assert "fleet-secret" not in [mount["name"] for mount in game["volumeMounts"]]
        if options.install_dir:
            assert command[command[0] == "start_with_token.sh"].startswith("{game}/")
            assert "{cfg}" in " ".join(command)
            places = {mount["mountPath"]: mount["name"] for mount in game["volumeMounts"]}
            assert {"name": places[options.instances_dir], "emptyDir": {}} in pod["volumes"]
            assert game["resources"]["requests"]["ephemeral-storage"]
        assert all(isinstance(word, str) for word in game["args"])


def test_autoscaler_belongs_to_its_fleet_and_a_region_overrides_the_values_of_all(
    rendered: dict[str, list[Object]],
) -> None:
    objects = rendered["cluster"]
    fleets = {one["metadata"]["name"]: one for one in kinds(objects, "Fleet")}
    scalers = {one["spec"]["fleetName"]: one["spec"]["policy"]["buffer"] for one in kinds(objects, "FleetAutoscaler")}
    assert fleets.keys() == scalers.keys() == {"matchpod-eu", "matchpod-eu-canary"}
    assert not any("replicas" in fleet["spec"] for fleet in fleets.values()), "an upgrade would undo the autoscaler"
    assert (scalers["matchpod-eu"]["bufferSize"], scalers["matchpod-eu-canary"]["bufferSize"]) == (6, 1)
    images = [pod["containers"][0]["image"] for fleet in fleets.values() if (pod := pod_of(fleet))]
    assert images == ["registry.example.com/cs2:1", "registry.example.com/cs2:2"]


def test_policies_allow_the_dns_of_platforms_and_addresses_of_ipv6(everything: dict[str, list[Object]]) -> None:
    for policy in kinds(everything["cluster"], "NetworkPolicy"):
        egress = policy["spec"]["egress"]
        (names,) = [rule for rule in egress if {"protocol": "UDP", "port": 53} in rule.get("ports", [])]
        selected = [one["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for one in names["to"][:2]]
        assert selected == ["kube-system", "openshift-dns"]
        assert names["to"][2] == {"ipBlock": {"cidr": "169.254.20.10/32"}}, "NodeLocal DNSCache"
        assert {port["port"] for port in names["ports"]} == {53, 5353}
        (outside,) = [rule["to"] for rule in egress if rule["to"][0].get("ipBlock", {}).get("cidr") == "0.0.0.0/0"]
        blocks = [one["ipBlock"] for one in outside]
        assert [one["cidr"] for one in blocks] == ["0.0.0.0/0", "::/0"]
        for block in blocks:
            network = ipaddress.ip_network(block["cidr"])
            assert all(network.supernet_of(ipaddress.ip_network(one)) for one in block["except"])  # type: ignore[arg-type]
        assert len(blocks[0]["except"]) == 5
        assert len(blocks[1]["except"]) == 2
    own = {one["metadata"]["name"]: one["spec"]["egress"] for one in kinds(everything["policies"], "NetworkPolicy")}
    for name, allowed in (("matchpod", "10.1.0.0/16"), ("matchpod-game-servers", "10.2.0.0/16")):
        assert {"to": [{"ipBlock": {"cidr": allowed}}]} in own[name]
        assert "53" not in json.dumps(own[name]).replace("1053", "").replace("65535", "").replace("5432", "")
        outside = [rule["to"] for rule in own[name] if rule["to"][0].get("ipBlock", {}).get("cidr") == "0.0.0.0/0"]
        assert [one["ipBlock"].get("except") for one in outside[0]] == [["10.0.0.0/8"], None]


def test_policies_let_the_service_reach_what_it_needs(rendered: dict[str, list[Object]]) -> None:
    objects = rendered["cluster"]
    policy = named(objects, "NetworkPolicy")["spec"]
    deployment = named(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= deployment.items()
    ports = {port["port"]: rule["to"] for rule in policy["egress"] for port in rule["ports"]}
    assert {53, 7000, 6443, 443, 5432, 1} <= ports.keys()
    game = named(objects, "NetworkPolicy", "matchpod-game-servers")
    assert game["metadata"]["namespace"] == "game-servers"
    (rcon,) = [rule for rule in game["spec"]["ingress"] if rule["ports"][0].get("protocol", "TCP") == "TCP"]
    (peer,) = rcon["from"]
    assert peer["podSelector"]["matchLabels"].items() <= deployment.items()
    fleet = kinds(objects, "Fleet")[0]["spec"]["template"]["spec"]["template"]["metadata"]["labels"]
    selected = game["spec"]["podSelector"]["matchLabels"].items()
    assert selected <= (fleet | {"agones.dev/role": "gameserver"}).items()


def test_backups_read_the_volume_of_the_database_or_dump_it(rendered: dict[str, list[Object]]) -> None:
    sqlite, postgres = (pod_of(named(rendered[name], "CronJob", "matchpod-backup")) for name in ("sandbox", "cluster"))
    assert sqlite is not None
    assert postgres is not None
    assert sqlite["initContainers"][0]["args"] == ["backup", "/backup/$(POD_NAME).part"]
    assert sqlite["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert postgres["initContainers"][-1]["command"] == ["pg_dump"]
    assert "--file=/backup/$(POD_NAME).part" in postgres["initContainers"][-1]["args"]
    for pod, suffix in ((sqlite, ".tar"), (postgres, ".dump")):
        script, *arguments = pod["containers"][0]["args"]
        compile(script, "finish_backup.py", "exec")
        assert arguments == ["/backup", "$(POD_NAME)", suffix, "14"]


def test_password_of_the_database_is_on_no_command_line_of_a_backup(rendered: dict[str, list[Object]]) -> None:
    pod = pod_of(named(rendered["cluster"], "CronJob", "matchpod-backup"))
    assert pod is not None
    connection, dump = pod["initContainers"]
    assert not any("DATABASE_URL)" in word for word in (*connection["args"], *dump["args"]))
    assert "--dbname=service=matchpod" in dump["args"]
    script, file = connection["args"]
    compile(script, "write_service_file.py", "exec")
    variables = {one["name"]: one.get("value") for one in dump["env"]}
    assert variables.keys() == {"POD_NAME", "PGSERVICEFILE"}
    assert variables["PGSERVICEFILE"] == file
    mounted = [{one["name"]: one["mountPath"] for one in container["volumeMounts"]} for container in (connection, dump)]
    assert mounted[0]["connection"] == mounted[1]["connection"] == str(Path(file).parent)
    (volume,) = [one for one in pod["volumes"] if one["name"] == "connection"]
    assert volume["emptyDir"]["medium"] == "Memory"


def test_monitoring_is_created_for_the_port_of_the_metrics(rendered: dict[str, list[Object]]) -> None:
    monitor = named(rendered["cluster"], "ServiceMonitor")
    assert monitor["spec"]["endpoints"] == [{"port": "ops", "path": "/metrics", "interval": "15s"}]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    (group,) = named(rendered["cluster"], "PrometheusRule")["spec"]["groups"]
    (rule,) = group["rules"]
    assert rule["annotations"]["summary"] == "{{ $labels.job }}", "helm leaves templates of alerts alone"
    assert rule["annotations"]["runbook_url"] == "https://wiki.example.org/runbooks/a.md"
    jobs = ['up{job="matchpod", namespace="matchpod"}', 'kube_x{cronjob="matchpod-backup", namespace="matchpod"}']
    assert rule["expr"] == " > ".join(jobs), "another release that shares the Prometheus has alerts of its own"
    boards = named(rendered["cluster"], "ConfigMap", "matchpod-dashboards")
    assert boards["data"].keys() == {"matchpod.json", "sample.json"}
    assert boards["data"]["sample.json"] == SAMPLES["dashboards/sample.json"]
    assert boards["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert not [one for one in rendered["try"] if one["kind"] in {"ServiceMonitor", "PrometheusRule", "ConfigMap"}]


def test_other_cluster_has_no_service(rendered: dict[str, list[Object]]) -> None:
    found = {one["kind"] for one in rendered["other-cluster"]}
    assert found == {"ServiceAccount", "Role", "RoleBinding", "Fleet", "FleetAutoscaler", "NetworkPolicy"}
    (fleet,) = kinds(rendered["other-cluster"], "Fleet")
    settings = tomllib.loads(named(rendered["cluster"], "Secret", "matchpod-settings")["stringData"]["matchpod.toml"])
    (region,) = [one for one in settings["regions"] if one["code"] == "us"]
    assert (region["fleet"]["fleet"], region["fleet"]["namespace"]) == (
        fleet["metadata"]["name"],
        fleet["metadata"]["namespace"],
    )


# --- what the service makes of it -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ALL_NAMES if "other-cluster" not in name])
def test_service_accepts_environment_and_settings_file(
    everything: dict[str, list[Object]], name: str, tmp_path: Path
) -> None:
    (deployment,) = kinds(everything[name], "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    key = {
        "MATCHPOD_DATABASE_URL": "postgresql://a:b@db/c",
        "MATCHPOD_SECRET_KEY": "A" * 43 + "=",
        "MATCHPOD_CALLBACK_PROXY": "http://user:password@proxy.example.net:3128",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    environment = {one["name"]: one.get("value") or key[one["name"]] for one in container["env"]}
    codes = ["sandbox"]
    assert ("MATCHPOD_CONFIG" in environment) == (name == "settings-file" or bool(kinds(everything[name], "Secret")))
    environment.pop("MATCHPOD_CONFIG", None)
    for secret in kinds(everything[name], "Secret"):
        file = tmp_path / "matchpod.toml"
        file.write_text(secret["stringData"]["matchpod.toml"])
        environment["MATCHPOD_CONFIG"] = str(file)
        codes = [region["code"] for region in tomllib.loads(file.read_text())["regions"]]
    settings = load_settings(environment, lambda path: path.read_bytes() if path.is_file() else None)
    assert [region.code for region in settings.regions] == codes


def test_values_reach_the_settings(rendered: dict[str, list[Object]]) -> None:
    sandbox = environment_of(rendered["sandbox"])
    assert sandbox["MATCHPOD_CONSOLE"] == "off"
    assert sandbox["MATCHPOD_CORS_ORIGINS"] == "https://cup.example,https://tv.example"
    assert sandbox["MATCHPOD_MAX_CONNECTIONS"] == "1000000"
    assert environment_of(rendered["cluster"])["MATCHPOD_TRUSTED_PROXIES"] == "10.42.0.0/16,fd00:42::/56"
    assert environment_of(rendered["try"])["MATCHPOD_PUBLIC_URL"] == "http://matchpod.matchpod.svc:8080"
    assert environment_of(rendered["static"])["MATCHPOD_FIRST_KEY_FILE"] == "/etc/matchpod/first-key/first-key"
    static = tomllib.loads(named(rendered["static"], "Secret", "matchpod-settings")["stringData"]["matchpod.toml"])
    (region,) = static["regions"]
    assert region["name"] == 'The hall, "upstairs" & more'
    assert region["fleet"]["servers"][0]["rcon_password"] == "a\\b'c"


@pytest.mark.parametrize("page", [ROOT / "docs/deploy.md", CHART / "README.md"], ids=lambda page: page.name)
def test_values_on_the_page_fit_the_schema(page: Path) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        assert faults(yaml.safe_load(block)) == [], block


def test_every_setting_can_be_reached() -> None:
    below = SCHEMA["properties"]["settings"]["properties"].keys()
    for setting in SERVICE:
        assert (setting.key in below) != (setting.key in write_chart.SET_BY_CHART), setting.key
        assert not (setting.is_secret and setting.key in below), "a secret must not be a plain value"


# --- what is rejected -------------------------------------------------------------------------------------------------


def static(address: str) -> dict[str, Any]:
    """Values with a server at this address."""
    return {"regions": [{"code": "eu", "kind": "static", "servers": [{"address": address, "rcon_password": "p"}]}]}


def faults(values: dict[str, Any]) -> list[str]:
    """The faults that the schema finds in values, merged with the defaults as helm does."""
    return [
        f"{'.'.join(map(str, one.instance_path))}: {one.message}"
        for one in jsonschema_rs.validator_for(SCHEMA).iter_errors(merged(DEFAULTS, values))
    ]


def merged(defaults: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    both = {
        key: merged(defaults[key], value) if isinstance(value, dict) and isinstance(defaults.get(key), dict) else value
        for key, value in values.items()
    }
    return defaults | both


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"replicaCount": -1}, "replicaCount"),
        ({"restore": {"file": "../database"}}, "restore.file"),
        ({"ingress": {"controller": "haproxy"}}, "ingress.controller"),
        ({"ingress": {"ingest": {"sourceRanges": ["192.0.2.1"]}}}, "ingress.ingest.sourceRanges.0"),
        ({"prometheusRule": {"runbookUrl": "docs/runbooks"}}, "prometheusRule.runbookUrl"),
        ({"replicas": 2}, ""),
        ({"database": {"kind": "mysql"}}, "database.kind"),
        ({"settings": {"pending_s": "soon"}}, "settings.pending_s"),
        ({"settings": {"log_level": "loud"}}, "settings.log_level"),
        ({"settings": {"secret_key": "A" * 44}}, "settings"),
        ({"settings": {"pendings": 1}}, "settings"),
        ({"publicUrl": "matches.example.net"}, "publicUrl"),
        ({"podSecurityContext": {"runAsUser": 0}}, "podSecurityContext.runAsUser"),
        ({"extraEnv": [{"name": "MATCHPOD_SECRET_KEY", "value": "x"}]}, "extraEnv.0"),
        ({"ingress": {"paths": ["/metrics"]}}, "ingress.paths.0"),
        ({"gameServer": {"gameFolder": "/srv/cs2"}}, "gameServer.gameFolder"),
        ({"gameServer": {"gameFolder": "/srv/cs2/game/"}}, "gameServer.gameFolder"),
        ({"regions": [{"code": "eu", "kind": "docker"}]}, "regions.0.kind"),
        ({"regions": [{"code": "eu", "kind": "agones"}]}, "regions.0"),
        ({"regions": [{"code": "eu", "kind": "process", "options": {"prots": "1-2"}}]}, "regions.0.options"),
        ({"regions": [{"code": "EU", "kind": "process"}]}, "regions.0.code"),
        ({"regions": [{"code": "eu", "kind": "static"}]}, "regions.0"),
        (static("::1:27015"), "regions.0.servers.0.address"),
        (static("cs1.example.org"), "regions.0.servers.0.address"),
        ({"regions": [{"code": "eu", "kind": "process", "secret": "a"}]}, "regions.0"),
    ],
)  # fmt: skip
def test_schema_rejects(values: dict[str, Any], place: str) -> None:
    assert [fault.split(": ")[0] for fault in faults(values)] == [place]


def test_schema_accepts_the_defaults_and_knows_every_value() -> None:
    assert faults({}) == []

    def check(values: dict[str, Any], schema: dict[str, Any]) -> None:
        schema = SCHEMA["definitions"][schema["$ref"].split("/")[-1]] if "$ref" in schema else schema
        if schema.get("additionalProperties") is False:
            assert values.keys() <= schema["properties"].keys()
            for key, value in values.items():
                if isinstance(value, dict) and value:
                    check(value, schema["properties"][key])

    check(DEFAULTS, SCHEMA)


def test_demos_have_a_port_of_their_own_behind_the_ingress_too(rendered: dict[str, list[Object]]) -> None:
    objects = rendered["cluster"]
    (container,) = containers(named(objects, "Deployment")["spec"]["template"]["spec"])
    environment = {one["name"]: one.get("value") for one in container["env"]}
    assert environment["MATCHPOD_UPLOAD_PORT"] == "8082"
    assert environment["MATCHPOD_UPLOAD_URL"] == f"http://matchpod.{NAMESPACE}.svc:8082"
    assert str(environment["MATCHPOD_DEMO_STORAGE"]).startswith("s3://matchpod-demos/eu?")
    assert "AWS_SECRET_ACCESS_KEY" in environment
    assert {"name": "uploads", "containerPort": 8082} in container["ports"]
    ports = {one["name"]: one["port"] for one in named(objects, "Service")["spec"]["ports"]}
    assert ports["uploads"] == 8082
    ingress = named(objects, "Ingress", "matchpod-demos")
    (path,) = ingress["spec"]["rules"][0]["http"]["paths"]
    assert (path["path"], path["backend"]["service"]["port"]["name"]) == ("/ingest/demos", "uploads")
    annotations = ingress["metadata"]["annotations"]
    prefix = "nginx.ingress.kubernetes.io"
    assert annotations[f"{prefix}/proxy-request-buffering"] == "off"
    assert annotations[f"{prefix}/proxy-body-size"] == "1000m"
    assert f"{prefix}/proxy-body-size" not in named(objects, "Ingress", "matchpod-ingest")["metadata"]["annotations"]


def test_values_that_cannot_work_together_are_rejected_with_a_sentence_each(tmp_path: Path) -> None:
    values = {
        "replicaCount": 2,
        "demos": {"enabled": True},
        "terminationGracePeriodSeconds": 30,
        "ingress": {"enabled": True},
        "networkPolicy": {"enabled": True},
        "settingsFile": {"existingSecret": "a"},
        "regions": [
            {"code": "a", "kind": "process"},
            {
                "code": "a",
                "kind": "agones",
                "secret": "s",
                "gameServer": {"kind": "cs2", "command": ["/cs2", "+exec", "matchpod/{cfg}"]},
            },
        ],
    }
    assert sentences(values, tmp_path) == [
        "replicaCount is 2, but an SQLite database is used by one process only: set it to 1, or database.kind to postgresql.",
        NO_FOLDER,
        "terminationGracePeriodSeconds is 30, but stopping takes up to 33 s: preStopSeconds, stopGraceSeconds, and 25 s for callbacks.",
        "settingsFile.existingSecret and regions cannot both be set: the regions are in that file.",
        "Region a is of the kind process, whose servers run inside one pod, but replicaCount is 2.",
        "Two regions have the code a.",
        "Region a has CS2 servers, but gameServer.image.repository is not set: there is no public image of the game.",
        "gameServer.command of region a does not contain {game}, the server's own folder `game`: use it in place of /srv/cs2/game.",
        "gameServer.command of region a contains matchpod/{cfg}, a file that the server does not have: write +exec {cfg}.",
        "networkPolicy.apiServers is empty, but regions on Agones need the API server: kubectl get endpointslices -n default kubernetes",
        "ingress.host is required with an Ingress.",
    ]


def test_regions_that_cannot_work_are_rejected(tmp_path: Path) -> None:
    servers = [{"address": "198.51.100.4:27015", "rcon_password": "p"}]
    long = "c" * 31
    values = {
        "fullnameOverride": "m" * 40,
        "regions": [
            {"code": "lan", "kind": "static", "servers": servers},
            {"code": f"{long}1", "kind": "agones", "secret": "s"},
            {"code": f"{long}2", "kind": "agones", "secret": "s"},
            {"code": "a", "kind": "agones", "secret": "s", "fleet": "f", "namespace": "ns", "kubeconfigSecret": "k"},
            {"code": "b", "kind": "agones", "secret": "s", "fleet": "f", "namespace": "ns", "kubeconfigSecret": "k"},
        ],
        "networkPolicy": {"enabled": True, "apiServers": [{"cidr": "192.0.2.1/32"}]},
        "serviceMonitor": {"enabled": True},
    }
    unreachable = "is not in this cluster, so its game servers cannot post their logs to the Service: set publicUrl, or log_url of the region."
    same = "(names are cut after 63 characters), and so is that of another region: set fleet of the region."
    name = f"{'m' * 40}-{'c' * 22}"
    rcon = "networkPolicy.rcon is empty, so the game servers of region {} could not be reached."
    assert sentences(values, tmp_path) == [
        f"Region lan {unreachable}",
        rcon.format("lan"),
        f"The Fleet of region {long}2 is called {name} {same}",
        f"Region a {unreachable}",
        rcon.format("a"),
        f"Region b {unreachable}",
        rcon.format("b"),
        f"The Fleet of region b is called f {same}",
        "networkPolicy.metricsFrom is empty, so every pod could read the metrics: list the peers of Prometheus.",
    ]


def test_paths_without_the_rules_of_the_ingress_of_game_servers_are_rejected(tmp_path: Path) -> None:
    ingress = {**INGRESS, "controller": "nginx", "ingest": {"sourceRanges": ["192.0.2.0/24"]}}
    unused = (
        "ingress.ingest.sourceRanges restricts /ingest, which is not in ingress.paths: add it, or remove the addresses."
    )
    open_path = "ingress.paths has {}, which leads to /ingest without its addresses and keeps its tokens in access logs: list /ingest, and each other path."
    assert sentences({"ingress": {**ingress, "paths": ["/api"]}}, tmp_path) == [unused]
    assert sentences({"ingress": {**ingress, "paths": ["/"]}}, tmp_path) == [unused, open_path.format("/")]
    paths = ["/ingest", "/ingest/", "/ingest/logs"]
    assert sentences({"ingress": {**ingress, "ingest": {}, "paths": paths}}, tmp_path) == [
        open_path.format("/ingest/"),
        open_path.format("/ingest/logs"),
    ]


def test_restore_needs_a_stopped_service_and_backups(tmp_path: Path) -> None:
    values = {"restore": {"file": "latest"}, "ingress": {**INGRESS, "ingest": {"sourceRanges": ["192.0.2.0/24"]}}}
    assert sentences(values, tmp_path) == [
        "ingress.ingest.sourceRanges needs ingress.controller: otherwise restrict addresses with ingress.ingest.annotations.",
        "restore.file is set, but replicaCount is 1: set it to 0 to restore, and remove restore.file afterwards.",
        "restore.file is set, but there is no volume with backups: set backup.existingClaim.",
    ]


def test_postgresql_needs_its_url_and_a_secret_key(tmp_path: Path) -> None:
    demos = {"enabled": True, "storage": "file:///srv/demos"}
    values = {"database": {"kind": "postgresql"}, "networkPolicy": {"enabled": True}, "demos": demos}
    assert sentences(values, tmp_path) == [
        "database.kind is postgresql, but database.existingSecret does not name the Secret with its URL.",
        "secretKey.existingSecret is required with PostgreSQL: all replicas must have the same key. "
        "Make one with: openssl rand -base64 32",
        NO_FOLDER,
        "networkPolicy.postgresql is empty, so the database could not be reached.",
    ]


@pytest.mark.parametrize(
    ("options", "says", "does_not_say"),
    [
        ([], ["There are no network policies", "rollout status"], ["trusted_proxies", "is stopped", "lead nowhere"]),
        (["replicaCount=0"], ["The service is stopped"], ["rollout status", "port-forward", "job/"]),
        (
            ["replicaCount=0", "backup.enabled=true", "restore.file=latest"],
            ["job/matchpod-restore", "without restore.file"],
            ["rollout status"],
        ),
        (["ingress.enabled=true", "ingress.host=a.example"], ["settings.trusted_proxies"], ["port-forward"]),
        (
            ["ingress.enabled=true", "ingress.host=a.example", "settings.trusted_proxies={10.42.0.0/16}"],
            ["rollout status"],
            ["trusted_proxies"],
        ),
        (
            ["networkPolicy.enabled=true", "prometheusRule.enabled=true"],
            ["rollout status", "lead nowhere yet: set prometheusRule.runbookUrl"],
            ["There are no network policies"],
        ),
        (["fleetsOnly=true"], ["create token", "RCON"], ["metrics of the service"]),
    ],
)
def test_notes_say_what_is_open_and_what_is_left_to_do(
    options: list[str], says: list[str], does_not_say: list[str]
) -> None:
    done = helm("install", "matchpod", str(CHART), "--dry-run=client", "--set", ",".join(options))
    assert done.returncode == 0, done.stderr
    notes = done.stdout.partition("NOTES:\n")[2]
    assert [text for text in says if text not in notes] == []
    assert [text for text in does_not_say if text in notes] == []


def sentences(values: dict[str, Any], folder: Path) -> list[str]:
    """The sentences with which the templates reject values."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    done = helm("template", "matchpod", str(CHART), "--values", str(file))
    assert done.returncode == 1
    assert "values don't meet the specifications" not in done.stderr
    _, *lines = done.stderr.strip().splitlines()
    return lines[: lines.index("")] if "" in lines else lines


# --- what is generated ------------------------------------------------------------------------------------------------


def test_generated_files_are_current() -> None:
    for path, text in write_chart.generated_files().items():
        assert path.read_text("utf-8") == text, "run python -m scripts.write_chart"


def test_every_value_is_described() -> None:
    described = [path for path, _, _ in write_chart.described_values((CHART / "values.yaml").read_text())]
    leaves = re.findall(r"^ *(\w+):", (CHART / "values.yaml").read_text(), re.MULTILINE)
    groups = [key for key, value in DEFAULTS.items() if isinstance(value, dict) and value and key not in described]
    nested = {"image", "autoscaler", "ingest", "requests", "limits", "grafana_dashboard"}
    undescribed = [
        key for key in leaves if key not in {path.split(".")[-1] for path in described} | set(groups) | nested
    ]
    assert undescribed == []


def test_version_is_that_of_the_service() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert chart["version"] == chart["appVersion"] == version


def write_service_file(file: Path, url: str) -> subprocess.CompletedProcess[str]:
    script = (CHART / "files/write_service_file.py").read_text()
    command = [sys.executable, "-c", script, str(file)]
    environment = {"MATCHPOD_DATABASE_URL": url}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("url", "fields"),
    [
        ("postgresql://u:p%40%2F%3D%23@db:5433/matchpod?sslmode=require", "db matchpod u p@/=# 5433 require"),
        ("postgresql://u:p@db1:5432,db2/matchpod", "db1,db2 matchpod u p 5432, -"),
        ("postgresql://u@[::1]:5433/matchpod", "::1 matchpod u - 5433 -"),
        ("postgres://u:p@[::1]/matchpod", "::1 matchpod u p - -"),
        ("postgresql://u@/matchpod?host=/run/postgresql", "/run/postgresql matchpod u - - -"),
    ],
)
def test_service_file_has_what_the_url_of_the_database_has(tmp_path: Path, url: str, fields: str) -> None:
    file = tmp_path / "pg_service.conf"
    done = write_service_file(file, url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert file.stat().st_mode & 0o777 == 0o600
    head, *lines = file.read_text().splitlines()
    names = ("host", "dbname", "user", "password", "port", "sslmode")
    expected = dict(zip(names, fields.split(), strict=True))
    assert head == "[matchpod]"
    assert dict(line.split("=", 1) for line in lines) == {key: one for key, one in expected.items() if one != "-"}


def test_password_that_a_service_file_cannot_have_is_reported_without_it(tmp_path: Path) -> None:
    done = write_service_file(tmp_path / "pg_service.conf", "postgresql://u:se%0Acret@db/matchpod")
    assert done.returncode == 1
    assert done.stderr == "a service file cannot have this value of the database URL: password\n"


def finish_backup(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    script = (CHART / "files/finish_backup.py").read_text()
    command = [sys.executable, "-c", script, str(folder), name, ".dump", "2"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_complete_backup_is_kept_and_old_and_incomplete_ones_are_deleted(tmp_path: Path) -> None:
    for name in ("b-1.dump", "b-2.dump", "b-3.part", "b-4.part"):
        (tmp_path / name).write_text("a dump")
    (tmp_path / "lost+found").mkdir()
    done = finish_backup(tmp_path, "b-4")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b-2.dump", "b-4.dump", "lost+found"]
    assert (tmp_path / "b-4.dump").stat().st_mode & 0o077 == 0
    assert done.stdout.endswith(f"kept 2 backups; the newest is {tmp_path}/b-4.dump\n")


def test_empty_backup_replaces_no_other(tmp_path: Path) -> None:
    for name in ("b-1.dump", "b-2.dump"):
        (tmp_path / name).write_text("a dump")
    (tmp_path / "b-3.part").touch()
    done = finish_backup(tmp_path, "b-3")
    assert (done.returncode, done.stderr) == (1, f"{tmp_path}/b-3.dump is empty; older backups were left alone\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b-1.dump", "b-2.dump"]
