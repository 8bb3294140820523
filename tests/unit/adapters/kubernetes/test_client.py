"""The client of Kubernetes costs nothing unless it is used, and its small parts."""

from __future__ import annotations

import subprocess
import sys


def test_fleet_is_imported_without_httpx_and_yaml() -> None:
    program = "import sys, matchpod.adapters.fleets.agones; print(sorted({'httpx', 'yaml'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
