"""Build the TLS settings for a cluster: how its certificate is verified, and our client certificate."""

from __future__ import annotations

import os
import ssl

from matchpod.adapters.kubernetes.api_errors import ClusterConfigError
from matchpod.adapters.kubernetes.cluster import Cluster, PemSource
from matchpod.adapters.kubernetes.credentials import Login


def tls_context(cluster: Cluster, login: Login) -> ssl.SSLContext:
    """Return the TLS settings for requests; raise ClusterConfigError if a certificate or key cannot be used."""
    context = ssl.create_default_context()
    if cluster.skips_verification:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif cluster.authority is not None:
        # Only the configured authority is trusted, not the authorities of the system.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(cadata=_text(cluster.authority, "certificate authority"))
        except ssl.SSLError as exc:
            raise ClusterConfigError(f"The certificate authority of {cluster.server} is not a PEM certificate") from exc
    if login.certificate is not None and login.key is not None:
        _load_pair(context, login.certificate, login.key)
    return context


def _load_pair(context: ssl.SSLContext, certificate: PemSource, key: PemSource) -> None:
    pair = _text(certificate, "client certificate") + "\n" + _text(key, "client key")
    # `ssl` loads client certificates from files only. A file in memory works on read-only disks, and hides the key.
    with open(os.memfd_create("client-certificate"), "wb") as file:
        file.write(pair.encode())
        file.flush()
        try:
            # An empty password makes an encrypted key fail, instead of prompting for the password on the terminal.
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password="")
        except ssl.SSLError as exc:
            raise ClusterConfigError("The client certificate and its key cannot be used together") from exc


def _text(source: PemSource, what: str) -> str:
    if source.file is None:
        return source.text or ""
    try:
        return source.file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not a PEM text"
        raise ClusterConfigError(f"The {what} {source.file} cannot be read: {reason}") from exc
