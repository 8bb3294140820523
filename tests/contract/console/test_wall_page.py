"""The wall: matches that failed stay until they are acknowledged, and counters equal the cards."""

from __future__ import annotations

import html
import re

import pytest

from matchpod.console.rendering import fragment
from matchpod.console.wall import Wall
from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome
from matchpod.core.requests.callback_query import CallbacksQuery
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.servers.server_loss import Silence
from matchpod.core.views.wall_groups import WallGroup
from matchpod.ports import Value
from matchpod.service.end_match import end_match
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.reading.wall import MAX_ENDED, Overview
from matchpod.service.regions.alerts import RegionAlerts
from matchpod.service.regions.regions import Region, Regions
from matchpod.storage import callback_lists, region_flags, servers
from matchpod.storage.acknowledgements import unacknowledged_ids
from tests.contract.console import console_site
from tests.contract.console.callback_rows import given_up
from tests.contract.console.console_site import ADMIN, MEMBER, OPERATOR, OWNER, STRANGER, WRITER, ConsoleSite
from tests.unused_fleet import UnusedFleet

pytestmark = pytest.mark.asyncio(loop_scope="module")
site = console_site.site

FORM = re.compile(r'<form class="acknowledge".*?name="(\w+)" value="([^"]*)".*?</form>')


async def create_ended(
    site: ConsoleSite, reason: CancelReason | None = CancelReason.SERVER_LOST, **given: object
) -> str:
    """Create a match and end it; return the id of its server."""
    server_id = await site.create_match(OWNER, **given)
    db = site.resources.db
    if reason in (CancelReason.SERVER_LOST, None):  # it had a server that worked
        await db.write([servers.change(server_id, 0, running_at_ms=site.resources.clock.now_ms())])
    row = await servers.get(db, server_id)
    assert row is not None
    outcome = Outcome(at_ms=site.resources.clock.now_ms(), reason=reason)
    result = b"{}" if reason is None else None
    await db.write(end_match(row, outcome, result=result, fence=None, callback_id=f"msg_{server_id}"))
    return server_id


async def read_wall(site: ConsoleSite, who: str = OWNER, view: str = "cards") -> str:
    site.service.broadcasts.forget()
    response = await site.request("GET", f"/console?view={view}", who=who)
    assert response.status_code == 200
    return response.text


async def unacknowledged(site: ConsoleSite) -> list[str]:
    return await unacknowledged_ids(site.resources.db, site.org_ids["ours"], limit=99)


def card(text: str, server_id: str) -> str:
    found = re.search(rf'<article id="card-{server_id}".*?</article>', text, re.DOTALL)
    return "" if found is None else found[0]


def line(text: str, server_id: str) -> str:
    found = re.search(rf'<div id="card-{server_id}" role="row".*?</div>', text, re.DOTALL)
    return "" if found is None else found[0]


async def test_lost_match_stays_with_its_reason_and_can_be_acknowledged(site: ConsoleSite) -> None:
    server_id = await create_ended(site, externalMatchId="final <1>")
    elsewhere = other_wall(site)
    await elsewhere.changes()
    shown = card(await read_wall(site), server_id)
    assert 'class="card match ended failed"' in shown
    assert "failed: the server was lost" in shown
    assert "The server stopped responding, or its process ended." in shown
    assert "final &lt;1&gt;" in shown
    form = FORM.search(shown)
    assert form is not None
    assert form.groups() == ("servers", server_id)
    response = await site.request("POST", "/console/acknowledge", who=ADMIN, form={"servers": server_id})
    assert response.status_code == 303
    assert response.headers["location"].startswith("/console")
    assert not card(await read_wall(site), server_id)
    assert f'<i id="card-{server_id}" data-swap="removed"></i>'.encode() in await elsewhere.changes()


def overview_of(site: ConsoleSite, regions: Regions | None = None, max_ended: int = MAX_ENDED) -> Overview:
    deps = site.service.deps
    remote = RemoteMatches(db=deps.db, regions=deps.regions, turns=deps.turns)
    shown = regions or deps.regions
    return Overview(db=deps.db, clock=deps.clock, regions=shown, live=deps.live, remote=remote, max_ended=max_ended)


