"""Build the images of the service, a simulated game server and a CS2 server with docker, podman or buildah.

Run it as `make image`. Version and revision are read from the checkout. The URL of another package registry is passed
as a secret, so that no layer contains it. With --debian, mmdebstrap builds the base image, for machines that can reach
a Debian mirror but no image registry.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMAGES: Mapping[str, Path] = {
    "matchpod": ROOT / "deploy/image/Dockerfile",
    "matchpod-simulated-server": ROOT / "deploy/image/simulated-server.Dockerfile",
    "matchpod-cs2": ROOT / "deploy/image/cs2.Dockerfile",
}
ENGINES = ("docker", "podman", "buildah")
DEBIAN = "bookworm"
SNIPER = "bullseye"
"""The Debian release that is used in place of Steam Linux Runtime 3, which is derived from it."""
DEBIAN_BASE = "localhost/matchpod-base"
DEBIAN_PACKAGES = "python3,python3-venv,ca-certificates"


def engine_command(name: str, storage: Path | None = None) -> list[str]:
    """Return the command of an engine, with its global options.

    `storage` is the folder where podman or buildah stores images; docker ignores it.
    """
    if storage is None or name == "docker":
        return [name]
    return [name, "--root", str(storage / "images"), "--runroot", str(storage / "run"), "--storage-driver", "vfs"]


def build_command(arguments: argparse.Namespace, engine: Sequence[str], name: str) -> list[str]:
    """Return the command that builds an image."""
    labels = {"VERSION": version(), "REVISION": revision()} | ({"BASE": arguments.base} if arguments.base else {})
    files = {"pip": arguments.pip_config, "uv": arguments.uv_config}
    # Of the engines, only buildah works without a container runtime and without its own namespaces.
    options = ["--isolation", "chroot"] if engine[0] == "buildah" else []
    # Other image formats have no health check.
    options += ["--format", "docker"] if engine[0] != "docker" else []
    if arguments.certificates:
        options += ["--volume", f"{arguments.certificates}:/etc/ssl/certs:ro"]
    return [
        *(*engine, "build", "--file", str(IMAGES[name]), "--tag", f"{arguments.prefix}{name}:{arguments.tag}"),
        *options,
        *(word for key, value in labels.items() for word in ("--build-arg", f"{key}={value}")),
        *(word for key, file in files.items() if file for word in ("--secret", f"id={key},src={file}")),
        str(ROOT),
    ]


def debian_release(name: str) -> str:
    """Return the Debian release on which an image is built if --debian is used."""
    return SNIPER if name == "matchpod-cs2" else DEBIAN


def build_debian_base(engine: Sequence[str], release: str) -> str:
    """Build a Debian root file system with Python, import it as an image, and return the image's name."""
    base = f"{DEBIAN_BASE}:{release}"
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "base.tar"
        run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={DEBIAN_PACKAGES}", release, str(archive)])
        (Path(folder) / "Dockerfile").write_text("FROM scratch\nADD base.tar /\n")
        run(
            [
                *engine,
                "build",
                *(("--isolation", "chroot") if engine[0] == "buildah" else ()),
                "-t",
                base,
                folder,
            ]
        )
    return base


def version() -> str:
    """Return the version of the service."""
    project: str = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    return project


def revision() -> str:
    """Return the commit of the checkout, with a mark if files have changed; `unknown` outside of a git checkout."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def run(command: Sequence[str]) -> None:
    """Run a command. If it fails, exit with a message that refers to the last lines of the command's output."""
    print("+", " ".join(command), flush=True)
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit(f"{command[0]} failed; its last lines say why.")


def read_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line. If it is invalid, exit with a message."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="IMAGE", help=f"{', '.join(IMAGES)} (default: all)")
    parser.add_argument(
        "--engine", choices=ENGINES, help="the program that builds (default: the first that is installed)"
    )
    parser.add_argument(
        "--prefix", default="", help="registry and folder before the name, like registry.example.com/cs/"
    )
    parser.add_argument("--tag", default=version(), help="tag (default: the version)")
    base = parser.add_mutually_exclusive_group()
    base.add_argument(
        "--base", help="base image with Python 3.11 or newer, 3.9 for matchpod-cs2 (default: the one in the Dockerfile)"
    )
    base.add_argument("--debian", action="store_true", help="make the base with mmdebstrap (needs root)")
    parser.add_argument("--pip-config", type=Path, help="a pip.conf with another package registry, for the build only")
    parser.add_argument("--uv-config", type=Path, help="a uv.toml with another package registry, for the build only")
    parser.add_argument("--certificates", type=Path, help="folder with certificates to trust, for the build only")
    parser.add_argument("--storage", type=Path, help="folder for the images of podman and buildah (default: theirs)")
    parsed = parser.parse_args(words)
    if unknown := [name for name in parsed.names if name not in IMAGES]:
        parser.error(f"there is no image {unknown[0]}; images: {', '.join(IMAGES)}")
    if missing := [file for file in (parsed.pip_config, parsed.uv_config) if file and not file.is_file()]:
        parser.error(f"there is no file {missing[0]}")
    parsed.engine = parsed.engine or next(filter(shutil.which, ENGINES), None)
    if parsed.engine is None:
        parser.error(f"none of {', '.join(ENGINES)} is installed")
    if not shutil.which(parsed.engine):
        parser.error(f"{parsed.engine} is not installed")
    if parsed.certificates and parsed.engine == "docker":
        parser.error("docker cannot mount --certificates while it builds; put them into the base image")
    if parsed.debian and not shutil.which("mmdebstrap"):
        parser.error("--debian needs mmdebstrap, which is not installed")
    return parsed


def main(words: Sequence[str]) -> int:
    """Build the images that are named on the command line."""
    arguments = read_arguments(words)
    engine = engine_command(arguments.engine, arguments.storage)
    bases: dict[str, str] = {}
    for name in arguments.names or IMAGES:
        release = debian_release(name)
        if arguments.debian and release not in bases:
            bases[release] = build_debian_base(engine, release)
        arguments.base = bases.get(release, arguments.base)
        run(build_command(arguments, engine, name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
