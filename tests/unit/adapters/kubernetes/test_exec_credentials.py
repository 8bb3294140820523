"""Programs that print credentials are run as kubectl runs them, and their faults are reported."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime

import pytest

from matchpod.adapters.kubernetes.api_errors import ClusterConfigError, KubernetesError, UnreachableError
from matchpod.adapters.kubernetes.cluster import ExecPlugin
from matchpod.adapters.kubernetes.exec_credentials import exec_info, read_credentials, run_exec

VERSION = "client.authentication.k8s.io/v1beta1"


def plugin(script: str = "", **changes: object) -> ExecPlugin:
    values: dict[str, object] = {"command": sys.executable, "args": ("-c", script), "api_version": VERSION, **changes}
    return ExecPlugin(**values)  # type: ignore[arg-type]


def printed(status: object, **changes: object) -> bytes:
    return json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": status, **changes}).encode()


async def test_program_gets_the_request_and_its_environment_without_secrets_of_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MATCHPOD_SECRET", "hidden")
    monkeypatch.setenv("CLOUD_PROFILE", "cloud ")
    script = (
        "import json, os; info = json.loads(os.environ['KUBERNETES_EXEC_INFO']); "
        "found = [os.environ.get(name, '') for name in ('MATCHPOD_SECRET', 'CLOUD_PROFILE', 'PROFILE')]; "
        "print(json.dumps({**info, 'status': {'token': ''.join(found) + str(info['spec'])}}))"
    )
    cluster_info = b'{"server":"https://eu.example"}'
    credentials = await run_exec(plugin(script, env={"PROFILE": "eu"}, cluster_info=cluster_info))
    assert credentials.token == "cloud eu{'interactive': False, 'cluster': {'server': 'https://eu.example'}}"


def test_request_names_the_version() -> None:
    assert json.loads(exec_info(plugin())) == {
        "apiVersion": VERSION,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }


def test_token_certificate_and_expiry_are_read() -> None:
    status = {
        "token": "t",
        "clientCertificateData": "CERT",
        "clientKeyData": "KEY",
        "expirationTimestamp": "2026-11-15T12:00:00Z",
    }
    credentials = read_credentials(printed(status), plugin())
    assert (credentials.token, credentials.certificate_pem, credentials.key_pem) == ("t", "CERT", "KEY")
    assert credentials.expires_at == datetime(2026, 11, 15, 12, tzinfo=UTC)
    assert "KEY" not in repr(credentials)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (b"", "printed no ExecCredential"),
        (b"logged in", "printed no ExecCredential"),
        (printed({"token": "t"}, apiVersion="client.authentication.k8s.io/v1"), "k8s.io/v1 ExecCredential, not"),
        (printed({}), "printed neither a token nor a certificate with its key"),
        (printed(None), "printed neither a token nor a certificate with its key"),
        (printed({"clientCertificateData": "CERT"}), "printed neither a token nor a certificate with its key"),
    ],
)
def test_unusable_output_is_reported(output: bytes, message: str) -> None:
    with pytest.raises(ClusterConfigError, match=message):
        read_credentials(output, plugin())


@pytest.mark.parametrize(
    ("failing", "kind", "message"),
    [
        (plugin("raise SystemExit('please log in')"), UnreachableError, "failed with status 1: please log in"),
        (plugin(command="/no/such/login", install_hint="install it"), ClusterConfigError, r"No such file .*install it"),
        (plugin("import time; time.sleep(600)"), UnreachableError, "did not finish within 1 s"),
    ],
)
async def test_failing_program_is_reported(failing: ExecPlugin, kind: type[KubernetesError], message: str) -> None:
    with pytest.raises(kind, match=message):
        await run_exec(failing, timeout_s=1.0 if "600" in failing.args[-1] else 60.0)
