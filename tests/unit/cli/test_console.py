"""`matchpod console`: a link that logs in once."""

from __future__ import annotations

import asyncio
import re

import pytest

from matchpod.adapters.clock import SystemClock
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.cli import create_app, organizations
from matchpod.service.access.audit import Audit
from matchpod.service.access.console_sessions import ConsoleSessions, ConsoleUser
from matchpod.service.access.organizations import Access
from matchpod.service.identity.principals import ConsoleRole, OrganizationView
from tests.unit.cli.command_runner import CommandRunner
from tests.vaults import VAULT

LINK = re.compile(r"http://127\.0\.0\.1:8080/console/login/([A-Za-z0-9_-]{43})\n")
app = create_app("console")


def log_in(runner: CommandRunner, token: str) -> ConsoleUser:
    """Use a link, as the service does."""

    async def use() -> ConsoleUser:
        db, clock = await SqliteDatabase.open(runner.data_dir / "matchpod.sqlite3"), SystemClock()
        try:
            audit, access = Audit(db=db, clock=clock), Access(db=db, clock=clock, vault=VAULT)
            sessions = ConsoleSessions(db=db, clock=clock, access=access, audit=audit)
            found = await sessions.find((await sessions.open_by_link(token, user_agent="")).cookie)
        finally:
            await db.close()
        assert found is not None
        return found

    return asyncio.run(use())


def test_link_is_for_the_only_organization(acme: CommandRunner) -> None:
    result = acme.invoke(app, "console")
    assert result.exit_code == 0
    found = LINK.fullmatch(result.stdout)
    assert found is not None
    assert "log in as owner of acme; it works once, for 5 minutes" in result.stderr
    assert found[1] not in result.stderr
    user = log_in(acme, found[1])
    assert (user.org_name, user.is_operator) == ("acme", False)


def test_link_is_for_the_given_organization(acme: CommandRunner) -> None:
    acme.output(organizations.app, "create", "zeta cup")
    found = LINK.fullmatch(acme.output(app, "console", "--org", "zeta cup") + "\n")
    assert found is not None
    assert log_in(acme, found[1]).org_name == "zeta cup"


def test_link_of_an_operator_needs_no_organization(runner: CommandRunner) -> None:
    found = LINK.fullmatch(runner.output(app, "console", "--operator") + "\n")
    assert found is not None
    assert log_in(runner, found[1]).is_operator


def test_link_is_for_a_named_person_with_a_role(acme: CommandRunner) -> None:
    result = acme.invoke(app, "console", "--name", " Ann O'Hara ", "--role", "referee")
    found = LINK.fullmatch(result.stdout)
    assert found is not None
    assert "log in as referee of acme (Ann O'Hara); it works once" in result.stderr
    user = log_in(acme, found[1])
    assert user.principal is not None
    assert (user.name, user.principal.role) == ("Ann O'Hara", ConsoleRole.REFEREE)
    found = LINK.fullmatch(acme.output(app, "console", "--operator", "--name", "Olga") + "\n")
    assert found is not None
    assert log_in(acme, found[1]).name == "Olga"


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--role", "judge"], "Unknown role 'judge'. Known roles: owner, admin, member, referee, caster."),
        (["--role", "caster", "--operator"], "Use either --role or --operator, not both."),
        (["--org", "acme", "--operator"], "Use either --org or --operator, not both."),
        (["--org", "acme", "--name", "A\tB"], "The name of a person must not contain control"),
        (["--org", "Acme"], "There is no organization named 'Acme'. Organizations: acme, zeta."),
        ([], "Choose an organization with --org, or --operator. Organizations: acme, zeta."),
    ],
)
def test_invalid_options_are_errors(acme: CommandRunner, args: list[str], sentence: str) -> None:
    acme.output(organizations.app, "create", "zeta")
    assert acme.error(app, "console", *args).startswith(sentence)


def test_long_list_of_organizations_is_cut() -> None:
    known = [OrganizationView(id=name, name=name, created_at="") for name in "abcdefghijklmnopqrstuvw"]
    assert organizations.names_text(known[:20]) == "a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t"
    assert organizations.names_text(known).endswith(", s, t and 3 others")


def test_without_organizations_the_error_says_how_to_create_one(runner: CommandRunner) -> None:
    for args in ([], ["--org", "acme"]):
        assert "Create one: matchpod orgs create NAME." in runner.error(app, "console", *args)


def test_console_that_is_off_has_no_links(acme: CommandRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATCHPOD_CONSOLE", "off")
    for args in ([], ["--operator"]):
        assert acme.error(app, "console", *args).startswith("The console is off. Set MATCHPOD_CONSOLE=on")


def test_port_must_be_known(acme: CommandRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATCHPOD_PORT", "0")
    assert acme.error(app, "console").startswith("The port of the service is not known")
    monkeypatch.setenv("MATCHPOD_PUBLIC_URL", "https://pod.example/base/")
    assert acme.output(app, "console").startswith("https://pod.example/base/console/login/")
