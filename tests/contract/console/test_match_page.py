"""The page of a match, what can be done there, and its overlay."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import httpx
import msgspec
import pytest
from markupsafe import escape

from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure
from matchpod.core.outcome import Outcome
from matchpod.ports import Statement
from matchpod.service.end_match import end_match
from matchpod.service.match_log.entries import EntryKind
from matchpod.storage import demos, history, outbox, raw_log, servers
from tests.contract.console import console_site
from tests.contract.console.console_site import ADMIN, CASTER, MEMBER, OWNER, REFEREE, STRANGER, ConsoleSite
from tests.contract.console.test_form_faults import Elements, check_faults
from tests.stored_demos import upload_demo

pytestmark = pytest.mark.asyncio(loop_scope="module")
site = console_site.site

RECORDED = "the server exited; its last output: no game <here>"
EVIL = "<img src=x onerror=alert(1)>{{7*7}}"


async def new_match(site: ConsoleSite, **settings: Any) -> str:
    teams = {
        "team1": {"name": "Reds & Co", "players": ["76561198000000001"]},
        "team2": {"name": "Blues", "players": ["76561198000000002"]},
    }
    game = {"matchType": "competitive", "map": "de_mirage", "teams": teams}
    return await site.create_match(**{"gameSettings": game, **settings})


async def audit(site: ConsoleSite) -> list[tuple[str, str]]:
    found = await site.resources.db.read("SELECT action, target FROM audit_log ORDER BY id")
    return [(str(row[0]), str(row[1])) for row in found]


async def test_match_without_a_server_is_shown(site: ConsoleSite) -> None:
    server_id = await new_match(site, externalMatchId=EVIL)
    page = await site.request("GET", f"/console/matches/{server_id}", who=OWNER)
    assert page.status_code == 200
    assert "starting a server" in page.text
    assert "Reds &amp; Co" in page.text
    assert "<img src=x" not in page.text
    assert "&lt;img src=x onerror=alert(1)&gt;{{7*7}}" in page.text
    heads = r'<th scope="rowgroup"[^>]*>.*?>([AB])</span> +<bdi class="name">(.*?)</bdi>'
    assert re.findall(heads, page.text[page.text.index('id="roster"') :]) == [("A", "Reds &amp; Co"), ("B", "Blues")]
    assert f'data-follow="match/{server_id}" data-position="' in page.text
    assert "Cancel the match" in page.text
    assert "Show the RCON password" not in page.text  # it has no server yet


async def test_referee_has_all_actions_but_those_that_decide_about_the_match(site: ConsoleSite) -> None:
    server_id = await running_match(site)
    before = site.stored()
    page = (await site.request("GET", f"/console/matches/{server_id}", who=REFEREE)).text
    for name in ("cancel", "password", "withdraw-ruling", "ruling"):
        assert f"{server_id}/{name}" not in page
        answer = await site.request("POST", f"/console/matches/{server_id}/{name}", who=REFEREE, form={})
        assert (answer.status_code, "This is for owners and admins" in answer.text) == (403, True), name
    assert site.stored() == before
    assert f"{server_id}/overlay" in page
    assert 'id="act-pause"' in page
    assert (await request_action(site, server_id, "say", REFEREE, text="hello")).status_code == 303
    shown = (await site.request("GET", f"/console/matches/{server_id}", who=OWNER)).text
    assert "Rita &lt;b&gt;R&lt;/b&gt;" in shown[shown.index('id="requested"') :]


@pytest.mark.parametrize(
    ("who", "is_shown"), [(OWNER, True), (ADMIN, True), (REFEREE, True), (CASTER, True), (MEMBER, False)]
)
async def test_casters_and_referees_see_how_to_connect(site: ConsoleSite, who: str, *, is_shown: bool) -> None:
    game = {"matchType": "competitive", "map": "de_mirage", "serverPassword": "open sesame"}
    server_id = await running_match(site, gameSettings=game)
    page = (await site.request("GET", f"/console/matches/{server_id}", who=who)).text
    assert ("; password &#34;open sesame&#34;" in page, "the password of the match" in page) == (is_shown, not is_shown)
    assert ('id="act-' in page) is (who not in (CASTER, MEMBER))


async def test_creator_is_named_to_owners_and_admins_only(site: ConsoleSite) -> None:
    server_id = await new_match(site)
    creator = site.keys[OWNER].view.prefix
    for who, sees in ((OWNER, True), (ADMIN, True), (REFEREE, False), (CASTER, False), (MEMBER, False)):
        page = await site.request("GET", f"/console/matches/{server_id}", who=who)
        assert (f" with <bdi>{creator}…</bdi>" in page.text[page.text.index('id="order"') :]) is sees, who
    assert ("match_created", server_id) in await audit(site)


async def test_secrets_in_a_callback_url_are_on_no_page_of_members(site: ConsoleSite) -> None:
    server_id = await new_match(site, callbackUrl="https://caller.example/hook?sig=s3cret")
    paths = [f"/console/matches/{server_id}", "/console/matches", "/console/matches.csv", "/console"]
    for is_over in (False, True):
        if is_over:
            await site.request("POST", f"/console/matches/{server_id}/cancel", who=ADMIN, form={})
            callback = await outbox.callback_of(site.resources.db, server_id)
            assert callback is not None
            paths += ["/console/deliveries", f"/console/deliveries/{callback.id}"]
        for path, who in product(paths, (MEMBER, REFEREE, CASTER)):
            page = await site.request("GET", path, who=who)
            assert (page.status_code, "s3cret" in page.text) == (200, False), path


@pytest.mark.parametrize("path", ["", "/result.json", "/log.txt"])
async def test_other_organizations_see_nothing(site: ConsoleSite, path: str) -> None:
    server_id = await new_match(site)
    answer = await site.request("GET", f"/console/matches/{server_id}{path}", who=STRANGER)
    assert answer.status_code == 403
    assert "Reds" not in answer.text
    acted = await site.request("POST", f"/console/matches/{server_id}/cancel", who=STRANGER, form={})
    assert acted.status_code == 403


@pytest.mark.parametrize("server_id", ["srv_unknown", "%00", "a" * 300])
async def test_unknown_match_is_not_found(site: ConsoleSite, server_id: str) -> None:
    assert (await site.request("GET", f"/console/matches/{server_id}", who=OWNER)).status_code == 404


async def test_cancel_is_done_once_and_recorded(site: ConsoleSite) -> None:
    server_id = await new_match(site, callbackUrl="http://203.0.113.9/hook")
    answer = await site.request("POST", f"/console/matches/{server_id}/cancel", who=ADMIN, form={})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/console/matches/{server_id}")
    page = await site.follow(answer, who=ADMIN)
    assert "The match is canceled." in page.text
    assert "canceled by user" in page.text
    assert "data-follow" not in page.text  # nothing changes any more
    assert "What went wrong" not in page.text
    assert "Not started yet" not in page.text
    again = await site.request("POST", f"/console/matches/{server_id}/cancel", who=ADMIN, form={})
    assert again.status_code == 409
    assert "is no longer possible" in again.text
    acts = [one[0] for one in await audit(site) if one[1] == server_id]
    assert acts == ["match_created", "match_canceled"]


async def test_action_must_exist_and_be_allowed(site: ConsoleSite) -> None:
    server_id = await new_match(site)
    assert (await site.request("POST", f"/console/matches/{server_id}/explode", who=OWNER, form={})).status_code == 404
    early = await site.request("POST", f"/console/matches/{server_id}/password", who=OWNER, form={})
    assert early.status_code == 409


async def test_ended_match_without_play_has_no_result_and_an_empty_log(site: ConsoleSite) -> None:
    server_id = await new_match(site)
    await site.request("POST", f"/console/matches/{server_id}/cancel", who=OWNER, form={})
    assert (await site.request("GET", f"/console/matches/{server_id}/result.json", who=OWNER)).status_code == 404
    log = await site.request("GET", f"/console/matches/{server_id}/log.txt", who=OWNER)
    assert (log.status_code, log.content) == (200, b"")
    assert log.headers["content-disposition"] == f'attachment; filename="{server_id}.log"'


async def test_demos_of_an_ended_match_are_listed_and_downloaded(site: ConsoleSite) -> None:
    server_id, db = await new_match(site), site.resources.db
    await site.request("POST", f"/console/matches/{server_id}/cancel", who=OWNER, form={})
    await db.write([Statement("UPDATE maps SET started_at_ms = 1 WHERE server_id = :id", {"id": server_id})])
    row = await servers.get(db, server_id)
    (played,) = await history.maps_of(db, server_id)
    assert row is not None
    await db.write([demos.expect(row, map_id=played.id, map_number=1, now_ms=1)])
    address = f"/console/matches/{server_id}"
    assert "Demo of map 1, de_mirage" in (await site.request("GET", address, who=MEMBER)).text
    for body in (b"demo of the map", b""):
        await upload_demo(db, site.resources.demo_storage, server_id, body, file_name="<b>.dem")
    page = (await site.request("GET", address, who=MEMBER)).text
    link = f"/console/maps/{played.id}/demo?number=1"
    assert f'<a href="{link}" download>Demo of map 1, de_mirage</a>' in page
    assert "missing: the upload ended too early" in page
    assert "<bdi>_b_.dem</bdi>" in page
    assert (await site.request("GET", link, who=MEMBER)).content == b"demo of the map"
    assert (await site.request("GET", link, who=STRANGER)).status_code == 403


async def fail(site: ConsoleSite, reason: CancelReason, failure: Failure | None, *, log: bytes = b"") -> str:
    server_id = await new_match(site)
    columns = {"id": server_id, "reason": reason.value, "failure": failure and failure.value, "error": RECORDED}
    failed = Statement(
        "UPDATE servers SET phase = 'released', status = 'failed', reason = :reason, failure = :failure,"
        " error = :error, ended_at_ms = created_at_ms + 1000 WHERE id = :id",
        columns,
    )
    posts = raw_log.append(server_id, EntryKind.LOG, received_ms=1, headers=b"{}", body=log) if log else []
    await site.resources.db.write([failed, *posts])
    return server_id


async def test_failed_match_shows_its_error_and_the_end_of_its_log(site: ConsoleSite) -> None:
    server_id = await fail(site, CancelReason.SERVER_FAILED, Failure.START_FAILED, log=b"first\nlast <b>words</b>\n")
    replaced = b"from a server that was replaced\n"
    posts = raw_log.append(server_id, EntryKind.LOG, received_ms=2, headers=b"{}", body=replaced, attempt="another")
    await site.resources.db.write(posts)
    page = (await site.request("GET", f"/console/matches/{server_id}", who=ADMIN)).text
    assert "Failed: the server did not work." in page
    assert "The server could not be started." in page
    assert "the server exited; its last output: no game &lt;here&gt;" in page
    assert "first\nlast &lt;b&gt;words&lt;/b&gt;</pre>" in page
    assert "from a server that was replaced" not in page
    assert "Not started yet" not in page
    seen = (await site.request("GET", f"/console/matches/{server_id}", who=MEMBER)).text
    assert "The server could not be started." in seen
    assert "no game" not in seen
    assert "last &lt;b&gt;words" not in seen


async def test_error_of_a_region_is_not_shown(site: ConsoleSite) -> None:
    server_id = await fail(site, CancelReason.NO_CAPACITY, None)
    page = (await site.request("GET", f"/console/matches/{server_id}", who=OWNER)).text
    assert "Failed: no free server." in page
    assert "no game" not in page
    assert "None arrived." in page


@pytest.mark.parametrize("number", ["1", "999", "x", "-1", "<b>", "1e9"])
async def test_round_in_the_address_filters_the_feed(site: ConsoleSite, number: str) -> None:
    server_id = await new_match(site)
    page = await site.request("GET", f"/console/matches/{server_id}?round={number}", who=OWNER)
    assert page.status_code == 200
    assert ("Show the whole feed" in page.text) == number.isdigit()


async def ended_match(site: ConsoleSite, **settings: Any) -> str:
    """Create a match whose players did not come."""
    server_id = await new_match(site, **settings)
    change = (
        "UPDATE servers SET phase = 'released', status = 'stopped', match_phase = 'ended', reason = 'incomplete_roster',"
        " ended_at_ms = :now_ms WHERE id = :id"
    )
    now_ms = site.resources.clock.now_ms()
    await site.resources.db.write([Statement(change, {"id": server_id, "now_ms": now_ms})])
    return server_id


async def rule(site: ConsoleSite, server_id: str, who: str = ADMIN, **form: str) -> httpx.Response:
    return await site.request("POST", f"/console/matches/{server_id}/ruling", who=who, form=form)


async def test_ended_match_is_ruled_and_the_ruling_withdrawn(site: ConsoleSite) -> None:
    server_id = await ended_match(site)
    page = await site.request("GET", f"/console/matches/{server_id}", who=ADMIN)
    assert "There is no ruling: what was played counts." in page.text
    assert "Withdraw the ruling" not in page.text
    done = await rule(site, server_id, winner="team1", reason=f" {EVIL} ", by="Eva")
    page = await site.follow(done, who=ADMIN)
    assert "The ruling counts from now on." in page.text
    assert page.text.count("Winner by ruling: Reds &amp; Co") == 2
    assert "&lt;img src=x onerror=alert(1)&gt;" in page.text
    assert "All rulings" not in page.text
    assert "Winner by ruling: Reds &amp; Co" in (await site.request("GET", "/console/matches", who=MEMBER)).text
    csv = (await site.request("GET", "/console/matches.csv", who=MEMBER)).text
    assert f",team1,{EVIL}" in csv
    seen = (await site.request("GET", f"/console/matches/{server_id}", who=MEMBER)).text
    assert "Winner by ruling: Reds &amp; Co" in seen
    assert "Rule" not in seen
    withdrawn = await site.request("POST", f"/console/matches/{server_id}/withdraw-ruling", who=ADMIN, form={})
    page = await site.follow(withdrawn, who=ADMIN)
    assert "The ruling is withdrawn" in page.text
    assert "All rulings" in page.text
    assert page.text.count("Winner by ruling") == 1
    acts = [one[0] for one in await audit(site) if one[1] == server_id]
    assert acts == ["match_created", "match_ruled", "ruling_withdrawn"]


async def test_faults_of_a_ruling_are_shown_at_its_fields(site: ConsoleSite) -> None:
    server_id = await ended_match(site)
    answer = await rule(site, server_id, winner="tie", reason="a\u200bb", by="x" * 101)
    assert answer.status_code == 400
    page = Elements(answer.text)
    assert page.ids("aria-invalid") == ["ruling-winner", "ruling-reason", "ruling-by"]
    assert page.ids("autofocus") == ["ruling-winner"]
    assert "must be 1 to 100 characters." in answer.text
    assert f'value="{"x" * 101}"' in answer.text
    missing = await rule(site, server_id, reason="no-show")
    assert Elements(missing.text).ids("aria-invalid") == ["ruling-winner"]
    assert 'value="no-show"' in missing.text


async def test_ruling_is_offered_only_after_the_end_and_within_thirty_days(site: ConsoleSite) -> None:
    server_id = await ended_match(site)
    assert "Rule on this match" in await site.page(f"/console/matches/{await ended_match(site)}")
    old = Statement("UPDATE servers SET ended_at_ms = 1 WHERE id = :id", {"id": server_id})
    await site.resources.db.write([old])
    late = await rule(site, server_id, winner="none")
    assert late.status_code == 409
    assert "more than 30 days ago" in late.text
    assert "Rule on this match" not in await site.page(f"/console/matches/{server_id}")
    assert "Rule on this match" not in await site.page(f"/console/matches/{await new_match(site)}")


async def test_section_of_rulings_is_shown_only_with_a_ruling_or_with_the_form(site: ConsoleSite) -> None:
    server_id = await ended_match(site)
    address = f"/console/matches/{server_id}"
    for who, is_shown in ((ADMIN, True), (REFEREE, False), (MEMBER, False)):
        assert ('id="ruling"' in await site.page(address, who=who)) is is_shown, who
    await rule(site, server_id, winner="team1")
    site.service.broadcasts.forget()
    assert 'id="ruling"' in await site.page(address, who=MEMBER)
    await site.request("POST", f"{address}/withdraw-ruling", who=ADMIN, form={})
    site.service.broadcasts.forget()
    assert 'id="ruling"' not in await site.page(address, who=MEMBER)
    assert "All rulings" in await site.page(address, who=REFEREE)


async def finished_deathmatch(site: ConsoleSite) -> str:
    """Create a deathmatch that a player with a hostile name has won."""
    server_id = await site.create_match(gameSettings={"matchType": "deathmatch", "map": "de_dust2"})
    row = await servers.get(site.resources.db, server_id)
    assert row is not None
    result = {"winnerSteamId": "1", "winnerTeam": None, "players": [{"steamId": "1", "name": EVIL}]}
    outcome = Outcome(at_ms=site.resources.clock.now_ms(), reason=None)
    stored = msgspec.json.encode(result)
    await site.resources.db.write(end_match(row, outcome, result=stored, fence=None, callback_id=f"msg_{server_id}"))
    return server_id


async def test_winner_of_a_deathmatch_is_named_on_its_page_the_wall_and_the_list(site: ConsoleSite) -> None:
    server_id = await finished_deathmatch(site)
    won = f"<bdi>{escape(EVIL)} won</bdi>"
    for path in (f"/console/matches/{server_id}", "/console/matches", "/console?view=table", "/console?view=cards"):
        site.service.broadcasts.forget()
        assert won in await site.page(path, who=MEMBER), path
    assert f"{EVIL} won" in await site.page("/console/matches.csv", who=MEMBER)


@pytest.mark.parametrize(
    ("settings", "scores"),
    [({}, ["–", "–"]), ({"seriesFormat": "bo3", "maps": ["de_nuke"]}, ["0", "0", "–", "–"])],
    ids=["one map", "series"],
)
async def test_match_that_has_not_begun_has_no_score(
    site: ConsoleSite, settings: dict[str, Any], scores: list[str]
) -> None:
    game = {"matchType": "competitive", "map": "de_mirage", "teams": {"team1": {"name": "a"}, "team2": {"name": "b"}}}
    server_id = await running_match(site, gameSettings={**game, **settings})
    page = await site.page(f"/console/matches/{server_id}")
    heading = page[page.index('id="heading"') : page.index("</section>", page.index('id="heading"'))]
    assert re.findall(r"<b>(.)</b>", heading) == scores
    site.service.broadcasts.forget()
    lines = await site.page("/console?view=table")
    line = lines[lines.index(f'id="card-{server_id}"') :]
    assert re.findall(r'<b class="score">(.) : (.)</b>', line)[0] == ("–", "–")


async def test_deathmatch_offers_only_that_it_is_void(site: ConsoleSite) -> None:
    server_id = await ended_match(site, gameSettings={"matchType": "deathmatch", "map": "de_dust2"})
    page = (await site.request("GET", f"/console/matches/{server_id}", who=OWNER)).text
    assert "No team: the match is void" in page
    assert ">Team 1</option>" not in page
    assert "Void by ruling" in (await site.follow(await rule(site, server_id, winner="none"), who=OWNER)).text


async def running_match(site: ConsoleSite, **settings: Any) -> str:
    """Create a match whose server runs, and which waits for its players."""
    server_id = await new_match(site, **settings)
    change = "UPDATE servers SET phase = 'running', status = 'running', ip = '203.0.113.7', port = 27015,"
    change += " running_at_ms = created_at_ms WHERE id = :id"
    await site.resources.db.write([Statement(change, {"id": server_id})])
    return server_id


async def request_action(
    site: ConsoleSite, server_id: str, action: str, who: str = ADMIN, **fields: str
) -> httpx.Response:
    form = {"action-type": action, **fields}
    return await site.request("POST", f"/console/matches/{server_id}/actions", who=who, form=form)


async def test_requested_action_is_listed_with_who_asked_for_it(site: ConsoleSite) -> None:
    server_id = await running_match(site)
    done = await request_action(site, server_id, "say", text=" Welcome to all ", reason=EVIL, by="Eva")
    page = await site.follow(done, who=ADMIN)
    assert "The action is requested." in page.text
    assert '<b class="chip warn">Say: requested</b>' in page.text
    listed = page.text[page.text.index('id="requested"') :]
    assert "<b>Say</b>: <bdi>Welcome to all</bdi>" in listed
    assert f"with <bdi>{site.keys[ADMIN].view.prefix}…</bdi> by <bdi>Eva</bdi>" in listed
    assert "&lt;img src=x onerror=alert(1)&gt;" in listed
    assert [one[0] for one in await audit(site) if one[1] == server_id] == ["match_created", "action_requested"]


async def test_actions_that_are_not_possible_say_why(site: ConsoleSite) -> None:
    page = await site.request("GET", f"/console/matches/{await new_match(site)}", who=OWNER)
    assert "The server of the match is not running yet." in page.text
    assert 'id="act-say"' not in page.text
    server_id = await running_match(site)
    page = await site.request("GET", f"/console/matches/{server_id}", who=OWNER)
    elements = Elements(page.text)
    possible = ["say", "kick", "addPlayer", "removePlayer", "replacePlayer", "extendJoin"]
    assert elements.ids("class", "action") == [f"act-{one}" for one in possible]
    assert elements.ids("class", "action impossible") == ["act-pause", "act-unpause", "act-restore", "act-start"]
    assert "Not possible now: No map is live yet: the match waits for its players." in page.text
    refused = await request_action(site, server_id, "pause", reason="a cable")
    assert refused.status_code == 409
    assert "No map is live yet: the match waits for its players." in refused.text[: refused.text.index('id="act"')]
    assert Elements(refused.text).ids("autofocus") == ["faults"]
    assert 'value="a cable"' in refused.text


async def test_faults_of_an_action_are_shown_at_its_fields(site: ConsoleSite) -> None:
    server_id = await running_match(site)
    answer = await request_action(site, server_id, "say", text="quit; exit", by="x" * 101)
    assert answer.status_code == 400
    check_faults(answer.text, ["again-text", "again-by"])
    assert 'value="quit; exit"' in answer.text
    other = await request_action(site, server_id, "removePlayer", steamId="other", steamIdOther="ann")
    check_faults(other.text, ["again-steamIdOther"])
    unknown = await request_action(site, server_id, "surrender")
    assert unknown.status_code == 400


async def test_member_sees_what_was_requested_and_no_forms(site: ConsoleSite) -> None:
    server_id = await running_match(site)
    for who, status in ((MEMBER, 403), (STRANGER, 403), (OWNER, 303)):
        assert (await request_action(site, server_id, "say", who, text="hello")).status_code == status, who
    page = (await site.request("GET", f"/console/matches/{server_id}", who=MEMBER)).text
    assert "<b>Say</b>: <bdi>hello</bdi>" in page
    assert site.keys[OWNER].view.prefix not in page[page.index('id="requested"') :]
    assert f"{server_id}/actions" not in page


async def test_actions_of_an_ended_match_are_shown_and_no_forms(site: ConsoleSite) -> None:
    server_id = await running_match(site)
    await request_action(site, server_id, "say", text="hello")
    await site.request("POST", f"/console/matches/{server_id}/cancel", who=ADMIN, form={})
    page = (await site.request("GET", f"/console/matches/{server_id}", who=OWNER)).text
    assert "The match ended before this was done." in page
    assert 'id="act-' not in page
    late = await request_action(site, server_id, "say", text="late")
    assert late.status_code == 409
    assert "The match has ended." in late.text


async def again(site: ConsoleSite, server_id: str, who: str = ADMIN, **form: str) -> httpx.Response:
    sent = {"once": "form-0", **form}
    return await site.request("POST", f"/console/matches/{server_id}/again", who=who, form=sent)


async def test_ended_match_is_created_again_with_the_secrets_that_are_typed_again(site: ConsoleSite) -> None:
    game = {
        "matchType": "wingman",
        "map": "de_nuke",
        "seriesFormat": "bo3",
        "serverPassword": "join-4711",
        "teams": {"team1": {"name": "Reds & Co", "players": ["76561198000000001"]}, "team2": {"name": "Blues"}},
        "labels": {"event": "finals"},
    }
    order = {"callbackUrl": "https://caller.example/hook?sig=s3cret", "callbackAuthToken": "token-0815"}
    assert (await again(site, await new_match(site))).status_code == 409
    server_id = await ended_match(site, gameSettings=game, externalMatchId=EVIL, **order)
    page = (await site.request("GET", f"/console/matches/{server_id}", who=ADMIN)).text
    assert "Create it again" in page
    assert order["callbackUrl"] in page
    assert "join-4711" not in page
    assert "token-0815" not in page
    asked = await again(site, server_id, once="form-1")
    assert asked.status_code == 400
    check_faults(asked.text, ["anew-serverPassword", "anew-callbackAuthToken"])
    typed = {"serverPassword": "join-4712", "without-callbackAuthToken": "yes", "once": "form-1"}
    done = await again(site, server_id, **typed)
    assert "The match was created." in (await site.follow(done, who=ADMIN)).text
    assert (await again(site, server_id, **typed)).headers["location"] == done.headers["location"]
    first, new = [
        await servers.get(site.resources.db, one) for one in (server_id, done.headers["location"].rpartition("/")[2])
    ]
    assert first is not None
    assert new is not None
    assert new.id != first.id
    for name in ("region", "external_match_id", "callback_url", "settings"):
        assert getattr(new, name) == getattr(first, name), name
    assert site.resources.vault.open(new.server_password or b"") == "join-4712"
    assert new.callback_auth is None


async def test_players_of_the_table_lead_to_their_actions(site: ConsoleSite) -> None:
    server_id = await running_match(site)
    address = f"/console/matches/{server_id}"
    page = (await site.request("GET", address, who=ADMIN)).text
    link = f"{address}?act=replacePlayer&amp;player=76561198000000001#again-title"
    assert link in page
    assert f"{address}?act=addPlayer&amp;as=spectator#again-title" in page
    assert "?act=" not in (await site.request("GET", address, who=MEMBER)).text
    form = (await site.request("GET", f"{address}?act=replacePlayer&player=76561198000000001", who=ADMIN)).text
    form = form[form.index('id="again-title"') : form.index('id="act"')]
    assert (
        '<option id="again-out-76561198000000001" value="76561198000000001" selected>76561198000000001, Reds &amp; Co, not on the server</option>'
        in form
    )
    assert "Nothing was requested" not in form
    form = (await site.request("GET", f"{address}?act=addPlayer&as=spectator", who=ADMIN)).text
    assert '<option id="again-as-spectator" value="spectator" selected>' in form
    for odd in ("?act=forfeit", "?act=replacePlayer&player=<b>", "?act=x&as=y", "?map=9", "?map=x"):
        page = (await site.request("GET", address + odd, who=ADMIN)).text
        assert "<b>" not in page[: page.index('id="heading"')]
        assert ('id="again-title"' in page) is (odd.startswith("?act=replacePlayer"))


async def test_answer_in_the_chat_leads_back_to_the_chat(site: ConsoleSite) -> None:
    server_id = await running_match(site)
    page = (await site.request("GET", f"/console/matches/{server_id}", who=ADMIN)).text
    assert 'id="answer-text"' in page
    done = await request_action(site, server_id, "say", text="We are coming", place="chat")
    assert done.headers["location"] == f"/console/matches/{server_id}#chat-title"
    assert 'id="answer-text"' not in (await site.request("GET", f"/console/matches/{server_id}", who=MEMBER)).text


async def test_maps_of_a_series_are_tabs(site: ConsoleSite) -> None:
    game = {"matchType": "competitive", "map": "de_nuke", "maps": ["de_mirage"], "seriesFormat": "bo3"}
    server_id = await ended_match(site, gameSettings=game)
    played = "UPDATE maps SET started_at_ms = 1, winner = 'team2' WHERE server_id = :id AND map_number < 3"
    await site.resources.db.write([Statement(played, {"id": server_id})])
    address = f"/console/matches/{server_id}"
    page = (await site.request("GET", address, who=MEMBER)).text
    tabs = page[page.index('id="tabs"') : page.index("</nav>", page.index('id="tabs"'))]
    assert re.findall(r'href="[^"]*(\?map=\d)" data-map="(\d)"( aria-current="true")?', tabs) == [
        ("?map=1", "1", ""),
        ("?map=2", "2", ' aria-current="true"'),
    ]
    assert "Map 2: de_mirage" in page
    page = (await site.request("GET", f"{address}?map=1", who=MEMBER)).text
    assert "Map 1: de_nuke" in page
    assert "Map 2: de_mirage" not in page
    assert "Map 2: de_mirage" in (await site.request("GET", f"{address}?map=3", who=MEMBER)).text
