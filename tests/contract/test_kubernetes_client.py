"""The client of Kubernetes over real HTTP and TLS: who is trusted, who we are, and what answers mean."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import json
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from matchpod.adapters.kubernetes.api_errors import (
    ApiError,
    ApiGoneError,
    ApiNotFoundError,
    ApiUnauthorizedError,
    ClusterConfigError,
    ConflictError,
    MalformedAnswerError,
    UnreachableError,
)
from matchpod.adapters.kubernetes.client import KubernetesClient
from matchpod.adapters.kubernetes.cluster import ACCOUNT_FOLDER, ClusterSource
from matchpod.adapters.kubernetes.kubeconfig import read_kubeconfig
from matchpod.adapters.kubernetes.objects import ApiRequest
from matchpod.adapters.kubernetes.transport import HttpTransport
from matchpod.service.runner.machine_faults import is_machine_fault
from tests.contract.agones_api import FLEET, FakeAgones, Fault
from tests.contract.agones_cluster import AgonesCluster, agones_cluster
from tests.contract.agones_game_servers import GameServers
from tests.contract.agones_http import serve
from tests.contract.simulator_process import free_ports
from tests.open_files import no_more_files
from tests.waiting import until

LABELS = {"agones.dev/fleet": FLEET}
NOWHERE = "https://127.0.0.1:9"


class Authority:
    """A certificate authority that writes its files into a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.file = folder / f"{name}.crt"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, host: str = "127.0.0.1") -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        address: x509.GeneralName
        try:
            address = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            address = x509.DNSName(host)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._signed(subject, key, x509.SubjectAlternativeName([address]))
        files = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        files[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return files

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=subject,
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=now - timedelta(days=1),
            not_valid_after=now + timedelta(days=1),
        )
        return builder.add_extension(extension, critical=False).sign(self._key, hashes.SHA256())


@asynccontextmanager
async def tls_api(
    folder: Path, host: str = "127.0.0.1", *, wants_certificate: bool = False
) -> AsyncIterator[tuple[FakeAgones, str, Authority]]:
    """Serve the fake over TLS with a certificate for a host, signed by an authority of its own."""
    authority = Authority(folder, "authority")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server", host))
    if wants_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.file)
    api = FakeAgones(GameServers())
    async with serve(api, context) as url:
        yield api, url, authority


