"""`matchpod audit`: acts of the command line, of all organizations or of one."""

from __future__ import annotations

import pytest

from matchpod.cli import callbacks, create_app, keys, matches, organizations, regions
from matchpod.ports import Database
from matchpod.storage import servers
from tests.unit.cli.command_runner import CommandRunner
from tests.unit.cli.test_matches import on_database, server

app = create_app("audit")


@pytest.fixture
def acme(runner: CommandRunner) -> CommandRunner:
    """A command runner with the organizations `acme` and `zeta`."""
    for name in ("acme", "zeta"):
        runner.output(organizations.app, "create", name)
    return runner


def acts(runner: CommandRunner, *args: str) -> list[tuple[object, object, object]]:
    """Return the acts, oldest first; the actor of all is the command line."""
    found = runner.json_output(app, "audit", *args)
    assert {line["actor"] for line in found} <= {"command line"}
    return [(line["organization"], line["action"], line["target"]) for line in reversed(found)]


def test_acts_of_the_command_line_are_shown(acme: CommandRunner) -> None:
    (org_id, other_id) = (str(one["id"]) for one in acme.json_output(organizations.app, "list"))
    acme.output(keys.app, "create", "--org", "acme", "--role", "member")
    (key,) = acme.json_output(keys.app, "list", "--org", "acme")
    acme.output(keys.app, "revoke", str(key["id"]))
    acme.output(organizations.app, "webhook-secret", "zeta", "--replace")
    for command in ("deactivate", "activate"):
        acme.output(regions.app, command, "sandbox")

    async def add_match(db: Database) -> None:
        await servers.create(db, server("srv_1", org_id=org_id, callback_url="https://x.example"), idempotency=None)

    on_database(acme, add_match)
    acme.output(matches.app, "cancel", "srv_1")

    callback_id = str(acme.json_output(callbacks.app, "list")[0]["callbackId"])
    acme.output(callbacks.app, "redeliver", callback_id)
    acme.output(create_app("console"), "console", "--operator")
    of_acme = [
        ("acme", "key_created", key["id"]),
        ("acme", "key_revoked", key["id"]),
        ("acme", "match_canceled", "srv_1"),
        ("acme", "callback_redelivered", callback_id),
    ]
    of_operators = [
        (None, "organization_created", org_id),
        (None, "organization_created", other_id),
        (None, "region_changed", "sandbox"),
        (None, "region_changed", "sandbox"),
        (None, "link_created", ""),
    ]
    assert acts(acme, "--org", "acme") == of_acme
    assert acts(acme, "--org", "zeta") == [("zeta", "webhook_secret_replaced", "")]
    assert acts(acme, "--operator") == of_operators
    assert len(acts(acme)) == len(of_acme) + 1 + len(of_operators)
    assert acts(acme, "--limit", "1") == of_operators[-1:]


def test_table_has_one_line_per_act(acme: CommandRunner) -> None:
    heads, *lines = acme.output(app, "audit", "--operator").splitlines()
    assert heads.split() == ["at", "organization", "actor", "action", "target", "detail"]
    assert [line.split()[-1] for line in lines] == ["zeta", "acme"]


def test_empty_log_is_said(acme: CommandRunner) -> None:
    result = acme.invoke(app, "audit", "--org", "acme")
    assert (result.exit_code, result.stderr) == (0, "matchpod: the audit log has no such entries\n")


def test_invalid_options_are_errors(acme: CommandRunner) -> None:
    assert acme.error(app, "audit", "--org", "mars") == (
        "There is no organization named 'mars'. Organizations: acme, zeta."
    )
    assert acme.error(app, "audit", "--org", "acme", "--operator") == "Use either --org or --operator, not both."
    assert acme.invoke(app, "audit", "--limit", "0").exit_code == 2