def other_wall(site: ConsoleSite, regions: Regions | None = None) -> Wall:
    """The wall as another process builds it, perhaps with regions of its own."""
    return Wall(overview_of(site, regions), site.org_ids["ours"])


async def test_all_that_failed_are_acknowledged_at_once_but_none_that_was_not_shown(site: ConsoleSite) -> None:
    ids = [await create_ended(site) for _ in range(3)]
    *_, form = FORM.finditer((await read_wall(site)).partition('id="strip"')[2].partition("</ul>")[0])
    assert set(form[2].split()) >= set(ids)
    later = await create_ended(site)
    await site.request("POST", "/console/acknowledge", who=OWNER, form={form[1]: form[2]})
    text = await read_wall(site)
    assert not any(card(text, server_id) for server_id in ids)
    assert card(text, later)


@pytest.mark.parametrize(
    "form",
    [
        {"servers": "srv_1 x;"},
        {"servers": "\x00"},
        {"servers": " ".join(["srv_01m7f8tehzvcdw0xyvmavwn8nf"] * (MAX_ENDED + 1))},
        {"group": "failed", "ended_before": "yesterday"},
        {"group": "failed", "ended_before": "1" * 16},
        {"group": "canceled", "ended_before": "1"},
    ],
)
async def test_invalid_forms_change_nothing(site: ConsoleSite, form: dict[str, str]) -> None:
    await create_ended(site)
    before = await unacknowledged(site)
    response = await site.request("POST", "/console/acknowledge", who=OWNER, form=form)
    assert response.status_code == 400
    assert await unacknowledged(site) == before


async def test_older_matches_than_those_shown_can_be_acknowledged_too(site: ConsoleSite) -> None:
    site = site.with_parts(overview=overview_of(site, max_ended=2))
    for _ in range(4):
        await create_ended(site)
    text = await read_wall(site)
    assert "Only the newest are shown." in text
    older = re.search(r'<div id="older">.*?</form>', text, re.DOTALL)
    assert older is not None
    form = dict(re.findall(r'name="(\w+)" value="([^"]*)"', older[0]))
    await site.request("POST", "/console/acknowledge", who=OWNER, form=form)
    text = await read_wall(site)
    assert "Only the newest are shown." not in text
    assert text.count('class="card match ended failed"') == 2


async def test_match_page_has_the_button_and_says_who_acknowledged(site: ConsoleSite) -> None:
    server_id = await create_ended(site)
    path = f"/console/matches/{server_id}"
    assert f'action="{path}/acknowledge"' in (await site.request("GET", path, who=OWNER)).text
    assert f'action="{path}/acknowledge"' not in (await site.request("GET", path, who=MEMBER)).text
    response = await site.request("POST", f"{path}/acknowledge", who=OWNER, form={})
    assert response.status_code == 303
    assert 'class="undo"' in (await site.follow(response, who=OWNER)).text
    site.service.broadcasts.forget()
    text = (await site.request("GET", path, who=MEMBER)).text
    assert f"by {site.keys[OWNER].view.prefix}…" in html.unescape(text)
    assert f'action="{path}/acknowledge"' not in (await site.request("GET", path, who=OWNER)).text
    assert not card(await read_wall(site), server_id)


async def test_counters_equal_the_cards_and_lead_to_them(site: ConsoleSite) -> None:
    for reason in (CancelReason.SERVER_LOST, CancelReason.CANCELED_BY_OPERATOR, None):
        await create_ended(site, reason)
    await site.create_match()
    for view, kind in (("cards", "article"), ("table", "div")):
        text = await read_wall(site, view=view)
        shown = re.findall(rf'<{kind} id="card-srv_\w+"[^>]*? data-group="(\w+)"', text)
        part = text.partition('id="counters"')[2].partition("</dl>")[0]
        counters = re.findall(r'<div class="(\w*)"><dt>(.*?)</dt><dd>(\d+)</dd>', part)
        assert len(counters) == len(WallGroup)
        assert sum(int(number) for _, _, number in counters) == len(shown)
        for tone, name, number in counters:
            state = re.search(r'data-filter-state="(\w+)"', name)
            assert (state is None) == (tone == "none") == (number == "0")
            assert state is None or shown.count(state[1]) == int(number)
    assert text.count('id="card-group-') == 0


