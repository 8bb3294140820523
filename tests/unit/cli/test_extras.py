"""Settings that need an extra which is not installed: every command that opens a database names it and exits."""

from __future__ import annotations

import sys

import pytest

from matchpod.cli import create_app
from tests.unit.cli.command_runner import CommandRunner

MISSING = "{} needs the extra 'matchpod[{}]', which is not installed; docs/one-box.md has the commands."
POSTGRES = MISSING.format("The PostgreSQL database", "postgres")
AGONES = MISSING.format("The Agones fleet of region eu", "agones")
REGIONS = """
[[regions]]
code = "eu"
[regions.fleet]
kind = "agones"
fleet = "cs2-eu"
secret_file = "/run/secrets/fleet"
"""
URL = "postgresql://matchpod@127.0.0.1:1/matchpod"
COMMANDS = [["serve"], ["migrate"], ["orgs", "list"], ["regions", "list"], ["console"], ["listen"]]


def uninstall(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Make importing a module fail, and looking for it too, as if it were not installed."""
    monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.parametrize(
    ("module", "setting", "sentence"),
    [("asyncpg", f'database_url = "{URL}"', POSTGRES), ("yaml", REGIONS, AGONES), ("httpx", REGIONS, AGONES)],
)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_missing_extra_that_a_setting_needs_is_named(
    runner: CommandRunner, monkeypatch: pytest.MonkeyPatch, command: list[str], module: str, setting: str, sentence: str
) -> None:
    uninstall(monkeypatch, module)
    (runner.data_dir / "matchpod.toml").write_text(setting)
    assert runner.error(create_app(command[0]), *command) == sentence


def test_all_missing_extras_are_reported(runner: CommandRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    uninstall(monkeypatch, "asyncpg")
    uninstall(monkeypatch, "httpx")
    monkeypatch.setenv("MATCHPOD_DATABASE_URL", URL)
    (runner.data_dir / "matchpod.toml").write_text(REGIONS)
    done = runner.invoke(create_app("serve"), "serve")
    assert (done.exit_code, done.stderr) == (2, f"matchpod: {POSTGRES}\nmatchpod: {AGONES}\n")


def test_extras_that_no_setting_needs_may_be_missing(runner: CommandRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("asyncpg", "httpx", "yaml"):
        uninstall(monkeypatch, module)
    assert runner.output(create_app("regions"), "regions", "list")
