"""`matchpod reencrypt`: stored secrets get the first of the keys."""

from __future__ import annotations

import base64

import pytest

from matchpod.cli import create_app
from tests.unit.cli.command_runner import CommandRunner

OLD, NEW = (base64.b64encode(bytes([number]) * 32).decode() for number in range(2))


def test_key_is_replaced_in_steps(runner: CommandRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATCHPOD_SECRET_KEY", OLD)
    runner.output(create_app("orgs"), "orgs", "create", "acme")
    secret = runner.output(create_app("orgs"), "orgs", "webhook-secret", "acme")
    monkeypatch.setenv("MATCHPOD_SECRET_KEY", f"{NEW},{OLD}")
    lines = runner.output(create_app("reencrypt"), "reencrypt").splitlines()
    assert lines == [
        "organizations: 1 encrypted again, 0 had the key before",
        "servers: 0 encrypted again, 0 had the key before",
        "callbacks: 0 encrypted again, 0 had the key before",
        "webhooks: 0 encrypted again, 0 had the key before",
    ]
    monkeypatch.setenv("MATCHPOD_SECRET_KEY", NEW)
    assert runner.output(create_app("orgs"), "orgs", "webhook-secret", "acme") == secret
    lines = runner.output(create_app("reencrypt"), "reencrypt").splitlines()
    assert lines[0] == "organizations: 0 encrypted again, 1 had the key before"
    acts = runner.json_output(create_app("audit"), "audit", "--operator")
    assert [(act["action"], act["detail"]) for act in acts if "reencrypted" in str(act["action"])] == [
        ("secrets_reencrypted", "1 secrets")
    ]


def test_missing_key_is_reported(runner: CommandRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATCHPOD_SECRET_KEY", OLD)
    runner.output(create_app("orgs"), "orgs", "create", "acme")
    monkeypatch.setenv("MATCHPOD_SECRET_KEY", NEW)
    result = runner.invoke(create_app("reencrypt"), "reencrypt")
    assert result.exit_code == 1
    assert result.stderr == (
        "matchpod: 1 secrets cannot be decrypted with any of the keys. Add the key that they were stored with to"
        " MATCHPOD_SECRET_KEY, after a comma, and repeat the command.\n"
    )
