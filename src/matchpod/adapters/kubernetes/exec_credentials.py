"""Run a program that prints credentials for a cluster, as kubectl does (`exec` in a kubeconfig, v1 and v1beta1)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from matchpod.adapters.kubernetes.api_errors import ClusterConfigError, UnreachableError
from matchpod.adapters.kubernetes.cluster import ExecPlugin

EXEC_S = 30.0
"""Timeout in seconds for the program. The programs of cloud vendors call a token service."""

SHOWN_CHARS = 300
"""Maximum number of characters of the program's error output to quote in error messages."""

OWN_PREFIX = "MATCHPOD_"
"""Prefix of the service's own environment variables. The program does not inherit them."""


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    expiration_timestamp: datetime | None = None
    client_certificate_data: str = ""
    client_key_data: str = ""


class _ExecCredential(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    status: _Status | None = None


class ExecCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """The output of the program: a token, or a client certificate with its key, and when they expire."""

    token: str | None
    certificate_pem: str | None
    key_pem: str | None
    expires_at: datetime | None

    def __repr__(self) -> str:
        """Omit the secrets."""
        return f"ExecCredentials(expires_at={self.expires_at!r})"


async def run_exec(plugin: ExecPlugin, *, timeout_s: float = EXEC_S) -> ExecCredentials:
    """Run the program and return the credentials that it prints. Raise ClusterConfigError or UnreachableError."""
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**_inherited(), **plugin.env, "KUBERNETES_EXEC_INFO": exec_info(plugin)},
            start_new_session=True,
        )
    except OSError as exc:
        hint = f" ({plugin.install_hint})" if plugin.install_hint else ""
        message = f"The credentials program {plugin.command} cannot be started: {exc.strerror}{hint}"
        raise ClusterConfigError(message) from exc
    try:
        async with asyncio.timeout(timeout_s):
            output, errors = await process.communicate()
    except TimeoutError as exc:
        raise UnreachableError(
            f"The credentials program {plugin.command} did not finish within {timeout_s:g} s"
        ) from exc
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode != 0:
        shown = " ".join(errors.decode("utf-8", errors="replace").split())[:SHOWN_CHARS]
        message = f"The credentials program {plugin.command} failed with status {process.returncode}: {shown}"
        raise UnreachableError(message)
    return read_credentials(output, plugin)


def _inherited() -> dict[str, str]:
    # The programs of cloud vendors need some of our variables, but not the service's own, which may be secret.
    return {name: value for name, value in os.environ.items() if not name.startswith(OWN_PREFIX)}


def exec_info(plugin: ExecPlugin) -> str:
    """Return the text for the KUBERNETES_EXEC_INFO variable, which describes the request to the program."""
    spec: Mapping[str, object] = {"interactive": False}
    if plugin.cluster_info is not None:
        spec = {**spec, "cluster": msgspec.Raw(plugin.cluster_info)}
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return msgspec.json.encode(info).decode()


def read_credentials(output: bytes, plugin: ExecPlugin) -> ExecCredentials:
    try:
        credential = msgspec.json.decode(output, type=_ExecCredential)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise ClusterConfigError(f"The credentials program {plugin.command} printed no ExecCredential") from exc
    if credential.kind != "ExecCredential" or credential.api_version != plugin.api_version:
        raise ClusterConfigError(
            f"The credentials program {plugin.command} printed {credential.api_version} {credential.kind}, "
            f"not {plugin.api_version} ExecCredential"
        )
    status = credential.status or _Status()
    has_certificate = bool(status.client_certificate_data)
    if has_certificate != bool(status.client_key_data) or not (status.token or has_certificate):
        raise ClusterConfigError(
            f"The credentials program {plugin.command} printed neither a token nor a certificate with its key"
        )
    expires_at = status.expiration_timestamp
    return ExecCredentials(
        token=status.token.strip() or None,
        certificate_pem=status.client_certificate_data or None,
        key_pem=status.client_key_data or None,
        # Times with and without a time zone cannot be compared.
        expires_at=expires_at.replace(tzinfo=expires_at.tzinfo or UTC) if expires_at else None,
    )