def kubeconfig(folder: Path, url: str, cluster: object = None, user: object = None) -> Path:
    assert cluster is None or isinstance(cluster, dict)
    path = folder / "kubeconfig"
    content = {
        "current-context": "test",
        "clusters": [{"name": "c", "cluster": {"server": url, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_bytes(msgspec.yaml.encode(content))
    return path


@asynccontextmanager
async def connected(path: Path | None, account_folder: Path = ACCOUNT_FOLDER) -> AsyncIterator[KubernetesClient]:
    source = ClusterSource(kubeconfig=path, account_folder=account_folder)
    client = KubernetesClient(source, call_s=10.0)
    try:
        yield client
    finally:
        await client.close()


def encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


# --- TLS ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "trusts", "error"),
    [
        ("127.0.0.1", lambda own, _: {"certificate-authority": own.file.name}, None),
        ("127.0.0.1", lambda own, _: {"certificate-authority-data": encoded(own.file)}, None),
        ("127.0.0.1", lambda _, other: {"certificate-authority": str(other.file)}, "certificate verify failed"),
        ("127.0.0.1", lambda _, __: {}, "certificate verify failed"),
        ("127.0.0.1", lambda _, __: {"insecure-skip-tls-verify": True}, None),
        ("api.example", lambda own, _: {"certificate-authority": str(own.file)}, "IP address mismatch"),
        (
            "api.example",
            lambda own, _: {"certificate-authority": str(own.file), "tls-server-name": "api.example"},
            None,
        ),
    ],
    ids=["file", "inline", "another authority", "public authorities", "skipped", "another name", "given name"],
)
async def test_server_is_trusted_if_its_certificate_is(
    tmp_path: Path, host: str, trusts: Callable[[Authority, Authority], dict[str, object]], error: str | None
) -> None:
    async with tls_api(tmp_path, host) as (api, url, authority):
        trusted = trusts(authority, Authority(tmp_path, "other"))
        async with connected(kubeconfig(tmp_path, url, trusted, {"token": "hidden"})) as client:
            if error is None:
                assert (await client.fleet(FLEET)).metadata.name == FLEET
                return
            with pytest.raises(UnreachableError, match=error):
                await client.fleet(FLEET)
        assert api.calls == []


async def test_replaced_certificate_authority_is_read_again(tmp_path: Path) -> None:
    async with tls_api(tmp_path) as (_, url, authority):
        current = authority.file.read_bytes()
        authority.file.write_bytes(Authority(tmp_path, "other").file.read_bytes())
        trusted = {"certificate-authority": str(authority.file)}
        async with connected(kubeconfig(tmp_path, url, trusted)) as client:
            with pytest.raises(UnreachableError):
                await client.fleet(FLEET)
            authority.file.write_bytes(current)
            await client.fleet(FLEET)


@pytest.mark.parametrize("kind", ["file", "inline", "exec", "none"])
async def test_client_certificate_is_shown(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))  # as in a container with a read-only root
    async with tls_api(tmp_path, wants_certificate=True) as (_, url, authority):
        certificate, key = authority.issue("client")
        status = {"clientCertificateData": certificate.read_text(), "clientKeyData": key.read_text()}
        version = "client.authentication.k8s.io/v1"
        printed = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
        users: dict[str, object] = {
            "file": {"client-certificate": str(certificate), "client-key": str(key)},
            "inline": {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)},
            "exec": {"exec": {"apiVersion": version, "command": sys.executable, "args": ["-c", f"print({printed!r})"]}},
            "none": {},
        }
        trusted = {"certificate-authority": str(authority.file)}
        async with connected(kubeconfig(tmp_path, url, trusted, users[kind])) as client:
            if kind != "none":
                await client.fleet(FLEET)
            else:
                with pytest.raises(UnreachableError):
                    await client.fleet(FLEET)


@pytest.mark.parametrize(
    ("url", "cluster", "user", "message"),
    [
        (
            NOWHERE,
            {"certificate-authority": "absent.crt"},
            {},
            r"The certificate authority .*/absent\.crt cannot be read",
        ),
        (
            NOWHERE,
            {"certificate-authority": "kubeconfig"},
            {},
            "The certificate authority of .* is not a PEM certificate",
        ),
        (NOWHERE, {"proxy-url": "ftp://x"}, {}, "The proxy-url of .* is not a URL of a proxy"),
        ("https://[::", {}, {}, "is not a valid URL of a cluster"),
        ("https://a:b", {}, {}, "is not a valid URL of a cluster"),
        (NOWHERE, {}, {"token": "hid\nden"}, "^The token contains characters that cannot be sent$"),
        (NOWHERE, {}, {"client-certificate": "client.crt", "client-key": "other.key"}, "cannot be used together"),
        (NOWHERE, {}, {"client-certificate": "client.crt", "client-key": "no"}, "The client key .* cannot be read"),
    ],
)
async def test_unusable_connection_is_reported(
    tmp_path: Path, url: str, cluster: dict[str, str], user: dict[str, str], message: str
) -> None:
    for name in ("client", "other"):
        Authority(tmp_path, f"authority of {name}").issue(name)
    async with connected(kubeconfig(tmp_path, url, cluster, user)) as client:
        with pytest.raises(ClusterConfigError, match=message):
            await client.fleet(FLEET)


async def test_cluster_that_refuses_connections_is_reported(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    async with connected(kubeconfig(tmp_path, f"https://127.0.0.1:{port}")) as client:
        with pytest.raises(UnreachableError, match=f"https://127.0.0.1:{port} cannot be reached: Connection refused"):
            await client.fleet(FLEET)


async def test_cluster_without_open_files_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    async with connected(kubeconfig(tmp_path, "http://127.0.0.1:9")) as client:
        with pytest.raises(UnreachableError):
            await client.fleet(FLEET)
        with no_more_files(), pytest.raises(UnreachableError, match="Too many open files") as failed:
            await client.fleet(FLEET)
    assert is_machine_fault(failed.value)


async def test_connections_of_an_old_certificate_are_closed(tmp_path: Path) -> None:
    async with tls_api(tmp_path) as (_, url, _):
        path = kubeconfig(tmp_path, url, {"certificate-authority": str(Authority(tmp_path, "other").file)})
        transport = HttpTransport(read_kubeconfig(path))
        for _ in range(3):
            with pytest.raises(UnreachableError):
                await transport.send(ApiRequest(method="GET", path="/", timeout_s=10))
        assert transport._pools == set()
        await transport.close()


# --- tokens ---------------------------------------------------------------------------------------------------------


async def test_pod_uses_its_service_account_and_reads_a_new_token_when_the_old_one_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with tls_api(tmp_path) as (api, url, authority):
        host, port = url.removeprefix("https://").split(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        account = tmp_path / "account"
        account.mkdir()
        (account / "ca.crt").write_bytes(authority.file.read_bytes())
        (account / "namespace").write_text("default")
        (account / "token").write_text("first")
        api.tokens = {"first"}
        async with connected(None, account_folder=account) as client:
            await client.fleet(FLEET)
            assert await client.namespace() == "default"
            (account / "token").write_text("second")
            api.tokens = {"second"}
            await client.fleet(FLEET)
            assert [call.headers["authorization"] for call in api.calls] == [
                "Bearer first",
                "Bearer first",
                "Bearer second",
            ]
            api.tokens = set()
            with pytest.raises(ApiUnauthorizedError):
                await client.fleet(FLEET)


async def test_settings_that_could_not_be_used_are_read_again(tmp_path: Path) -> None:
    api = FakeAgones(GameServers())
    async with serve(api) as url, connected(tmp_path / "kubeconfig") as client:
        with pytest.raises(ClusterConfigError):
            await client.fleet(FLEET)
        kubeconfig(tmp_path, url)
        await client.fleet(FLEET)


# --- calls ----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[AgonesCluster]:
    """A cluster without servers, which take longest to start."""
    async with agones_cluster(tmp_path, replicas=0) as created:
        yield created


@pytest.fixture
async def client(cluster: AgonesCluster) -> AsyncIterator[KubernetesClient]:
    created = cluster.client()
    yield created
    await created.close()


async def test_server_is_read_and_deleted(cluster: AgonesCluster, client: KubernetesClient) -> None:
    await cluster.api.scale(1)
    name = cluster.api.names("Ready")[0]
    server = await client.server(name)
    assert server.status.state == "Ready"
    assert name in [one.metadata.name for one in (await client.servers(LABELS)).items or ()]
    with pytest.raises(ConflictError):
        await client.delete_server(name, uid="another")
    await client.delete_server(name, uid=server.metadata.uid)
    await client.delete_server(name, uid=server.metadata.uid)  # is being deleted
    await until(lambda: name not in cluster.api.objects)
    with pytest.raises(ApiNotFoundError):
        await client.delete_server(name, uid=server.metadata.uid)
    with pytest.raises(ApiNotFoundError):
        await client.server(name)


async def test_names_cannot_leave_their_path(cluster: AgonesCluster, client: KubernetesClient) -> None:
    with pytest.raises(ApiNotFoundError):
        await client.server("x/../../fleets/cs2-eu?watch=1")
    assert cluster.api.calls[-1].kind == "gameservers"
    assert cluster.api.calls[-1].query == {}


async def test_lists_and_answers_are_read_and_what_is_no_object_is_reported(
    cluster: AgonesCluster, client: KubernetesClient
) -> None:
    assert (await client.servers({"tier": "none"})).items == ()  # may be null
    assert [fleet.metadata.name for fleet in (await client.fleets()).items or ()] == [FLEET]
    assert cluster.api.calls[-1].headers["user-agent"] == f"matchpod/{version('matchpod')}"
    cluster.api.faults["get fleets"] = [Fault.GARBAGE]
    with pytest.raises(MalformedAnswerError):
        await client.fleet(FLEET)


async def test_call_without_an_answer_ends_after_its_time(cluster: AgonesCluster) -> None:
    client = KubernetesClient(ClusterSource(kubeconfig=cluster.kubeconfig), call_s=0.3)
    cluster.api.outage = Fault.HANG
    with pytest.raises(UnreachableError, match=r"did not answer within 0\.3 s"):
        await client.fleet(FLEET)
    await client.close()


# --- pages, a busy server, who we are ------------------------------------------------------------------------------


def pages(cluster: AgonesCluster) -> list[bool]:
    """Return for each page of lists that was read whether it was a later one."""
    return ["continue" in call.query for call in cluster.api.calls if call.right == "list gameservers"]


async def test_list_is_read_in_pages_of_one_version(cluster: AgonesCluster) -> None:
    await cluster.api.scale(5)
    client = KubernetesClient(ClusterSource(kubeconfig=cluster.kubeconfig), page_size=2)
    listed = await client.servers(LABELS)
    assert [one.metadata.name for one in listed.items or ()] == cluster.api.names("Ready")
    assert pages(cluster) == [False, True, True]
    assert listed.metadata.resource_version == await client.version(LABELS)
    assert {call.query.get("labelSelector") for call in cluster.api.calls} == {f"agones.dev/fleet={FLEET}"}
    await client.close()


@pytest.mark.parametrize("expired", [1, 2, 3])
async def test_list_whose_pages_expire_is_begun_anew_and_in_the_end_read_at_once(
    cluster: AgonesCluster, expired: int
) -> None:
    await cluster.api.scale(3)
    cluster.api.faults["list gameservers"] = [Fault.EXPIRED_PAGE] * expired
    client = KubernetesClient(ClusterSource(kubeconfig=cluster.kubeconfig), page_size=2)
    listed = await client.servers(LABELS)
    assert [one.metadata.name for one in listed.items or ()] == cluster.api.names("Ready")
    assert pages(cluster) == [False, True] * expired + ([False, True] if expired < 3 else [False])
    assert ("limit" in cluster.api.calls[-1].query) == (expired < 3)
    await client.close()


@pytest.mark.parametrize("fault", [Fault.BUSY_429, Fault.BUSY_503], ids=lambda fault: fault.name)
async def test_busy_server_gets_no_request_before_the_time_it_asks_for(
    cluster: AgonesCluster, client: KubernetesClient, fault: Fault
) -> None:
    loop, right = asyncio.get_running_loop(), "create gameserverallocations"
    cluster.api.faults[right] = [fault]
    with pytest.raises(ApiError) as failed:
        await client.allocate(selector=LABELS, without="used", labels={})
    assert failed.value.retry_after_s == 1.0
    began_s = loop.time()
    await asyncio.gather(client.fleets(), client.servers(LABELS), client.fleet(FLEET))
    assert loop.time() - began_s >= 0.9
    assert cluster.api.count_calls(right) == 1  # it may have had an effect: only those who look for it repeat it


async def test_call_that_only_reads_is_repeated_when_a_busy_server_is_ready(
    cluster: AgonesCluster, client: KubernetesClient
) -> None:
    cluster.api.faults["get fleets"] = [Fault.BUSY_429]
    assert (await client.fleet(FLEET)).metadata.name == FLEET
    assert cluster.api.count_calls("get fleets") == 2


async def test_long_wait_that_a_busy_server_asks_for_fails_without_further_requests(
    cluster: AgonesCluster, client: KubernetesClient
) -> None:
    cluster.api.retry_after = "30"
    cluster.api.faults["get fleets"] = [Fault.BUSY_503]
    for _ in range(3):
        with pytest.raises(ApiError, match="not ready to handle the request yet"):
            await client.fleet(FLEET)
    assert (len(cluster.api.calls), cluster.api.readiness_probes) == (1, 1)


async def test_server_that_was_only_starting_gets_requests_when_it_is_ready(
    cluster: AgonesCluster, client: KubernetesClient
) -> None:
    cluster.api.retry_after = "60"
    cluster.api.is_ready, cluster.api.outage = False, Fault.BUSY_503
    for _ in range(2):
        with pytest.raises(ApiError):
            await client.fleet(FLEET)
    cluster.api.is_ready, cluster.api.outage = True, None
    async with asyncio.timeout(30):
        while True:
            try:
                await client.fleet(FLEET)
                break
            except ApiError:
                await asyncio.sleep(0.1)
    assert cluster.api.count_calls("get fleets") == 2


async def watched_kinds(client: KubernetesClient, since: str) -> list[str]:
    async with client.watch_servers(LABELS, since) as events:
        return [event.type async for event in events]


async def test_watch_from_an_old_version_is_gone(cluster: AgonesCluster, client: KubernetesClient) -> None:
    cluster.api.expire_versions()
    for is_event in (False, True):
        cluster.api.is_gone_an_event = is_event
        with pytest.raises(ApiGoneError):
            await watched_kinds(client, "1")


async def test_watch_sees_changes_and_bookmarks_and_ends(cluster: AgonesCluster, client: KubernetesClient) -> None:
    await cluster.api.scale(1)
    listed = await client.servers(LABELS)
    cluster.api.delete(cluster.api.names("Ready")[0])
    kinds = await watched_kinds(client, listed.metadata.resource_version)
    assert [kind for kind in kinds if kind != "BOOKMARK"] == ["MODIFIED", "DELETED", "ADDED", "MODIFIED"]
    assert "BOOKMARK" in kinds
