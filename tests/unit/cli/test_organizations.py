"""`matchpod orgs`: create and list organizations, show and replace webhook secrets."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from matchpod.cli.organizations import app
from matchpod.settings.values import DATABASE_FILE
from tests.unit.cli.command_runner import CommandRunner


def test_create_prints_only_the_id_to_standard_output(runner: CommandRunner) -> None:
    created = runner.invoke(app, "create", "acme")
    assert created.exit_code == 0
    assert re.fullmatch(r"org_[0-9a-f]{20}\n", created.stdout)
    assert "acme created" in created.stderr
    (listed,) = runner.json_output(app, "list")
    assert listed.keys() == {"id", "name", "createdAt"}
    assert (listed["id"], listed["name"]) == (created.stdout.strip(), "acme")


def test_table_shows_full_names_without_interpreting_markup(runner: CommandRunner) -> None:
    name = "[red]" + "x" * 59
    org_id = runner.output(app, "create", name)
    head, line = runner.output(app, "list").splitlines()
    assert head.split() == ["id", "name", "created"]
    assert re.fullmatch(rf"{org_id} +{re.escape(name)} +\d{{4}}-\d\d-\d\d \d\d:\d\d *", line)


def test_empty_list_prints_a_note(runner: CommandRunner) -> None:
    assert runner.json_output(app, "list") == []
    listed = runner.invoke(app, "list")
    assert listed.exit_code == 0
    assert "no organizations yet" in listed.stderr


def test_duplicate_or_invalid_name_is_rejected(runner: CommandRunner) -> None:
    runner.output(app, "create", "acme")
    assert runner.error(app, "create", "acme") == "An organization named acme already exists."
    assert "1 to 64 characters" in runner.error(app, "create", "")


def test_webhook_secret_is_printed_alone_and_stays_until_replaced(runner: CommandRunner) -> None:
    runner.output(app, "create", "acme")
    first = runner.output(app, "webhook-secret", "acme")
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", first)
    assert runner.output(app, "webhook-secret", "acme") == first
    replaced = runner.output(app, "webhook-secret", "acme", "--replace")
    assert replaced != first
    assert runner.output(app, "webhook-secret", "acme") == replaced
    shown, new = "webhook_secret_revealed", "webhook_secret_replaced"
    assert [act[:3] for act in runner.acts()] == [
        ("acme", "command line", action) for action in (shown, shown, new, shown)
    ]
    assert all(secret not in str(runner.acts()) for secret in (first, replaced))


@pytest.mark.parametrize(
    ("options", "note", "is_kept"),
    [
        (("--replace",), "signed with this new secret, and for a day also with the old secret", True),
        (("--replace", "--now"), "signed with this new secret\n", False),
        (("--now",), "signed with this secret only", False),
    ],
)
def test_old_secret_is_kept_for_a_day_unless_it_is_ended(
    runner: CommandRunner, options: tuple[str, ...], note: str, is_kept: bool
) -> None:
    runner.output(app, "create", "acme")
    runner.output(app, "webhook-secret", "acme", "--replace")
    done = runner.invoke(app, "webhook-secret", "acme", *options)
    assert done.exit_code == 0
    assert note in done.stderr
    with closing(sqlite3.connect(runner.data_dir / DATABASE_FILE)) as file:
        ((old, until_ms),) = file.execute("SELECT old_webhook_secret, old_secret_until_ms FROM organizations")
    assert (old is not None, until_ms is not None) == (is_kept, is_kept)


def test_wrong_vault_key_prevents_creating_organizations_until_secrets_are_replaced(runner: CommandRunner) -> None:
    for name in ("acme", "zeta"):
        runner.output(app, "create", name)
    (runner.data_dir / "secret.key").unlink()
    result = runner.invoke(app, "create", "other")
    assert result.exit_code == 1
    lost = runner.data_dir / "secret.key"
    assert f"The key in the file {lost} does not decrypt the secrets in this database" in result.stderr
    assert [one["name"] for one in runner.json_output(app, "list")] == ["acme", "zeta"]
    runner.output(app, "webhook-secret", "acme", "--replace")
    runner.output(app, "create", "other")


@pytest.mark.parametrize("more", [(), ("--replace",)])
def test_secret_of_an_unknown_organization_is_rejected(runner: CommandRunner, more: tuple[str, ...]) -> None:
    assert runner.error(app, "webhook-secret", "unknown", *more) == "There is no organization named 'unknown'."


@pytest.mark.parametrize("command", [["list"], ["webhook-secret", "Cup"]])
def test_command_in_a_folder_without_a_database_says_so_and_creates_none(tmp_path: Path, command: list[str]) -> None:
    folder = tmp_path / "elsewhere"
    error = CommandRunner(folder).error(app, *command)
    assert error == (
        f"There is no database in {folder}. Set MATCHPOD_DATA_DIR to the folder of the service, or start it first."
    )
    assert not folder.exists()