async def test_lost_callback_is_in_the_strip_above_the_matches(site: ConsoleSite) -> None:
    callback_id = await given_up(site, "its callback is lost")
    strip = (await read_wall(site)).partition('<ul id="strip"')[2].partition("</ul>")[0]
    assert f'<a href="/console/deliveries/{callback_id}"><bdi>its callback is lost</bdi></a>' in strip


async def test_line_of_a_match_says_where_it_stands(site: ConsoleSite) -> None:
    server_id = await site.create_match(
        externalMatchId="final <1>", gameSettings=labeled(event="<cup>")["gameSettings"]
    )
    shown = line(await read_wall(site, view="table"), server_id)
    assert "final &lt;1&gt;</bdi></a>" in shown
    assert "sandbox · <bdi>&lt;cup&gt;</bdi>" in shown
    assert "starting" in shown
    assert 'data-labels="[&#34;event:\\u003ccup\\u003e&#34;]"' in shown
    failed = await create_ended(site, externalMatchId="lost")
    shown = line(await read_wall(site, view="table"), failed)
    assert "match-line ended failed" in shown
    assert "failed: the server was lost</span>" in shown
    await site.request("POST", f"/console/matches/{server_id}/cancel", who=OWNER, form={})
    await site.request("POST", "/console/acknowledge", who=OWNER, form={"servers": failed})


async def test_acknowledgement_is_undone_with_the_form_of_its_notice(site: ConsoleSite) -> None:
    server_id = await create_ended(site)
    response = await site.request("POST", "/console/acknowledge", who=OWNER, form={"servers": server_id})
    page = await site.follow(response, who=OWNER)
    at = re.search(r'class="undo" method="post" action="(.*?)".*?name="at" value="(\d+)"', page.text)
    assert at is not None
    assert not line(page.text, server_id)
    undone = await site.request("POST", at[1], who=OWNER, form={"at": at[2]})
    assert "It is back on the wall" in (await site.follow(undone, who=OWNER)).text
    assert server_id in await unacknowledged(site)
    for wrong in ("", "x", "1"):
        assert (await site.request("POST", at[1], who=OWNER, form={"at": wrong})).status_code == 400
    again = await site.request(
        "POST", "/console/acknowledge", who=OWNER, form={"servers": "srv_01m7f8tehzvcdw0xyvmavwn8nf"}
    )
    assert 'class="undo"' not in (await site.follow(again, who=OWNER)).text, "nothing was acknowledged"


async def test_everyone_sees_who_is_on_a_match(site: ConsoleSite) -> None:
    server_id = await create_ended(site)
    form = {"name": "Ada <b>", "note": 'calls "them"', "back": "?view=cards&group=//evil&search=x y"}
    response = await site.request("POST", f"/console/matches/{server_id}/claim", who=ADMIN, form=form)
    assert response.headers["location"] == "/console?view=cards&group=%2F%2Fevil&search=x+y"
    for who in (OWNER, MEMBER):
        for view, read in (("cards", card), ("table", line)):
            shown = read(await read_wall(site, who, view), server_id)
            assert "<bdi>Ada &lt;b&gt;</bdi> is on it: <bdi>calls &#34;them&#34;</bdi>" in shown
    wall = other_wall(site)
    await wall.changes()
    assert 'class="is-claimed"' in wall.part("strip")
    for wrong in ({}, {"name": " "}, {"name": "x" * 101}, {"name": "a\x00"}):
        path = f"/console/matches/{server_id}/claim"
        assert (await site.request("POST", path, who=OWNER, form=wrong)).status_code == 400
    for who in (MEMBER, STRANGER):
        for path in ("claim", "unclaim"):
            response = await site.request("POST", f"/console/matches/{server_id}/{path}", who=who, form={"name": "x"})
            assert response.status_code == 403
    await site.request("POST", f"/console/matches/{server_id}/unclaim", who=OWNER, form={})
    assert "is on it" not in line(await read_wall(site, view="table"), server_id)


