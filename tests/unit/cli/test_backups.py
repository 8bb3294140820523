"""`matchpod backup` and `matchpod restore`: what they print, and their exit codes."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from matchpod.cli import create_app
from matchpod.settings.values import DATABASE_FILE
from matchpod.storage.schema import MIGRATIONS
from tests.unit.cli.command_runner import CommandRunner


def test_backup_is_restored_into_another_folder(runner: CommandRunner, tmp_path: Path) -> None:
    file = tmp_path.parent / f"{tmp_path.name}.tar"
    written = runner.output(create_app("backup"), "backup", str(file))
    assert written.startswith(f"{file}: database and secret key of 20")
    assert written.endswith(" MB")
    other = CommandRunner(tmp_path.parent / f"{tmp_path.name}-other")
    done = other.invoke(create_app("restore"), "restore", str(file))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(f"{other.data_dir}: database and secret key of 20")
    assert "matchpod serve --restored" in done.stderr
    assert (other.data_dir / "secret.key").read_bytes() == (runner.data_dir / "secret.key").read_bytes()
    for command in (("match", "cancel", "srv_x"), ("callbacks", "redeliver", "cb_x")):
        refused = other.invoke(create_app(command[0]), *command)
        assert (refused.exit_code, "This database is a copy" in refused.stderr) == (1, True)
    assert other.migrate() == f"The database has version {len(MIGRATIONS)}."


def test_backup_is_recorded_and_records_nothing_if_it_fails(runner: CommandRunner, tmp_path: Path) -> None:
    file = tmp_path.parent / f"{tmp_path.name}.tar"
    runner.output(create_app("backup"), "backup", str(file))
    runner.error(create_app("backup"), "backup", str(file))
    assert runner.acts() == [(None, "command line", "backup_written", str(file), "database and secret key")]


def test_backup_of_a_database_that_cannot_be_written_is_complete(runner: CommandRunner, tmp_path: Path) -> None:
    file = tmp_path.parent / f"{tmp_path.name}.tar"
    with closing(sqlite3.connect(runner.data_dir / DATABASE_FILE)) as database:
        database.execute("ALTER TABLE audit_log RENAME TO elsewhere")
        database.commit()
    done = runner.invoke(create_app("backup"), "backup", str(file))
    assert (done.exit_code, file.is_file()) == (0, True)
    assert "The backup is complete, but not in the audit log: OperationalError: no such table" in done.stderr


def test_wrong_arguments_are_rejected(runner: CommandRunner, tmp_path: Path) -> None:
    file = tmp_path.parent / f"{tmp_path.name}.tar"
    assert runner.error(create_app("backup"), "backup", str(tmp_path / "none" / "file")).startswith(
        "There is no folder"
    )
    runner.output(create_app("backup"), "backup", str(file))
    assert "Use --force" in runner.error(create_app("backup"), "backup", str(file))
    runner.output(create_app("backup"), "backup", str(file), "--force")
    assert "is not empty" in runner.error(create_app("restore"), "restore", str(file))
    assert runner.error(create_app("restore"), "restore", str(tmp_path / "none")).startswith("There is no file")
    empty = CommandRunner(tmp_path / "empty")
    assert empty.error(create_app("backup"), "backup", str(tmp_path / "new")).startswith("There is no database")


def test_key_in_the_settings_is_not_in_the_backup(
    runner: CommandRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MATCHPOD_SECRET_KEY", "A" * 43 + "=")
    done = runner.invoke(create_app("backup"), "backup", str(tmp_path / "new.tar"))
    assert (done.exit_code, "secret key" in done.stdout, "MATCHPOD_SECRET_KEY" in done.stderr) == (0, False, True)


def test_postgres_is_backed_up_with_its_own_tools(runner: CommandRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)  # its driver is not installed
    monkeypatch.setenv("MATCHPOD_DATABASE_URL", "postgresql://someone:hidden@db.example/matchpod")
    done = runner.invoke(create_app("backup"), "backup", "file")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "pg_dump --format=custom" in done.stderr
    assert str(runner.data_dir / "secret.key") in done.stderr
    assert "hidden" not in done.stderr
    assert "SQLite" in runner.error(create_app("restore"), "restore", "file")
