"""Tools for the tests of `deploy`; a test is skipped if one cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import deploy_tools


def find_tool(name: str) -> list[str]:
    try:
        return deploy_tools.find_tool(name)
    except deploy_tools.ToolMissingError as exc:
        pytest.skip(str(exc))


def find_wheel(requirement: str) -> Path:
    try:
        return deploy_tools.find_wheel(requirement)
    except deploy_tools.ToolMissingError as exc:
        pytest.skip(str(exc))