def sandbox(site: ConsoleSite, *slots: str, fault: str | None = None) -> Regions:
    """The sandbox with these places for servers, all of them free."""
    fleet = UnusedFleet()
    fleet.slots, fleet.why_unusable = slots, fault
    return Regions([Region(code="sandbox", name="", location="", fleet=fleet)], site.resources.db)


async def test_silent_servers_of_a_region_are_shown_beside_the_matches(site: ConsoleSite) -> None:
    regions = sandbox(site, "a")
    regions.silent.report("srv_1", Silence(region="sandbox", host="", since_ms=1))
    wall = other_wall(site, regions)
    await wall.changes()
    assert "1 server has given no sign of life since" in wall.part("beside")
    assert ">silent servers</span>" in wall.part("beside")


@pytest.mark.parametrize(("slots", "chip"), [((), "full"), (("a",), "on")])
async def test_page_of_regions_says_which_are_full(site: ConsoleSite, slots: tuple[str, ...], chip: str) -> None:
    (view,) = await sandbox(site, *slots).views()
    assert f">{chip}</span>" in fragment("region_parts.html", "state_of", view).decode()
    deps = site.service.deps
    alerts = RegionAlerts(db=deps.db, clock=deps.clock, regions=deps.regions)  # not those of some seconds ago
    site = site.with_parts(region_alerts=alerts)
    assert 'class="chip good">on</span>' in (await site.request("GET", "/console/regions", who=OWNER)).text


async def test_region_that_is_full_is_one_line_on_every_page(site: ConsoleSite) -> None:
    match = f"/console/matches/{await site.create_match()}"
    deps = site.service.deps
    site = site.with_parts(region_alerts=RegionAlerts(db=deps.db, clock=deps.clock, regions=sandbox(site)))
    pages = [f"/console/{name}" for name in ("matches", "create", "deliveries", "webhooks", "regions", "access")]
    for path, who in [(path, OWNER) for path in (match, *pages)] + [("/console/operator", OPERATOR)]:
        text = (await site.request("GET", path, who=who)).text
        line = text.partition('class="region-alerts"')[2].partition("</ul>")[0]
        assert "sandbox</a>" in line, path
        assert "is full:" in line, path
    assert 'class="region-alerts"' not in (await site.request("GET", "/console", who=OWNER)).text, "it is in the strip"
    assert "region-alerts" not in (await site.request("GET", "/console/access", who=WRITER)).text
    await site.request("POST", f"{match}/cancel", who=OWNER, form={})


INVISIBLE = "\u3164 \u200b\u00a0"


async def test_match_whose_id_cannot_be_seen_is_named_by_its_server_everywhere(site: ConsoleSite) -> None:
    server_id = await create_ended(site, externalMatchId=INVISIBLE, callbackUrl="https://caller.example/")
    opened = await site.create_match(externalMatchId=INVISIBLE)
    wall = await read_wall(site)
    for one in (server_id, opened):
        assert f"<bdi>{one}</bdi>" in card(wall, one)
    assert f'aria-label="Acknowledge {server_id}"' in card(wall, server_id)
    found = await callback_lists.list_page(site.resources.db, site.org_ids["ours"], CallbacksQuery(server_id=server_id))
    for path, name in (
        (f"/console/matches/{server_id}", server_id),
        (f"/console/matches/{opened}", opened),
        ("/console/matches", opened),
        (f"/console/deliveries?serverId={server_id}", server_id),
        (f"/console/deliveries/{found[1][0].id}", server_id),
    ):
        text = (await site.request("GET", path, who=OWNER)).text
        assert f"<bdi>{name}</bdi>" in text, path
        assert f"<bdi>{INVISIBLE}</bdi>" not in text, path


async def test_search_of_the_address_is_in_its_field(site: ConsoleSite) -> None:
    response = await site.request("GET", "/console?search=%22%3E%3Cscript%3E+final", who=OWNER)
    assert response.status_code == 200
    assert 'value="&#34;&gt;&lt;script&gt; final"' in response.text
    for path in ("/console?search=%ff", f"/console?search={'x' * 400}"):
        assert (await site.request("GET", path, who=OWNER)).status_code == 200


