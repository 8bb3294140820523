"""Check that all dependencies of the service have accepted licences.

The dependencies are those in uv.lock for this platform, without development dependencies. Their licences are read from
their metadata. If a dependency has another licence, a person must decide whether to accept it and add it here.
"""

from __future__ import annotations

import re
import subprocess
import sys
from email.message import Message
from importlib import metadata
from typing import cast

ACCEPTED = frozenset(
    {"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0", "BSD License"}
    | {"MIT License", "ISC License (ISCL)", "Mozilla Public License 2.0 (MPL 2.0)", "Apache Software License"}
)
"""Accepted licences: SPDX names, and the names in classifiers, which older packages have instead."""
EXPORT = (
    ".venv/bin/uv",
    "export",
    "--quiet",
    "--locked",
    "--no-dev",
    "--all-extras",
    "--no-emit-workspace",
    "--no-hashes",
)


def licences(package: Message) -> list[str]:
    """Return the licences of a package from its metadata. Of alternative licences, prefer an accepted one."""
    if expression := package.get("License-Expression"):
        groups = [group.strip(" ()").split(" OR ") for group in expression.split(" AND ")]
        return [next((licence for licence in group if licence in ACCEPTED), group[0]) for group in groups]
    prefix = "License :: "
    found = [text.split(" :: ")[-1] for text in package.get_all("Classifier", []) if text.startswith(prefix)]
    return found or [package.get("License") or "no licence"]


def find_faults(packages: dict[str, Message]) -> list[str]:
    """Return a line for each package that has a licence which is not accepted."""
    found = ((name, licence) for name, package in packages.items() for licence in licences(package))
    return [f"{name}: {licence}" for name, licence in found if licence not in ACCEPTED]


def main() -> int:
    """Check the installed packages, and print the result."""
    exported = subprocess.run(EXPORT, capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^([\w.-]+)==[^;\n]*(?:;(.*))?$", exported, re.MULTILINE)
    # A package that is not installed is only needed on another platform.
    installed = {package.name.lower().replace("_", "-") for package in metadata.distributions()}
    packages = {
        name: cast("Message", metadata.metadata(name))
        for name, condition in names
        if not condition or name in installed
    }
    faults = find_faults(packages)
    print("\n".join(faults) or f"the licences of {len(packages)} packages are accepted")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
