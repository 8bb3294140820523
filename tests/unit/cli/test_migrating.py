"""`matchpod migrate`: what it applies and prints, and the exit codes of `--check`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from matchpod.cli import create_app
from matchpod.storage.schema import LAST_RELEASE, MIGRATIONS
from tests.unit.cli.command_runner import CommandRunner, unchanged_logging

UP_TO_DATE = f"The database has version {len(MIGRATIONS)}."


@pytest.fixture
def older(tmp_path: Path) -> Iterator[CommandRunner]:
    """A data folder with the database of the last release."""
    folder = tmp_path / "older"
    folder.mkdir(mode=0o700)
    change(
        folder,
        "CREATE TABLE schema_versions (version BIGINT PRIMARY KEY)",
        *(sql for statements in MIGRATIONS[:LAST_RELEASE] for sql in statements),
        *(f"INSERT INTO schema_versions (version) VALUES ({number + 1})" for number in range(LAST_RELEASE)),
    )
    with unchanged_logging():
        yield CommandRunner(folder)


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "matchpod.sqlite3")) as file, file:
        for sql in statements:
            file.execute(sql)


def check(runner: CommandRunner) -> tuple[int, str, str]:
    done = runner.invoke(create_app("migrate"), "migrate", "--check")
    return done.exit_code, done.stdout, done.stderr


def test_up_to_date_database_is_left_as_it_is(runner: CommandRunner) -> None:
    for _ in range(2):
        assert runner.output(create_app("migrate"), "migrate") == UP_TO_DATE
        assert check(runner) == (0, f"{UP_TO_DATE}\n", "")


def test_missing_migrations_are_listed_and_then_applied(older: CommandRunner) -> None:
    for _ in range(2):  # the check changes nothing
        code, listed, note = check(older)
        assert (code, note) == (
            1,
            f"matchpod: The database has version {LAST_RELEASE}. Missing up to version {len(MIGRATIONS)}:\n",
        )
        assert listed.startswith("  23: ALTER TABLE raw_log ADD COLUMN attempt, ")
    first, *changes, last = older.output(create_app("migrate"), "migrate").splitlines()
    assert (first, last) == (f"Migrated from version {LAST_RELEASE} to {len(MIGRATIONS)}:", UP_TO_DATE)
    assert changes == listed.splitlines()
    assert check(older) == (0, f"{UP_TO_DATE}\n", "")
    assert older.output(create_app("migrate"), "migrate") == UP_TO_DATE


def test_original_is_recorded_as_gone_for_a_copy_only(runner: CommandRunner) -> None:
    assert runner.output(create_app("migrate"), "migrate") == UP_TO_DATE
    printed = runner.output(create_app("migrate"), "migrate", "--restored")
    assert printed == f"{UP_TO_DATE}\nIt is not a copy; nothing was recorded."
    change(runner.data_dir, "INSERT INTO installation (name, value) VALUES ('place', 'backup of yesterday')")
    printed = runner.output(create_app("migrate"), "migrate", "--restored")
    assert printed == f"{UP_TO_DATE}\nIts matches are driven from here from now on."
    done = runner.invoke(create_app("migrate"), "migrate", "--restored", "--check")
    assert (done.exit_code, done.stderr) == (2, "matchpod: --restored cannot be used with --check.\n")


def test_check_creates_neither_database_nor_data_folder(tmp_path: Path) -> None:
    with unchanged_logging():
        code, listed, note = check(CommandRunner(tmp_path / "none"))
    assert code == 1
    assert note.startswith("matchpod: The database has version 0.")
    assert listed.startswith("  1: CREATE TABLE organizations, CREATE TABLE api_keys, ")
    assert len(listed.splitlines()) == len(MIGRATIONS)
    assert not (tmp_path / "none").exists()


def test_database_that_a_newer_version_has_expanded_can_be_used(runner: CommandRunner) -> None:
    change(runner.data_dir, "INSERT INTO applied_migrations (version) VALUES (98)")
    code, text, _ = check(runner)
    assert (code, text) == (
        0,
        "The database has version 98, of a newer Matchpod. This Matchpod knows versions up to"
        f" {len(MIGRATIONS)}, and can use the database.\n",
    )
    assert runner.output(create_app("migrate"), "migrate") + "\n" == text


def test_database_that_requires_a_newer_version_is_reported(runner: CommandRunner) -> None:
    change(runner.data_dir, "INSERT INTO schema_versions (version) VALUES (99)")
    sentence = (
        f"matchpod: The database requires schema version 99, and this Matchpod knows versions up to {len(MIGRATIONS)}."
        " Use a newer version of Matchpod.\n"
    )
    assert check(runner) == (2, "", sentence)
    done = runner.invoke(create_app("migrate"), "migrate")
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", sentence)


def test_unreadable_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "matchpod.sqlite3").write_text("not a database")
    with unchanged_logging():
        code, text, note = check(CommandRunner(tmp_path))
    assert (code, text) == (1, "")
    assert note.startswith(f"matchpod: The database {tmp_path}/matchpod.sqlite3 cannot be opened: ")