async def test_region_without_a_free_server_is_one_line_with_the_number_of_matches(site: ConsoleSite) -> None:
    db, now_ms = site.resources.db, site.resources.clock.now_ms()
    ids = [await site.create_match() for _ in range(3)]
    pending: dict[str, Value] = {
        "phase": ServerPhase.PENDING,
        "status": ServerStatus.PENDING,
        "created_at_ms": now_ms - 90_000,
    }
    await db.write([servers.change(server_id, 0, **pending) for server_id in ids])
    for regions, is_on, condition, words in (
        (sandbox(site), True, "full", "is full"),
        (sandbox(site, "a", fault="host-7 is down"), True, "not available", "cannot start servers at present"),
        (sandbox(site, "a"), False, "switched off", "is switched off"),
        (sandbox(site, "a"), True, "", "has no server for new matches"),
    ):
        await region_flags.set_active(db, "sandbox", is_on)
        wall = other_wall(site, regions)
        await wall.changes()
        text = " ".join(re.sub(r"<[^>]*>", " ", wall.part("strip")).split())
        assert f"sandbox {words}: 3 matches wait for a free server, the first for 1:3" in text
        assert not any("data-urgent" in line(str(wall.cards), server_id) for server_id in ids)
        chips = re.findall(r'<span class="chip[^>]*>(.*?)</span>', wall.part("beside"))
        assert chips == [one for one in [condition] if one]
        assert "host-7" not in wall.part("beside")
    for server_id in ids:
        await site.request("POST", f"/console/matches/{server_id}/cancel", who=OWNER, form={})


# --- groups by label ------------------------------------------------------------------------------------------------


def labeled(**labels: str) -> dict[str, object]:
    return {"gameSettings": {"matchType": "competitive", "map": "de_mirage", "labels": labels}}


async def test_wall_is_grouped_by_a_label(site: ConsoleSite) -> None:
    ids = [await site.create_match(OWNER, **labeled(table=table)) for table in ("10", "9", "<b>9")]
    plain = await read_wall(site)
    assert '<a class="chip" href="/console?group=table" data-set="group" data-to="table">table</a>' in plain
    assert "table: 10" in card(plain, ids[0])
    site.service.broadcasts.forget()
    text = (await site.request("GET", "/console?group=table", who=OWNER)).text
    assert 'data-follow="table/table"' in text
    assert 'aria-current="true">table</a>' in text
    found = [
        text.index(part) for part in ("<bdi>&lt;b&gt;9</bdi>", ids[2], "<bdi>9</bdi>", ids[1], "<bdi>10</bdi>", ids[0])
    ]
    assert found == sorted(found)
    assert "without table" in text
    site.service.broadcasts.forget()
    wrong = await site.request("GET", "/console?group=a%20table", who=OWNER)
    assert (wrong.status_code, 'data-follow="table"' in wrong.text) == (200, True)
    for server_id in ids:
        await site.request("POST", f"/console/matches/{server_id}/cancel", who=OWNER, form={})


async def test_acknowledging_leads_back_to_the_wall_as_it_was(site: ConsoleSite) -> None:
    server_id = await create_ended(site)
    for back, address in (
        ("?group=table&view=cards", "/console?group=table&view=cards"),
        ("?next=//evil.example", "/console"),
        ("//evil.example", "/console"),
        ("", "/console"),
    ):
        form = {"servers": server_id, "back": back}
        response = await site.request("POST", "/console/acknowledge", who=OWNER, form=form)
        assert response.headers["location"] == address


async def test_region_whose_last_creations_failed_looks_so(site: ConsoleSite) -> None:
    for _ in range(2):
        await create_ended(site, CancelReason.SERVER_FAILED)
    regions, deps = sandbox(site, "a"), site.service.deps
    wall = other_wall(site, regions)
    await wall.changes()
    chip = '<span class="chip bad">failing</span>'
    assert "failed to start a server for the last <strong>2</strong> matches" in wall.part("strip")
    assert chip in wall.part("beside")
    site = site.with_parts(region_alerts=RegionAlerts(db=deps.db, clock=deps.clock, regions=regions))
    assert chip in (await site.request("GET", "/console/regions", who=OWNER)).text
