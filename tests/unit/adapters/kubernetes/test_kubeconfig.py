"""A kubeconfig is read as kubectl reads it, and every fault in it is one plain sentence."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest

from matchpod.adapters.kubernetes.api_errors import ClusterConfigError
from matchpod.adapters.kubernetes.cluster import PemSource
from matchpod.adapters.kubernetes.kubeconfig import read_kubeconfig

EXEC = {"command": "login", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}


def write(
    folder: Path, user: object = None, cluster: dict[str, object] | None = None, *, current_context: str = "eu"
) -> Path:
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current_context,
        "clusters": [{"name": "c-eu", "cluster": {"server": "https://eu.example:6443/", **(cluster or {})}}],
        "users": [{"name": "u-eu", "user": {"token": "secret"} if user is None else user}],
        "contexts": [
            {"name": "eu", "context": {"cluster": "c-eu", "user": "u-eu", "namespace": "games"}},
            {"name": "no-cluster", "context": {"cluster": "c-us", "user": "u-eu"}},
            {"name": "no-user", "context": {"cluster": "c-eu", "user": "u-us"}},
            {"name": "plain", "context": {"cluster": "c-eu", "user": "u-eu"}},
        ],
    }
    path = folder / "kubeconfig"
    path.write_bytes(msgspec.yaml.encode(content))
    return path


def test_current_context_gives_server_namespace_and_token(tmp_path: Path) -> None:
    cluster = read_kubeconfig(write(tmp_path))
    assert (cluster.server, cluster.namespace) == ("https://eu.example:6443", "games")
    assert cluster.account.token == "secret"
    assert cluster.authority is None
    assert not cluster.skips_verification


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    user = {"client-certificate": "me.crt", "client-key": "/etc/me.key", "tokenFile": "token"}
    cluster = read_kubeconfig(write(tmp_path, user, {"certificate-authority": "ca.crt"}))
    assert cluster.authority == PemSource(file=tmp_path / "ca.crt")
    assert cluster.account.certificate == PemSource(file=tmp_path / "me.crt")
    assert cluster.account.key == PemSource(file=Path("/etc/me.key"))
    assert cluster.account.token_file == tmp_path / "token"


def test_inline_data_wins_over_a_file(tmp_path: Path) -> None:
    encoded = base64.encodebytes(b"-----BEGIN CERTIFICATE-----\n" * 5).decode()  # with line ends
    cluster = read_kubeconfig(
        write(tmp_path, None, {"certificate-authority": "ca.crt", "certificate-authority-data": encoded})
    )
    assert cluster.authority == PemSource(text="-----BEGIN CERTIFICATE-----\n" * 5)


def test_options_of_the_connection_are_read(tmp_path: Path) -> None:
    options = {"insecure-skip-tls-verify": True, "tls-server-name": "api", "proxy-url": "http://proxy.example:3128"}
    cluster = read_kubeconfig(write(tmp_path, None, options))
    assert cluster.skips_verification
    assert (cluster.tls_server_name, cluster.proxy_url) == ("api", "http://proxy.example:3128")


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_exec_program_is_read(tmp_path: Path, version: str) -> None:
    entry = {
        **EXEC,
        "apiVersion": f"client.authentication.k8s.io/{version}",
        "command": "bin/login",
        "args": ["token", "--cluster", "eu"],
        "env": [{"name": "PROFILE", "value": "eu"}],
        "provideClusterInfo": True,
        "installHint": "install login",
    }
    plugin = read_kubeconfig(write(tmp_path, {"exec": entry})).account.exec_plugin
    assert plugin is not None
    assert plugin.command == str(tmp_path / "bin/login")
    assert plugin.args == ("token", "--cluster", "eu")
    assert plugin.env == {"PROFILE": "eu"}
    assert plugin.cluster_info is not None
    assert b"eu.example" in plugin.cluster_info


def test_plain_command_name_is_found_in_the_path(tmp_path: Path) -> None:
    plugin = read_kubeconfig(write(tmp_path, {"exec": EXEC})).account.exec_plugin
    assert plugin is not None
    assert plugin.command == "login"


@pytest.mark.parametrize(
    ("changes", "context", "message"),
    [
        ({"current_context": ""}, None, "it has no current context: name one"),
        ({"cluster": {"server": ""}}, None, "cluster c-eu has no URL of a server"),
        ({}, "us", "it has no context 'us'; its contexts: eu, no-cluster, no-user, plain"),
        ({}, "no-cluster", "context no-cluster refers to the cluster 'c-us', which does not exist"),
        ({}, "no-user", "context no-user refers to the user 'u-us', which does not exist"),
    ],
)
def test_missing_part_is_named(tmp_path: Path, changes: dict[str, Any], context: str | None, message: str) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(ClusterConfigError) as failed:
        read_kubeconfig(path, context)
    assert str(failed.value) == f"The kubeconfig {path} cannot be used: {message}"


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"client-certificate-data": "%%%"}, "the certificate of user u-eu is not valid base64"),
        ({"client-certificate": "me.crt"}, "user u-eu needs both a client certificate and its key"),
        ({"username": "me", "password": "secret"}, "user u-eu logs in with a password or auth-provider"),
        ({"auth-provider": {"name": "gcp"}}, "user u-eu logs in with a password or auth-provider"),
        (
            {"exec": {**EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"}},
            "exec of user u-eu has the version",
        ),
        ({"exec": {**EXEC, "interactiveMode": "Always"}}, "exec of user u-eu asks questions"),
        ({"exec": {"command": "login"}}, "missing required field `apiVersion`"),
        ({"token": 12}, "Expected `str`, got `int`"),
    ],
)
def test_unusable_user_is_reported_without_secrets(tmp_path: Path, user: object, message: str) -> None:
    with pytest.raises(ClusterConfigError) as failed:
        read_kubeconfig(write(tmp_path, user))
    assert message in str(failed.value)
    assert "secret" not in str(failed.value)


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ClusterConfigError, match=r"The kubeconfig .*absent cannot be read: No such file or directory"):
        read_kubeconfig(tmp_path / "absent")


@pytest.mark.parametrize("content", [b"token: [secret", b"\xffx", b"\t- x"])
def test_file_that_is_not_yaml_is_reported_without_its_content(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(content)
    with pytest.raises(ClusterConfigError) as failed:
        read_kubeconfig(path)
    assert str(failed.value) == f"The kubeconfig {path} cannot be used: it is not valid YAML"


def test_no_secret_is_in_the_text_of_a_cluster(tmp_path: Path) -> None:
    encoded = base64.b64encode(b"hidden").decode()
    user = {
        "token": "hidden",
        "client-certificate-data": encoded,
        "client-key-data": encoded,
        "exec": {**EXEC, "args": ["hidden"], "env": [{"name": "X", "value": "hidden"}]},
    }
    assert "hidden" not in repr(read_kubeconfig(write(tmp_path, user)))
