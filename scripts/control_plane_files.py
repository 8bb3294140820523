"""Write what a control plane on this machine needs: certificates, keys, tokens and kubeconfigs."""

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
"""The namespace of the game servers."""

_VALID = timedelta(days=1)


class Authority:
    """A certificate authority that writes its files into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("authority")
        self.certificate = self._write("authority", self._key, x509.BasicConstraints(ca=True, path_length=None))
        """The file with its own certificate."""

    def issue(self, name: str, *hosts: str) -> tuple[Path, Path]:
        """Issue a certificate for the loopback address and more names; return its file and that of its key."""
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
    """Write a private key, a new one by default."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    path.touch(mode=0o600)
    # kube-apiserver reads keys of accounts in this format only.
    pem = serialization.PrivateFormat.TraditionalOpenSSL
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, pem, serialization.NoEncryption()))
    return path


def write_admin_token(path: Path) -> str:
    """Write the token file of the API, with a single token, that of an administrator; return the token."""
    token = secrets.token_urlsafe(32)
    path.touch(mode=0o600)
    path.write_text(f'{token},admin,admin,"system:masters"\n')
    return token


def write_kubeconfig(path: Path, url: str, authority: Path, tokens: Mapping[str, str]) -> Path:
    """Write a kubeconfig with a context per token; the first one is the current context."""
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
