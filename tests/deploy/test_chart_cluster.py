"""A real API server with Agones accepts everything that the chart renders.

Skipped unless MATCHPOD_TEST_KUBECONFIG names a kubeconfig with a context `set-up`; scripts/real_agones.py starts one.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from tests.deploy.rendered_chart import ALL_NAMES, KUBERNETES, NAMESPACE, enclosing_chart, render
from tests.deploy.tools import find_tool

__all__ = ["enclosing_chart"]
KUBECONFIG = os.environ.get("MATCHPOD_TEST_KUBECONFIG")
pytestmark = pytest.mark.skipif(KUBECONFIG is None, reason="MATCHPOD_TEST_KUBECONFIG names no cluster")
NAMESPACES = (NAMESPACE, "game-servers")
OPTIONAL = {"monitoring.coreos.com/v1", "traefik.io/v1alpha1"}
"""Definitions of other programs, which the cluster may have."""
ROLE = "system:serviceaccount:matchpod:matchpod"


def kubectl(*words: str, objects: list[object] | None = None) -> subprocess.CompletedProcess[str]:
    command = [*find_tool("kubectl"), "--kubeconfig", str(KUBECONFIG), "--context", "set-up", *words]
    text = None if objects is None else yaml.safe_dump_all(objects)
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def served() -> str:
    """Create the namespaces and their accounts, as a controller would; return the versions of APIs that there are."""
    for name in NAMESPACES:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        created = kubectl("apply", "--filename", "-", objects=[namespace, account])
        assert created.returncode == 0, created.stderr
    return kubectl("api-versions").stdout


@pytest.mark.parametrize("name", ALL_NAMES)
def test_objects_are_accepted(enclosing_chart: Path, served: str, name: str) -> None:
    objects = [
        one
        for one in render(enclosing_chart, KUBERNETES[1])[name]
        if one["apiVersion"] not in OPTIONAL or one["apiVersion"] in served.split()
    ]
    done = kubectl("apply", "--dry-run=server", "--validate=strict", "--filename", "-", objects=[*objects])
    print(done.stdout)  # noqa: T201 - for the page
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(objects)


def test_account_has_the_rights_of_the_role_and_no_others(enclosing_chart: Path, served: str) -> None:
    rights = [
        one
        for one in render(enclosing_chart, KUBERNETES[1])["try"]
        if one["kind"] in {"ServiceAccount", "Role", "RoleBinding"}
    ]
    assert kubectl("apply", "--filename", "-", objects=[*rights]).returncode == 0

    def can(verb: str, resource: str, namespace: str) -> bool:
        return kubectl("auth", "can-i", verb, resource, "--as", ROLE, "--namespace", namespace).stdout.strip() == "yes"

    assert can("create", "gameserverallocations.allocation.agones.dev", "game-servers")
    assert can("delete", "gameservers.agones.dev", "game-servers")
    assert not can("delete", "gameservers.agones.dev", NAMESPACE)
    assert not can("patch", "gameservers.agones.dev", "game-servers")
    assert not can("get", "secrets", "game-servers")
    assert not can("create", "pods", NAMESPACE)
