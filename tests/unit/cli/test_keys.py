"""`matchpod keys`: create, list, rotate and revoke API keys."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest

from matchpod.cli import keys
from matchpod.cli.keys import app
from tests.unit.cli.command_runner import CommandRunner

KEY = re.compile(r"mk_live_[A-Za-z0-9_-]{43}")


def lifetime(key: dict[str, object]) -> timedelta:
    created, expires = key["createdAt"], key["expiresAt"]
    assert isinstance(created, str)
    assert isinstance(expires, str)
    return datetime.fromisoformat(expires) - datetime.fromisoformat(created)


def test_only_the_new_key_is_on_standard_output(acme: CommandRunner) -> None:
    result = acme.invoke(app, "create", "--org", "acme", "--role", "owner", "--name", "ci")
    assert result.exit_code == 0
    assert KEY.fullmatch(result.stdout.removesuffix("\n"))
    assert result.stdout.strip() not in result.stderr
    assert "never expires" in result.stderr
    (key,) = acme.json_output(app, "list", "--org", "acme")
    assert str(key["id"]) in result.stderr
    assert key.keys() == {
        *("id", "name", "prefix", "role", "scopes", "state"),
        *("createdAt", "expiresAt", "revokedAt", "lastUsedAt"),
    }
    assert (key["name"], key["role"], key["state"], key["expiresAt"]) == ("ci", "owner", "active", None)
    assert key["prefix"] == result.stdout[:12]


@pytest.mark.parametrize(
    ("args", "scopes"),
    [
        (["owner"], ["servers:read", "servers:write"]),
        (["admin"], ["servers:read", "servers:write"]),
        (["member"], ["servers:read"]),
        (["owner", "--scope", "servers:read"], ["servers:read"]),
        (["member", "--scope", "servers:write", "--scope", "servers:read"], ["servers:read", "servers:write"]),
    ],
)
def test_scopes_depend_on_the_role_unless_given(acme: CommandRunner, args: list[str], scopes: list[str]) -> None:
    acme.output(app, "create", "--org", "acme", "--role", *args)
    (key,) = acme.json_output(app, "list", "--org", "acme")
    assert key["scopes"] == scopes


@pytest.mark.parametrize(("text", "seconds"), [("2d", 172_800), ("12h", 43_200), ("30m", 1_800), ("45s", 45)])
def test_key_expires_after_the_given_time(acme: CommandRunner, text: str, seconds: int) -> None:
    acme.output(app, "create", "--org", "acme", "--role", "owner", "--expires-in", text)
    (key,) = acme.json_output(app, "list", "--org", "acme")
    assert lifetime(key) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "90", "d", "-1d", "1.5h", "1 d", "1w", "９d", "9999999999d"])
def test_invalid_duration_is_rejected(acme: CommandRunner, text: str) -> None:
    args = ("create", "--org", "acme", "--role", "owner", f"--expires-in={text}")
    assert acme.error(app, *args).startswith("--expires-in must be a whole number followed by s, m, h or d")
    assert acme.error(app, "rotate", "key_1", f"--overlap={text}").startswith("--overlap must be")


def test_table_shows_full_ids_and_no_key(acme: CommandRunner) -> None:
    text = acme.output(app, "create", "--org", "acme", "--role", "admin", "--name", "y" * 64, "--expires-in", "1d")
    (key,) = acme.json_output(app, "list", "--org", "acme")
    head, line = acme.output(app, "list", "--org", "acme").splitlines()
    assert head.split() == ["id", "name", "prefix", "role", "scopes", "state", "expires", "last", "used"]
    assert line.split()[:7] == [
        str(key["id"]), "y" * 64, text[:12], "admin", "servers:read", "servers:write", "active",
    ]  # fmt: skip
    assert line.split()[-1] == "-"
    assert text not in line


def test_empty_list_of_keys_prints_a_note(acme: CommandRunner) -> None:
    listed = acme.invoke(app, "list", "--org", "acme")
    assert listed.exit_code == 0
    assert "acme has no keys yet" in listed.stderr
    assert acme.json_output(app, "list", "--org", "acme") == []


def test_rotating_prints_only_the_new_key_and_the_old_one_expires(acme: CommandRunner) -> None:
    old_text = acme.output(app, "create", "--org", "acme", "--role", "admin", "--name", "ci")
    (old,) = acme.json_output(app, "list", "--org", "acme")
    rotated = acme.invoke(app, "rotate", str(old["id"]))
    assert rotated.exit_code == 0
    assert KEY.fullmatch(rotated.stdout.removesuffix("\n"))
    assert rotated.stdout.strip() != old_text
    assert "24h" in rotated.stderr
    old, new = acme.json_output(app, "list", "--org", "acme")
    assert timedelta(hours=24) <= lifetime(old) < timedelta(hours=25)
    assert (new["name"], new["role"], new["expiresAt"]) == ("ci", "admin", None)


def test_rotating_without_overlap_expires_the_old_key_at_once(acme: CommandRunner) -> None:
    acme.output(app, "create", "--org", "acme", "--role", "admin")
    (old,) = acme.json_output(app, "list", "--org", "acme")
    acme.output(app, "rotate", str(old["id"]), "--overlap", "0s")
    assert [key["state"] for key in acme.json_output(app, "list", "--org", "acme")] == ["expired", "active"]
    assert "is expired" in acme.error(app, "rotate", str(old["id"]))
    assert "30 days" in acme.error(app, "rotate", str(old["id"]), "--overlap", "31d")


def test_key_is_revoked_permanently(acme: CommandRunner) -> None:
    acme.output(app, "create", "--org", "acme", "--role", "admin")
    (key,) = acme.json_output(app, "list", "--org", "acme")
    revoked = acme.invoke(app, "revoke", str(key["id"]))
    assert (revoked.exit_code, revoked.stdout) == (0, "")
    assert "up to 3 more seconds" in revoked.stderr
    (key,) = acme.json_output(app, "list", "--org", "acme")
    assert key["state"] == "revoked"
    again = acme.invoke(app, "revoke", str(key["id"]))
    assert again.exit_code == 0
    assert "was already revoked" in again.stderr


def test_unknown_organization_and_key_are_rejected(acme: CommandRunner) -> None:
    error = "There is no organization named 'unknown'."
    assert acme.error(app, "create", "--org", "unknown", "--role", "owner") == error
    assert acme.error(app, "list", "--org", "unknown") == error
    assert acme.error(app, "revoke", "key_1") == "There is no key with the id 'key_1'."
    assert acme.error(app, "rotate", "key_1") == "There is no key with the id 'key_1'."


def test_invalid_arguments_give_exit_code_2(acme: CommandRunner) -> None:
    unknown = ("create --org acme --role king", "create --org acme --role owner --scope servers:burn")
    for args in ("create --org acme", "create --role owner", *unknown, "list"):
        result = acme.invoke(app, *args.split())
        assert (result.exit_code, result.stdout) == (2, ""), args


def test_help_says_how_long_a_revoked_key_may_be_accepted(runner: CommandRunner) -> None:
    for args in (["--help"], ["revoke", "--help"]):
        assert "up to 3 more seconds" in " ".join(runner.output(keys.app, *args).split())
