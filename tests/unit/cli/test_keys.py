"""`matchpod keys`, as an operator uses it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest

from matchpod.cli import keys, organizations
from matchpod.cli.keys import app
from tests.unit.cli import office as offices
from tests.unit.cli.office import Office

office = offices.office

KEY = re.compile(r"mk_live_[A-Za-z0-9_-]{43}")


@pytest.fixture
def acme(office: Office) -> Office:
    """An office with the organization `acme`."""
    office.done(organizations.app, "create", "acme")
    return office


def lifetime(key: dict[str, object]) -> timedelta:
    created, expires = key["createdAt"], key["expiresAt"]
    assert isinstance(created, str)
    assert isinstance(expires, str)
    return datetime.fromisoformat(expires) - datetime.fromisoformat(created)


def test_a_new_key_stands_alone_on_standard_output(acme: Office) -> None:
    made = acme.run(app, "create", "--org", "acme", "--role", "owner", "--name", "ci")
    assert made.exit_code == 0
    assert KEY.fullmatch(made.stdout.removesuffix("\n"))
    assert made.stdout.strip() not in made.stderr
    assert "never expires" in made.stderr
    (key,) = acme.listed(app, "list", "--org", "acme")
    assert str(key["id"]) in made.stderr
    assert key.keys() == {
        *("id", "name", "prefix", "role", "scopes", "state"),
        *("createdAt", "expiresAt", "revokedAt", "lastUsedAt"),
    }
    assert (key["name"], key["role"], key["state"], key["expiresAt"]) == ("ci", "owner", "active", None)
    assert key["prefix"] == made.stdout[:12]


@pytest.mark.parametrize(
    ("words", "scopes"),
    [
        (["owner"], ["servers:read", "servers:write"]),
        (["admin"], ["servers:read", "servers:write"]),
        (["member"], ["servers:read"]),
        (["owner", "--scope", "servers:read"], ["servers:read"]),
        (["member", "--scope", "servers:write", "--scope", "servers:read"], ["servers:read", "servers:write"]),
    ],
)
def test_scopes_follow_the_role_unless_they_are_given(acme: Office, words: list[str], scopes: list[str]) -> None:
    acme.done(app, "create", "--org", "acme", "--role", *words)
    (key,) = acme.listed(app, "list", "--org", "acme")
    assert key["scopes"] == scopes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90d", timedelta(days=90)),
        ("12h", timedelta(hours=12)),
        ("30m", timedelta(minutes=30)),
        ("45s", timedelta(seconds=45)),
    ],
)
def test_a_key_expires_after_the_time_that_was_given(acme: Office, text: str, expected: timedelta) -> None:
    acme.done(app, "create", "--org", "acme", "--role", "owner", "--expires-in", text)
    (key,) = acme.listed(app, "list", "--org", "acme")
    assert lifetime(key) == expected


@pytest.mark.parametrize("text", ["", "90", "d", "-1d", "1.5h", "1 d", "1w", "９d", "9999999999d"])
def test_a_time_that_is_none_is_refused(acme: Office, text: str) -> None:
    words = ("create", "--org", "acme", "--role", "owner", f"--expires-in={text}")
    assert acme.refused(app, *words).startswith("--expires-in must be a whole number and s, m, h or d")
    assert acme.refused(app, "rotate", "key_1", f"--overlap={text}").startswith("--overlap must be")


@pytest.mark.parametrize("text", ["0s", "999999999d"])
def test_a_life_too_short_or_too_long_is_refused(acme: Office, text: str) -> None:
    words = ("create", "--org", "acme", "--role", "owner", "--expires-in", text)
    assert acme.refused(app, *words) == "A key expires after 1 second to 3650 days, or never."


def test_the_table_shows_whole_ids(acme: Office) -> None:
    text = acme.done(app, "create", "--org", "acme", "--role", "admin", "--name", "y" * 64, "--expires-in", "1d")
    (key,) = acme.listed(app, "list", "--org", "acme")
    head, line = acme.done(app, "list", "--org", "acme").splitlines()
    assert head.split() == ["id", "name", "begins", "role", "scopes", "state", "expires", "last", "used"]
    assert line.split()[:7] == [
        str(key["id"]), "y" * 64, text[:12], "admin", "servers:read", "servers:write", "active",
    ]  # fmt: skip
    assert line.split()[-1] == "-"
    assert text not in line


def test_an_organization_without_keys_is_said_to_have_none(acme: Office) -> None:
    listed = acme.run(app, "list", "--org", "acme")
    assert listed.exit_code == 0
    assert "acme has no keys yet" in listed.stderr
    assert acme.listed(app, "list", "--org", "acme") == []


def test_a_rotated_key_is_the_new_one_alone_and_the_old_one_ends(acme: Office) -> None:
    old_text = acme.done(app, "create", "--org", "acme", "--role", "admin", "--name", "ci")
    (old,) = acme.listed(app, "list", "--org", "acme")
    rotated = acme.run(app, "rotate", str(old["id"]))
    assert rotated.exit_code == 0
    assert KEY.fullmatch(rotated.stdout.removesuffix("\n"))
    assert rotated.stdout.strip() != old_text
    assert "24h" in rotated.stderr
    old, new = acme.listed(app, "list", "--org", "acme")
    assert timedelta(hours=24) <= lifetime(old) < timedelta(hours=25)
    assert (new["name"], new["role"], new["expiresAt"]) == ("ci", "admin", None)


def test_an_overlap_of_nothing_ends_the_old_key_at_once(acme: Office) -> None:
    acme.done(app, "create", "--org", "acme", "--role", "admin")
    (old,) = acme.listed(app, "list", "--org", "acme")
    acme.done(app, "rotate", str(old["id"]), "--overlap", "0s")
    assert [key["state"] for key in acme.listed(app, "list", "--org", "acme")] == ["expired", "active"]
    assert "is expired" in acme.refused(app, "rotate", str(old["id"]))
    assert "30 days" in acme.refused(app, "rotate", str(old["id"]), "--overlap", "31d")


def test_a_key_is_revoked_for_good(acme: Office) -> None:
    acme.done(app, "create", "--org", "acme", "--role", "admin")
    (key,) = acme.listed(app, "list", "--org", "acme")
    revoked = acme.run(app, "revoke", str(key["id"]))
    assert (revoked.exit_code, revoked.stdout) == (0, "")
    assert "up to 5 more seconds" in revoked.stderr
    (key,) = acme.listed(app, "list", "--org", "acme")
    assert key["state"] == "revoked"
    again = acme.run(app, "revoke", str(key["id"]))
    assert again.exit_code == 0
    assert "was revoked before" in again.stderr


def test_what_is_not_there_is_refused(acme: Office) -> None:
    nobody = "There is no organization named 'nobody'."
    assert acme.refused(app, "create", "--org", "nobody", "--role", "owner") == nobody
    assert acme.refused(app, "list", "--org", "nobody") == nobody
    assert acme.refused(app, "revoke", "key_1") == "There is no key with the id 'key_1'."
    assert acme.refused(app, "rotate", "key_1") == "There is no key with the id 'key_1'."


@pytest.mark.parametrize(
    "words",
    [
        ["create", "--org", "acme"],
        ["create", "--role", "owner"],
        ["create", "--org", "acme", "--role", "king"],
        ["create", "--org", "acme", "--role", "owner", "--scope", "servers:burn"],
        ["list"],
    ],
)
def test_wrong_words_are_exit_code_2(acme: Office, words: list[str]) -> None:
    result = acme.run(app, *words)
    assert (result.exit_code, result.stdout) == (2, "")


def test_help_says_how_long_a_revoked_key_may_go_on(office: Office) -> None:
    for words in (["--help"], ["revoke", "--help"]):
        assert "up to 5 more seconds" in " ".join(office.done(keys.app, *words).split())


@pytest.mark.parametrize("command", ["create", "list", "rotate", "revoke"])
def test_every_command_explains_itself(office: Office, command: str) -> None:
    assert command in office.done(app, "--help")
    assert "Show this message" in office.done(app, command, "--help")
