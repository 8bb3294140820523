"""The service finds the cluster of the pod that it runs in."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchpod.adapters.kubernetes.api_errors import ClusterConfigError
from matchpod.adapters.kubernetes.cluster import PemSource, UserAccount, cluster_of_pod

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def account_folder(folder: Path) -> Path:
    for name, text in (("token", "t"), ("ca.crt", "c"), ("namespace", "games\n")):
        (folder / name).write_text(text)
    return folder


def test_cluster_of_a_pod_is_read_from_its_environment_and_service_account(tmp_path: Path) -> None:
    cluster = cluster_of_pod(account_folder(tmp_path), POD)
    assert (cluster.server, cluster.namespace) == ("https://10.96.0.1:443", "games")
    assert cluster.authority == PemSource(file=tmp_path / "ca.crt")
    assert cluster.account == UserAccount(token_file=tmp_path / "token")


def test_address_of_ip_version_6_is_put_in_brackets(tmp_path: Path) -> None:
    environment = {**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert cluster_of_pod(account_folder(tmp_path), environment).server == "https://[fd00::1]:443"


def test_namespace_is_default_without_its_file(tmp_path: Path) -> None:
    (account_folder(tmp_path) / "namespace").unlink()
    assert cluster_of_pod(tmp_path, POD).namespace == "default"


def test_process_outside_a_pod_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ClusterConfigError, match=r"does not run in a Kubernetes pod .* name a kubeconfig file"):
        cluster_of_pod(tmp_path, {})


@pytest.mark.parametrize("name", ["token", "ca.crt"])
def test_missing_file_of_the_service_account_is_reported(tmp_path: Path, name: str) -> None:
    (account_folder(tmp_path) / name).unlink()
    with pytest.raises(ClusterConfigError, match=f"The file .*/{name} of the pod's service account does not exist"):
        cluster_of_pod(tmp_path, POD)
