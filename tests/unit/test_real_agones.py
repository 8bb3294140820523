"""The control plane for tests: what is kept of the installation file of Agones, and what the command line accepts."""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec
import pytest

from matchpod.adapters.kubernetes.kubeconfig import read_kubeconfig
from scripts.agones_manifest import agones_objects, path_of
from scripts.control_plane_files import Authority, write_kubeconfig
from scripts.real_agones import PROGRAMS, read_arguments

SERVICE = {"name": "agones-controller-service", "namespace": "agones-system"}


def manifest(folder: Path) -> Path:
    webhook = {"name": "validations.agones.dev", "clientConfig": {"service": SERVICE | {"path": "/validate"}}}
    documents = [
        {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "webhook"}, "webhooks": [webhook]},
        {"kind": "APIService", "metadata": {"name": "v1.allocation.agones.dev"}, "spec": {"service": SERVICE}},
        {"kind": "Deployment", "metadata": {"name": "agones-controller"}},
        {"kind": "Service", "metadata": {"name": "agones-ping-http-service"}},
        {"kind": "Service", "metadata": SERVICE, "spec": {"type": "ClusterIP"}},
    ]
    path = folder / "install.yaml"
    path.write_bytes(b"# a comment\n---\n".join([b"", *map(msgspec.yaml.encode, documents)]))
    return path


def test_calls_of_the_api_reach_a_process_on_this_machine(tmp_path: Path) -> None:
    authority = Authority(tmp_path).certificate
    objects = {one["kind"]: one for one in agones_objects(manifest(tmp_path), authority)}
    assert list(objects) == ["Namespace", "Service", "APIService", "ValidatingWebhookConfiguration"]
    assert objects["Service"]["spec"] == {"type": "ExternalName", "externalName": "127.0.0.1"}
    (webhook,) = objects["ValidatingWebhookConfiguration"]["webhooks"]
    for caller in (objects["APIService"]["spec"], webhook["clientConfig"]):
        assert caller["service"]["port"] == 8081
        assert base64.b64decode(caller["caBundle"]) == authority.read_bytes()
    assert path_of(objects["Service"]) == "/api/v1/namespaces/agones-system/services"


def test_kubeconfig_has_a_context_per_account(tmp_path: Path) -> None:
    authority = Authority(tmp_path).certificate
    path = write_kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:1", authority, {"first": "a", "other": "b"})
    assert read_kubeconfig(path).account.token == "a"
    assert read_kubeconfig(path, "other").account.token == "b"
    assert path.stat().st_mode & 0o777 == 0o600


def test_missing_programs_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in PROGRAMS[:2]:
        (tmp_path / name).touch(mode=0o755)
    with pytest.raises(SystemExit):
        read_arguments(["--programs", str(tmp_path), "--manifest", str(tmp_path / "none"), "--", "true"])
    assert "lacks the programs agones-controller, agones-extensions" in capsys.readouterr().err
