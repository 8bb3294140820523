"""A data folder with a database for each test of a command."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from matchpod.cli import organizations
from tests.unit.cli.command_runner import CommandRunner, unchanged_logging


@pytest.fixture(scope="session")
def migrated_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with an empty database, migrated once and then copied: that takes longer than most tests."""
    folder = tmp_path_factory.mktemp("migrated")
    with unchanged_logging():
        CommandRunner(folder).migrate()
    return folder


@pytest.fixture
def acme(runner: CommandRunner) -> CommandRunner:
    """A command runner with the organization `acme`."""
    runner.output(organizations.app, "create", "acme")
    return runner


@pytest.fixture
def runner(tmp_path: Path, migrated_folder: Path) -> Iterator[CommandRunner]:
    """A command runner with a database; the logging that commands set up is undone afterwards."""
    shutil.copytree(migrated_folder, tmp_path, dirs_exist_ok=True)
    with unchanged_logging():
        yield CommandRunner(tmp_path)
