"""Run a command, such as tests, with a real control plane and Agones, but without kubelet, containers and network.

etcd, kube-apiserver, the controller and the extensions of Agones, and the command run as processes in a new network
namespace that has only the loopback interface. Game servers must be development servers (annotation
`agones.dev/dev-address`), since nothing starts pods. For the command, MATCHPOD_TEST_KUBECONFIG is the path of a
kubeconfig with two contexts: `matchpod`, the current context, has the rights of the service; `set-up` has all rights.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

if __name__ == "__main__":
    # Make `scripts` importable from the checkout when this file is run as a script.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from scripts.agones_manifest import (
    ACCOUNT,
    SERVICE,
    SYSTEM,
    WEBHOOK_PORT,
    Object,
    account_objects,
    agones_objects,
    path_of,
)
from scripts.control_plane_files import HOST, NAMESPACE, Authority, write_admin_token, write_key, write_kubeconfig

PROGRAMS = ("etcd", "kube-apiserver", "agones-controller", "agones-extensions")
VARIABLE = "MATCHPOD_TEST_KUBECONFIG"
SET_UP = "set-up"
INSIDE = "MATCHPOD_INSIDE_NAMESPACE"
API_URL = f"https://{HOST}:6443"
ETCD_URL = f"http://{HOST}:2379"
PEER_URL = f"http://{HOST}:2380"
READY_S = 180.0
"""Timeout in seconds of each step of the start. It is long because the machine may be slow and busy."""


class ControlPlane:
    """The processes of the control plane, their files, and a client with all rights."""

    def __init__(self, programs: Path, folder: Path, stack: ExitStack) -> None:
        self._programs = programs
        self._folder = folder
        self._stack = stack
        self._processes: list[subprocess.Popen[bytes]] = []
        self._authority = Authority(folder)
        self._token = write_admin_token(folder / "tokens.csv")
        context = ssl.create_default_context(cafile=self._authority.certificate)
        headers = {"Authorization": f"Bearer {self._token}"}
        self.client = stack.enter_context(
            httpx.Client(base_url=API_URL, headers=headers, verify=context, trust_env=False, timeout=60)
        )

    def start_api(self) -> None:
        """Start etcd and the API of Kubernetes."""
        self._start(
            "etcd",
            *(f"--data-dir={self._folder}/etcd", f"--listen-client-urls={ETCD_URL}"),
            *(f"--advertise-client-urls={ETCD_URL}", f"--listen-peer-urls={PEER_URL}"),
            *(f"--initial-advertise-peer-urls={PEER_URL}", f"--initial-cluster=default={PEER_URL}"),
        )
        server, server_key = self._authority.issue("kube-apiserver", "kubernetes.default.svc")
        proxy, proxy_key = self._authority.issue("front-proxy-client")
        accounts = write_key(self._folder / "accounts.key")
        self._start(
            "kube-apiserver",
            *(f"--etcd-servers={ETCD_URL}", f"--bind-address={HOST}", "--secure-port=6443"),
            *(f"--tls-cert-file={server}", f"--tls-private-key-file={server_key}"),
            *("--authorization-mode=RBAC", f"--token-auth-file={self._folder}/tokens.csv"),
            *(f"--service-account-issuer={API_URL}", f"--service-account-key-file={accounts}"),
            *(f"--service-account-signing-key-file={accounts}", "--service-cluster-ip-range=10.96.0.0/16"),
            *(f"--proxy-client-cert-file={proxy}", f"--proxy-client-key-file={proxy_key}"),
            *(f"--requestheader-client-ca-file={self._authority.certificate}",),
            *("--requestheader-allowed-names=front-proxy-client", "--requestheader-username-headers=X-Remote-User"),
            *("--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-"),
            # An endpoint cannot be a loopback address. This address is a placeholder: no program uses the endpoint.
            *("--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none"),
        )
        self._until("kube-apiserver is ready", lambda: self.client.get("/readyz").status_code == httpx.codes.OK)

    def start_agones(self, manifest: Path, batch_wait: str) -> None:
        """Install Agones, and start its programs with the rights from its installation file."""
        for item in agones_objects(manifest, self._authority.certificate):
            self.create(item)
        token = self.account_token(SYSTEM, "agones-controller")
        # The extensions read their certificate from /certs, so they run with their own root folder.
        root = self._folder / "extensions"
        (root / "certs").mkdir(parents=True)
        certificate, key = self._authority.issue("agones", f"{SERVICE}.{SYSTEM}.svc")
        for source, name in ((certificate, "certs/server.crt"), (key, "certs/server.key")):
            shutil.copy(source, root / name)
        # Go programs read the path of their executable from this link.
        (root / "proc" / "self").mkdir(parents=True)
        (root / "proc" / "self" / "exe").symlink_to("/agones-extensions")
        kubeconfig = write_kubeconfig(root / "kubeconfig", API_URL, self._authority.certificate, {"agones": token})
        shutil.copy(self._programs / "agones-extensions", root)
        common = {"CLOUD_PRODUCT": "generic", "ALLOCATION_BATCH_WAIT_TIME": batch_wait, "POD_NAMESPACE": SYSTEM}
        ports = {"HTTP_PORT": "8090", "WEBHOOK_PORT": str(WEBHOOK_PORT), "POD_NAME": "agones-extensions"}
        environment = {**common, **ports, "KUBECONFIG": "/kubeconfig"}
        self._start("agones-extensions", environment=environment, root=root)
        environment = {**common, "KUBECONFIG": str(kubeconfig), "MIN_PORT": "7000", "MAX_PORT": "8000"}
        self._start("agones-controller", environment=environment)
        self._until("the allocation API is available", self._is_allocation_available)
        self._until(
            "the controller is ready", lambda: httpx.get(f"http://{HOST}:8080/live", trust_env=False).is_success
        )

    def create(self, item: Object) -> None:
        """Create an object. If it is rejected, exit with the reason."""
        response = self.client.post(path_of(item), json=item)
        if response.is_error:
            sys.exit(f"{item['kind']} {item['metadata']['name']} was rejected: {response.text}")

    def account_token(self, namespace: str, name: str) -> str:
        """Create a token for a service account, and return it."""
        response = self.client.post(
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            json={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        )
        response.raise_for_status()
        token: str = response.json()["status"]["token"]
        return token

    def write_kubeconfig(self) -> Path:
        """Write the kubeconfig for the command, and return its path."""
        for item in account_objects():
            self.create(item)
        tokens = {ACCOUNT: self.account_token(NAMESPACE, ACCOUNT), SET_UP: self._token}
        return write_kubeconfig(self._folder / "kubeconfig", API_URL, self._authority.certificate, tokens)

    def _is_allocation_available(self) -> bool:
        path = "/apis/apiregistration.k8s.io/v1/apiservices/v1.allocation.agones.dev"
        conditions = self.client.get(path).raise_for_status().json().get("status", {}).get("conditions", ())
        return any(condition["type"] == "Available" and condition["status"] == "True" for condition in conditions)

    def _start(
        self, name: str, *arguments: str, environment: Mapping[str, str] | None = None, root: Path | None = None
    ) -> None:
        command = [str(self._programs / name), *arguments]
        if root is not None:
            command = ["chroot", str(root), f"/{name}", *arguments]
        log = self._folder / f"{name}.log"
        self._processes.append(self._stack.enter_context(_running(command, log, environment or {})))

    def _until(self, what: str, is_true: Callable[[], bool]) -> None:
        started_s = time.monotonic()
        while time.monotonic() - started_s < READY_S and all(process.poll() is None for process in self._processes):
            try:
                if is_true():
                    print(f"{what}: {time.monotonic() - started_s:.1f} s", flush=True)
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.2)
        for log in sorted(self._folder.glob("*.log")):
            print(f"--- end of {log.name}", *log.read_text(errors="replace").splitlines()[-15:], sep="\n")
        sys.exit(f"waited {time.monotonic() - started_s:.0f} s until {what}")


@contextmanager
def _running(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env={"PATH": os.environ.get("PATH", ""), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def read_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line. If it is invalid, exit with a message."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example: python scripts/real_agones.py --programs bin --manifest install.yaml -- "
        "pytest -n0 tests/contract/test_agones_cluster.py",
    )
    parser.add_argument("--programs", type=Path, required=True, help=f"folder with the programs {', '.join(PROGRAMS)}")
    parser.add_argument(
        "--manifest", type=Path, required=True, help="install/yaml/install.yaml of the same version of Agones"
    )
    parser.add_argument("--batch-wait", default="20ms", help="how long Agones collects allocations (default 20ms)")
    parser.add_argument("--folder", type=Path, help="folder for files and logs, kept afterwards (default: a temporary)")
    parser.add_argument("command", nargs="+", help="the command, after --")
    parsed = parser.parse_args(arguments)
    missing = [name for name in PROGRAMS if not os.access(parsed.programs / name, os.X_OK)]
    if missing:
        parser.error(f"{parsed.programs} lacks the programs {', '.join(missing)}; agones-extensions must be static")
    if not parsed.manifest.is_file():
        parser.error(f"there is no file {parsed.manifest}")
    return parsed


def main() -> int:
    """In a new namespace, start everything, run the command, and stop everything; return the command's exit code."""
    arguments = read_arguments(sys.argv[1:])
    if INSIDE not in os.environ:
        unshare = ["unshare", "--map-root-user", "--net", sys.executable, *sys.argv]
        os.execvpe(unshare[0], unshare, {**os.environ, INSIDE: "1"})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # exit normally, to stop all processes
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with ExitStack() as stack:
        folder = arguments.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        plane = ControlPlane(arguments.programs.resolve(), folder, stack)
        plane.start_api()
        plane.start_agones(arguments.manifest, arguments.batch_wait)
        environment = {**os.environ, VARIABLE: str(plane.write_kubeconfig())}
        return subprocess.run(arguments.command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
