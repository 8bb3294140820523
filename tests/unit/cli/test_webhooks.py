"""`matchpod webhooks`: the life of a webhook, on a SQLite database."""

from __future__ import annotations

import json
from typing import Any

from matchpod.cli import create_app
from tests.unit.cli.command_runner import CommandRunner

URL = "https://events.example/in?key=hidden"


def run(runner: CommandRunner, *args: str) -> str:
    return runner.output(create_app("webhooks"), "webhooks", *args)


def listed(runner: CommandRunner, *args: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(runner, *args, "--json"))
    return found


def test_webhook_is_created_changed_tried_and_deleted(runner: CommandRunner) -> None:
    runner.output(create_app("orgs"), "orgs", "create", "acme")
    webhook_id, secret = run(runner, "create", URL, "--org", "acme", "--event", "map.ended").split()
    assert secret.startswith("whsec_")
    (found,) = listed(runner, "list")
    assert (found["organization"], found["url"]) == ("acme", "https://events.example/in?key=***")
    assert (found["events"], found["enabled"]) == (["map.ended"], True)
    assert "on" in run(runner, "list", "--org", "acme")
    run(runner, "update", webhook_id, "--off", "--event", "*")
    (found,) = listed(runner, "list")
    assert (found["events"], found["enabled"], found["disabledReason"]) == (["*"], False, "request")
    assert run(runner, "rotate-secret", webhook_id).strip() != secret
    delivery_id = run(runner, "test", webhook_id).strip()
    (delivery,) = listed(runner, "deliveries", webhook_id)
    assert (delivery["id"], delivery["state"]) == (delivery_id, "waiting")
    refused = runner.invoke(create_app("webhooks"), "webhooks", "redeliver", delivery_id)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "is under way or scheduled" in refused.stderr
    run(runner, "delete", webhook_id)
    assert listed(runner, "list") == []
    audit = runner.output(create_app("audit"), "audit")
    for words in ("webhook_created", "webhook_changed", "webhook_tested", "webhook_deleted"):
        assert words in audit


def test_mistakes_are_named(runner: CommandRunner) -> None:
    runner.output(create_app("orgs"), "orgs", "create", "acme")
    for args, sentence in (
        (("create", URL, "--org", "zeta"), "There is no organization zeta."),
        (("create", "ftp://x", "--org", "acme"), "url must be an absolute http or https URL"),
        (("create", URL, "--org", "acme", "--event", "match.over"), "must be one of *"),
        (("delete", "wh_1"), "There is no webhook wh_1."),
        (("redeliver", "msg_1"), "There is no delivery msg_1."),
    ):
        result = runner.invoke(create_app("webhooks"), "webhooks", *args)
        assert result.exit_code == 2, args
        assert sentence in result.stderr
