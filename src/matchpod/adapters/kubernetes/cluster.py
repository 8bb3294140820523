"""Define how to connect to a cluster: its URL and our credentials, from a kubeconfig or from the service's pod."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from matchpod.adapters.kubernetes.api_errors import ClusterConfigError

ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder where a pod finds the token, certificate authority and namespace of its service account."""

DEFAULT_NAMESPACE = "default"


class ClusterSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where the connection settings are: in a kubeconfig or, if `kubeconfig` is None, in the service's pod."""

    kubeconfig: Path | None = None
    context: str | None = None
    """The context of the kubeconfig to use; None for its current context."""
    account_folder: Path = ACCOUNT_FOLDER


class PemSource(msgspec.Struct, frozen=True):
    """Certificates or a key in PEM: either the text itself, or the path of a file that is read at each use."""

    text: str | None = None
    file: Path | None = None

    def __repr__(self) -> str:
        """Omit the text, which may be a private key."""
        return f"PemSource(file={self.file!r})"


class ExecPlugin(msgspec.Struct, frozen=True, kw_only=True):
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    api_version: str
    install_hint: str = ""
    cluster_info: bytes | None = None
    """The description of the cluster in JSON, if the kubeconfig says that the program needs it; None otherwise."""

    def __repr__(self) -> str:
        """Omit arguments and environment, which may contain secrets."""
        return f"ExecPlugin({self.command!r})"


class UserAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Our credentials: at most one kind of token, and optionally a client certificate."""

    token: str | None = None
    token_file: Path | None = None
    exec_plugin: ExecPlugin | None = None
    certificate: PemSource | None = None
    key: PemSource | None = None

    def __repr__(self) -> str:
        """Omit the token."""
        return f"UserAccount(token_file={self.token_file!r}, exec_plugin={self.exec_plugin!r})"


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """The URL of a cluster, how its certificate is verified, and the account that we use."""

    server: str
    account: UserAccount
    namespace: str = DEFAULT_NAMESPACE
    authority: PemSource | None = None
    """The certificate authorities that may have signed the server's certificate; None for the system's authorities."""
    skips_verification: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None


def cluster_of_pod(folder: Path, environment: Mapping[str, str]) -> Cluster:
    """Return the connection settings of the cluster whose pod this process runs in."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ClusterConfigError(
            "This process does not run in a Kubernetes pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are "
            "not set): name a kubeconfig file"
        )
    token_file, authority_file = folder / "token", folder / "ca.crt"
    for file in (token_file, authority_file):
        if not file.is_file():
            raise ClusterConfigError(f"The file {file} of the pod's service account does not exist")
    try:
        namespace = (folder / "namespace").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        namespace = ""
    return Cluster(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        account=UserAccount(token_file=token_file),
        namespace=namespace or DEFAULT_NAMESPACE,
        authority=PemSource(file=authority_file),
    )
