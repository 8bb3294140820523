"""`matchpod orgs`, as an operator uses it."""

from __future__ import annotations

import re

import pytest

from matchpod.cli.organizations import app
from tests.unit.cli import office as offices
from tests.unit.cli.office import Office

office = offices.office


def test_a_new_organization_is_its_id_on_standard_output(office: Office) -> None:
    created = office.run(app, "create", "acme")
    assert created.exit_code == 0
    assert re.fullmatch(r"org_[0-9a-f]{20}\n", created.stdout)
    assert "acme created" in created.stderr
    (listed,) = office.listed(app, "list")
    assert listed.keys() == {"id", "name", "createdAt"}
    assert (listed["id"], listed["name"]) == (created.stdout.strip(), "acme")


def test_the_table_shows_whole_names_and_takes_none_for_markup(office: Office) -> None:
    name = "[red]" + "x" * 59
    org_id = office.done(app, "create", name)
    head, line = office.done(app, "list").splitlines()
    assert head.split() == ["id", "name", "created"]
    assert re.fullmatch(rf"{org_id} +{re.escape(name)} +\d{{4}}-\d\d-\d\d \d\d:\d\d *", line)


def test_a_listing_of_nothing_says_so_beside_it(office: Office) -> None:
    assert office.listed(app, "list") == []
    listed = office.run(app, "list")
    assert listed.exit_code == 0
    assert "no organizations yet" in listed.stderr


def test_a_name_that_is_taken_or_unfit_is_refused(office: Office) -> None:
    office.done(app, "create", "acme")
    assert office.refused(app, "create", "acme") == "There is an organization named acme already."
    assert "1 to 64 characters" in office.refused(app, "create", "")


def test_a_webhook_secret_stands_alone_and_stays_until_it_is_replaced(office: Office) -> None:
    office.done(app, "create", "acme")
    first = office.done(app, "webhook-secret", "acme")
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", first)
    assert office.done(app, "webhook-secret", "acme") == first
    replaced = office.done(app, "webhook-secret", "acme", "--replace")
    assert replaced != first
    assert office.done(app, "webhook-secret", "acme") == replaced


def test_with_a_key_that_opens_nothing_no_organization_is_made_but_secrets_can_be_replaced(office: Office) -> None:
    office.done(app, "create", "acme")
    (office.data_dir / "secret.key").unlink()
    refused = office.run(app, "create", "other")
    assert refused.exit_code == 1
    assert "does not open what is stored in this database" in refused.stderr
    assert [one["name"] for one in office.listed(app, "list")] == ["acme"]
    office.done(app, "webhook-secret", "acme", "--replace")
    office.done(app, "create", "other")


@pytest.mark.parametrize("more", [(), ("--replace",)])
def test_the_secret_of_nobody_is_refused(office: Office, more: tuple[str, ...]) -> None:
    assert office.refused(app, "webhook-secret", "nobody", *more) == "There is no organization named 'nobody'."


@pytest.mark.parametrize("command", ["create", "list", "webhook-secret"])
def test_every_command_explains_itself(office: Office, command: str) -> None:
    assert command in office.done(app, "--help")
    assert "Show this message" in office.done(app, command, "--help")
