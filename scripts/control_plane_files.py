"""Write the files that a Kubernetes control plane on this machine needs: certificates, keys, tokens and kubeconfigs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
NAMESPACE = "default"
"""Kubernetes namespace of the game servers."""

_VALID = timedelta(days=1)


class Authority:
    """A certificate authority. It writes its files into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("authority")
        self.certificate = self._write("authority", self._key, x509.BasicConstraints(ca=True, path_length=None))
        """The file with its own certificate."""

    def issue(self, name: str, *hosts: str) -> tuple[Path, Path]:
        """Issue a certificate for the loopback address and the names `hosts`.

        Return the files of the certificate and its key.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.IPAddress(IPv4Address(HOST)), *(x509.DNSName(host) for host in hosts)]
        return self._write(name, key, x509.SubjectAlternativeName(names)), write_key(self._folder / f"{name}.key", key)

    def _write(self, name: str, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType) -> Path:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=_name(name),
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=now - _VALID,
            not_valid_after=now + _VALID,
        )
        signed = builder.add_extension(extension, critical=True).sign(self._key, hashes.SHA256())
        path = self._folder / f"{name}.crt"
        path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        return path


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def write_key(path: Path, key: ec.EllipticCurvePrivateKey | None = None) -> Path:
    """Write a private key to a file. Create a new key if none is passed."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    path.touch(mode=0o600)
    # kube-apiserver reads the keys of service accounts in this format only.
    pem = serialization.PrivateFormat.TraditionalOpenSSL
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, pem, serialization.NoEncryption()))
    return path


def write_admin_token(path: Path) -> str:
    """Write the API's token file, which contains only a new token of an administrator; return this token."""
    token = secrets.token_urlsafe(32)
    path.touch(mode=0o600)
    path.write_text(f'{token},admin,admin,"system:masters"\n')
    return token


def write_kubeconfig(path: Path, url: str, authority: Path, tokens: Mapping[str, str]) -> Path:
    """Write a kubeconfig with one context per token. The first context is the current context."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": next(iter(tokens)),
        "clusters": [
            {"name": "local", "cluster": {"server": url, "certificate-authority-data": _base64(authority.read_bytes())}}
        ],
        "users": [{"name": name, "user": {"token": token}} for name, token in tokens.items()],
        "contexts": [
            {"name": name, "context": {"cluster": "local", "user": name, "namespace": NAMESPACE}} for name in tokens
        ],
    }
    path.touch(mode=0o600)
    path.write_bytes(msgspec.yaml.encode(content))
    return path


def _base64(content: bytes) -> str:
    return msgspec.json.encode(content).decode().strip('"')
