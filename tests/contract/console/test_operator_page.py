"""Regions and the page of operators."""

from __future__ import annotations

from pathlib import Path

import msgspec

from matchpod.core.servers.check_report import CheckFinding, CheckItem, CheckVerdict, server_report
from matchpod.core.servers.server_loss import Silence
from matchpod.service.access.audit import Action, Audit
from matchpod.service.region_checks.requests import CheckReport
from matchpod.storage import region_checks, resting_slots, servers, withheld_servers
from tests.contract.console import console_site
from tests.contract.console.console_site import ADMIN, MEMBER, OPERATOR, OWNER, STRANGER, WRITER, ConsoleSite, open_site

HOSTILE = "<script>alert(1)</script>"


site = console_site.own_site


async def test_operators_check_the_servers_of_a_region(site: ConsoleSite) -> None:
    path, db = "/console/regions/sandbox/check", site.resources.db
    assert (await site.request("POST", path, who=OWNER, form={})).status_code == 403
    assert "Servers checked" not in await site.page("/console/regions", who=OPERATOR)
    assert (await site.request("POST", path, who=OPERATOR, form={})).status_code == 303
    running = await site.request("GET", "/console/regions", who=OPERATOR)
    assert running.headers["refresh"] == "2"
    assert "This page is loaded again" in running.text
    row = await region_checks.begin(db, "sandbox", site.resources.clock.now_ms())
    assert row is not None
    advice = CheckFinding(item=CheckItem.BUILD, verdict=CheckVerdict.FAULT, text=HOSTILE, advice="Type `update`.")
    report = CheckReport(servers=(server_report("27100", [advice]),), note="One server was started.")
    await region_checks.renew(
        db, row.id, site.resources.clock.now_ms(), report=msgspec.json.encode(report), is_done=True
    )
    done = await site.request("GET", "/console/regions", who=OPERATOR)
    assert "refresh" not in done.headers
    for part in (
        "Servers checked at",
        "faults",
        "27100",
        "game build",
        "<code>update</code>",
        "One server was started.",
    ):
        assert part in done.text
    assert HOSTILE not in done.text
    assert "Servers checked" not in await site.page("/console/regions", who=OWNER)


# --- regions ------------------------------------------------------------------------------------------------------


async def test_everyone_sees_the_regions_and_operators_switch_them(site: ConsoleSite) -> None:
    everyone = (OWNER, ADMIN, MEMBER, WRITER, STRANGER, OPERATOR)
    for who in everyone:
        text = await site.page("/console/regions", who=who)
        assert "<code>sandbox</code>" in text
        assert "ready, 0 in use" in text
        assert ("/console/regions/sandbox/off" in text) == (who == OPERATOR)
        assert "no sign of life" not in text
        assert "regions sweep" not in text
        if who != OPERATOR:
            assert (await site.request("POST", "/console/regions/sandbox/off", who=who, form={})).status_code == 403
    assert (await site.service.regions.views())[0].is_active
    site.service.regions.silent.report("srv_1", Silence(region="sandbox", host="127.0.0.1", since_ms=0))
    await withheld_servers.add(site.resources.db, "sandbox", ["srv_1", "srv_2"], 0)
    await site.resources.db.write([resting_slots.rest("sandbox", "27100", "srv_9", 0)])
    for who in everyone:
        text = await site.page("/console/regions", who=who)
        assert "1 server has given no sign of life since" in text
        assert ("2 running servers have no match in this database" in text) == (who == OPERATOR)
        assert ("The server 27100 gets no other match until" in text) == (who == OPERATOR)
        assert ("matchpod regions sweep sandbox --yes" in text) == (who == OPERATOR)


async def test_unknown_region_is_not_found(site: ConsoleSite) -> None:
    before = site.stored()
    for code in ("mars", "%00", "%3Cscript%3E"):
        assert (await site.request("POST", f"/console/regions/{code}/off", who=OPERATOR, form={})).status_code == 404
    assert site.stored() == before


async def test_last_day_is_that_of_the_own_organization(site: ConsoleSite) -> None:
    await site.create_match()
    counts = {}
    for who in (OWNER, STRANGER, OPERATOR):
        text = await site.page("/console/regions", who=who)
        counts[who] = text.partition("<dt>Matches created</dt><dd>")[2].partition("<")[0]
    assert counts == {OWNER: "1", STRANGER: "0", OPERATOR: "1"}


async def test_key_that_may_not_read_matches_sees_regions_without_their_figures(site: ConsoleSite) -> None:
    await site.create_match()
    text = await site.page("/console/regions", who=WRITER)
    assert "<dt>Location</dt>" in text
    assert "Matches created" not in text
    assert "Failures" not in text


# --- the page of operators ----------------------------------------------------------------------------------------


async def test_installation_shows_processes_organizations_and_readiness(site: ConsoleSite) -> None:
    await site.create_match()
    text = await site.page("/console/operator", who=OPERATOR)
    assert "<code>test</code>" in text
    assert '<td class="num">4</td><td class="num">1</td>' in text  # active keys, live matches
    assert ">ready<" in text
    now_ms = site.resources.clock.now_ms()
    await servers.claim_due(site.resources.db, owner="other:1", now_ms=now_ms + 1, limit=5)
    text = await site.page("/console/operator", who=OPERATOR)
    assert "<code>other:1</code>" in text
    assert "leases expired" not in text
    await servers.renew(site.resources.db, owner="other:1", until_ms=now_ms - 1)
    assert "leases expired" in await site.page("/console/operator", who=OPERATOR)


async def test_warnings_are_shown(tmp_path: Path) -> None:
    async with open_site(tmp_path / "data", min_free_disk_mb="1000000000") as site:
        text = await site.page("/console/operator", who=OPERATOR)
        assert "ready, with warnings" in text
        assert "New matches are rejected" in text


async def newest_act(site: ConsoleSite) -> tuple[str, str, str]:
    newest = (await Audit(db=site.resources.db, clock=site.resources.clock).page(None))[0]
    return newest.action, newest.target, newest.detail


async def test_organization_is_created(site: ConsoleSite) -> None:
    form = {"name": HOSTILE}
    response = await site.request("POST", "/console/operator/organizations", who=OPERATOR, form=form)
    assert response.status_code == 303
    action, target, detail = await newest_act(site)
    assert (action, detail) == (Action.ORGANIZATION_CREATED, HOSTILE)
    assert target in {one.id for one in await site.service.access.organizations()}
    text = (await site.follow(response, who=OPERATOR)).text
    assert HOSTILE not in text
    assert "Create its first key with <code>matchpod keys create</code>." in text
