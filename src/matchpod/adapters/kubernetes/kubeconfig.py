"""Read the cluster and the account of a context from a kubeconfig file.

As in kubectl, paths are relative to the folder of the file, and inline data takes precedence over a file. Several
merged files, passwords and `auth-provider` are not supported. Current servers and clients have dropped the last two as
well.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from matchpod.adapters.kubernetes.api_errors import ClusterConfigError
from matchpod.adapters.kubernetes.cluster import DEFAULT_NAMESPACE, Cluster, ExecPlugin, PemSource, UserAccount

EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
"""The API versions of exec programs (programs that print credentials) that we support."""


class _ClusterEntry(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None


class _Variable(msgspec.Struct):
    name: str
    value: str


class _ExecEntry(msgspec.Struct, rename="camel"):
    command: str
    api_version: str
    args: list[str] | None = None
    env: list[_Variable] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool = False
    interactive_mode: str | None = None


class _UserEntry(
    msgspec.Struct,
    rename={
        "client_certificate": "client-certificate",
        "client_certificate_data": "client-certificate-data",
        "client_key": "client-key",
        "client_key_data": "client-key-data",
        "token_file": "tokenFile",
        "exec_entry": "exec",
        "auth_provider": "auth-provider",
    },
):
    token: str = ""
    token_file: str = ""
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec_entry: _ExecEntry | None = None
    auth_provider: object = None
    username: str = ""


class _ContextEntry(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str | None = None


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _ClusterEntry


class _NamedUser(msgspec.Struct):
    name: str
    user: _UserEntry | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: _ContextEntry


_Named = TypeVar("_Named", _NamedCluster, _NamedUser)


class _Kubeconfig(msgspec.Struct, rename="kebab"):
    current_context: str = ""
    clusters: list[_NamedCluster] | None = None
    contexts: list[_NamedContext] | None = None
    users: list[_NamedUser] | None = None


# Created at import: kubeconfigs are read in threads, and msgspec crashes if two threads prepare the same type at once.
msgspec.json.Decoder(_Kubeconfig)


def read_kubeconfig(path: Path, context: str | None = None) -> Cluster:
    """Return the cluster of a context, by default the current context. Raise ClusterConfigError if that fails."""
    try:
        content = path.read_bytes()
    except OSError as exc:
        raise ClusterConfigError(f"The kubeconfig {path} cannot be read: {exc.strerror}") from exc
    try:
        config = msgspec.yaml.decode(content, type=_Kubeconfig)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        # A syntax error is reported without its message, because the message quotes the file, which contains secrets.
        detail = str(exc) if isinstance(exc, msgspec.ValidationError) else "it is not valid YAML"
        raise ClusterConfigError(f"The kubeconfig {path} cannot be used: {detail}") from exc
    return _Reader(path, config).cluster(context)


class _Reader:
    def __init__(self, path: Path, config: _Kubeconfig) -> None:
        self._path = path
        self._config = config

    def cluster(self, name: str | None) -> Cluster:
        context = self._context(name)
        entry = self._needed(context, "cluster", context.context.cluster, self._config.clusters)
        user = self._needed(context, "user", context.context.user, self._config.users)
        if not entry.cluster.server.startswith(("https://", "http://")):
            raise self._fault(f"cluster {entry.name} has no URL of a server")
        return Cluster(
            server=entry.cluster.server.rstrip("/"),
            account=self._account(user, entry.cluster),
            namespace=context.context.namespace or DEFAULT_NAMESPACE,
            authority=self._pem(
                entry.cluster.certificate_authority_data,
                entry.cluster.certificate_authority,
                f"the certificate authority of cluster {entry.name}",
            ),
            skips_verification=entry.cluster.insecure_skip_tls_verify,
            tls_server_name=entry.cluster.tls_server_name or None,
            proxy_url=entry.cluster.proxy_url or None,
        )

    def _context(self, name: str | None) -> _NamedContext:
        wanted = name or self._config.current_context
        contexts = self._config.contexts or []
        if not wanted:
            raise self._fault("it has no current context: name one")
        for context in contexts:
            if context.name == wanted:
                return context
        known = ", ".join(context.name for context in contexts) or "none"
        raise self._fault(f"it has no context {wanted!r}; its contexts: {known}")

    def _needed(self, context: _NamedContext, what: str, name: str, named: Sequence[_Named] | None) -> _Named:
        for entry in named or ():
            if entry.name == name:
                return entry
        raise self._fault(f"context {context.name} refers to the {what} {name!r}, which does not exist")

    def _account(self, named: _NamedUser, cluster: _ClusterEntry) -> UserAccount:
        user = named.user or _UserEntry()
        if user.auth_provider is not None or user.username:
            raise self._fault(
                f"user {named.name} logs in with a password or auth-provider; use a token or exec instead"
            )
        certificate = self._pem(
            user.client_certificate_data, user.client_certificate, f"the certificate of user {named.name}"
        )
        key = self._pem(user.client_key_data, user.client_key, f"the key of user {named.name}")
        if (certificate is None) != (key is None):
            raise self._fault(f"user {named.name} needs both a client certificate and its key")
        return UserAccount(
            token=user.token.strip() or None,
            token_file=self._beside(user.token_file) if user.token_file and not user.token else None,
            exec_plugin=self._exec(named.name, user.exec_entry, cluster) if user.exec_entry else None,
            certificate=certificate,
            key=key,
        )

    def _exec(self, user: str, entry: _ExecEntry, cluster: _ClusterEntry) -> ExecPlugin:
        if entry.api_version not in EXEC_VERSIONS:
            raise self._fault(f"exec of user {user} has the version {entry.api_version!r}, not {EXEC_VERSIONS[0]}")
        if entry.interactive_mode == "Always":
            raise self._fault(f"exec of user {user} asks questions, which a service cannot answer")
        info = {
            "server": cluster.server,
            "certificate-authority-data": cluster.certificate_authority_data,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        }
        return ExecPlugin(
            # As in kubectl: a path with a slash is relative to the kubeconfig, a plain name is searched in PATH.
            command=str(self._beside(entry.command)) if "/" in entry.command else entry.command,
            args=tuple(entry.args or ()),
            env={variable.name: variable.value for variable in entry.env or ()},
            api_version=entry.api_version,
            install_hint=entry.install_hint or "",
            cluster_info=msgspec.json.encode(info) if entry.provide_cluster_info else None,
        )

    def _pem(self, inline: str, file: str, what: str) -> PemSource | None:
        if inline:
            try:
                return PemSource(text=base64.b64decode("".join(inline.split()), validate=True).decode("ascii"))
            except (binascii.Error, ValueError) as exc:
                raise self._fault(f"{what} is not valid base64 of a PEM text") from exc
        return PemSource(file=self._beside(file)) if file else None

    def _beside(self, path: str) -> Path:
        return self._path.absolute().parent / path

    def _fault(self, what: str) -> ClusterConfigError:
        return ClusterConfigError(f"The kubeconfig {self._path} cannot be used: {what}")
