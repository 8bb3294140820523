"""Keys, the webhook secret, sessions and the audit log: who sees and does what, and that secrets are shown once."""

from __future__ import annotations

import logging
import re

import httpx
import pytest
from markupsafe import escape

from matchpod.service.access.audit import PAGE_SIZE, Action, Audit
from matchpod.service.access.console_sessions import MAX_SESSIONS, ConsoleSessions
from matchpod.service.identity.principals import Role, Scope
from tests.contract.console import console_site
from tests.contract.console.console_site import (
    ADMIN,
    CASTER,
    MEMBER,
    NAMES,
    OPERATOR,
    OWNER,
    REFEREE,
    STRANGER,
    WRITER,
    ConsoleSite,
)

PATH = "/console/access"
NEW_KEY = {"name": "ci", "role": "admin", "servers:read": "on", "servers:write": "on", "days": "90"}
KEY_TEXT = re.compile(r"mk_live_[A-Za-z0-9_-]{43}")
HOSTILE = "<script>alert(1)</script>"


site = console_site.own_site


async def post(site: ConsoleSite, path: str, *, who: str = OWNER, **form: str) -> httpx.Response:
    return await site.request("POST", f"{PATH}/{path}", who=who, form=form)


async def create(site: ConsoleSite, **form: str) -> str:
    """Create a key in the console; return its text."""
    response = await site.request("POST", f"{PATH}/keys", who=OWNER, form={**NEW_KEY, **form})
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    texts: set[str] = set(KEY_TEXT.findall(response.text))
    (text,) = texts
    return text


async def actions(site: ConsoleSite, org_id: str | None) -> list[tuple[str, str, str]]:
    audit = Audit(db=site.resources.db, clock=site.resources.clock)
    return [(item.action, item.target, item.detail) for item in await audit.page(org_id)]


async def session_id(site: ConsoleSite, who: str) -> str:
    user = await site.sessions.find(site.cookies[who])
    assert user is not None
    return user.session_id


# --- who sees what ------------------------------------------------------------------------------------------------


async def test_members_see_their_own_key_and_sessions_and_no_audit_log(site: ConsoleSite) -> None:
    text = await site.page(PATH, who=MEMBER)
    assert f"{site.keys[MEMBER].view.prefix}…" in text
    assert all(f"{site.keys[one].view.prefix}…" not in text for one in (OWNER, ADMIN, WRITER))
    assert "Audit log" not in text
    assert "Audit log" in await site.page(PATH, who=ADMIN)


@pytest.mark.parametrize(("who", "may_manage"), [(OWNER, True), (ADMIN, False)])
async def test_keys_are_listed_for_managers_and_managed_by_owners(
    site: ConsoleSite, who: str, *, may_manage: bool
) -> None:
    text = await site.page(PATH, who=who)
    for one in (OWNER, ADMIN, MEMBER, WRITER):
        assert f"{site.keys[one].view.prefix}…" in text
        assert site.keys[one].text not in text
    assert f"{site.keys[STRANGER].view.prefix}…" not in text
    assert ("/revoke" in text, "/rotate" in text, "Create a key" in text, "/secret/" in text) == (may_manage,) * 4


async def test_operators_see_their_own_sessions_and_all_log_ins(site: ConsoleSite) -> None:
    text = await site.page(PATH, who=OPERATOR)
    assert "Sessions of operators" in text
    assert "API keys" not in text
    assert await session_id(site, OPERATOR) in text
    for who in (OWNER, STRANGER):
        assert f"<code>{await session_id(site, who)}</code>" in text
    assert "ours" in text
    assert "theirs" in text


# --- keys ---------------------------------------------------------------------------------------------------------


async def test_new_key_works_and_is_shown_once(site: ConsoleSite, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    text = await create(site, name=HOSTILE)
    principal = await site.service.access.authenticate(f"Bearer {text}")
    assert (principal.org_id, principal.role, len(principal.scopes)) == (site.org_ids["ours"], "admin", 2)
    listed = await site.page(PATH)
    assert text not in listed
    assert f"{text[:12]}…" in listed
    assert HOSTILE not in listed
    assert not any(text in line for line in site.stored())
    assert text not in caplog.text
    assert not any(text in str(vars(record)) for record in caplog.records)
    assert ("key_created", principal.key_id) in {one[:2] for one in await actions(site, site.org_ids["ours"])}
    assert "created a key" in listed


async def test_revoked_key_ends_its_sessions_also_that_of_its_owner(site: ConsoleSite) -> None:
    key = site.keys[ADMIN]
    assert (await site.page(PATH)).count("(mk_live_") == 0
    response = await post(site, f"keys/{key.view.id}/revoke")
    assert response.headers["location"] == f"{PATH}"
    ended = await site.request("GET", PATH, who=ADMIN)
    assert ended.status_code == 303
    assert ended.headers["location"].startswith("/console/login")
    assert [one.key_id for one in await site.sessions.list(site.org_ids["ours"])].count(key.view.id) == 0
    assert ("key_revoked", key.view.id, "") in await actions(site, site.org_ids["ours"])
    await post(site, f"keys/{key.view.id}/revoke")
    assert [one[0] for one in await actions(site, site.org_ids["ours"])].count("key_revoked") == 1
    await post(site, f"keys/{site.keys[OWNER].view.id}/revoke")  # one's own
    assert (await site.request("GET", PATH, who=OWNER)).status_code == 303


async def test_rotated_key_is_replaced_and_still_works_for_the_overlap(site: ConsoleSite) -> None:
    old = site.keys[MEMBER]
    response = await post(site, f"keys/{old.view.id}/rotate", overlap="3600")
    (text,) = set(KEY_TEXT.findall(response.text))
    assert (await site.service.access.authenticate(f"Bearer {text}")).role == "member"
    await site.service.access.authenticate(f"Bearer {old.text}")
    views = {key.id: key for key in await site.service.access.keys("ours")}
    assert views[old.view.id].expires_at is not None
    assert text not in await site.page(PATH)
    await post(site, f"keys/{old.view.id}/revoke")
    assert (await post(site, f"keys/{old.view.id}/rotate", overlap="0")).status_code == 400


# --- the webhook secret -------------------------------------------------------------------------------------------


async def test_secret_is_revealed_on_request_and_recorded(site: ConsoleSite) -> None:
    secret = await site.service.access.webhook_secret("ours")
    assert secret not in await site.page(PATH)
    response = await post(site, "secret/reveal")
    assert secret in response.text
    assert response.headers["cache-control"] == "no-store"
    assert (await actions(site, site.org_ids["ours"]))[0][0] == Action.SECRET_REVEALED
    assert not any(secret in line for line in site.stored())


async def test_secret_is_replaced(site: ConsoleSite) -> None:
    old = await site.service.access.webhook_secret("ours")
    assert "The old one signs too for 24 hours" in await site.page(PATH)
    response = await post(site, "secret/replace")
    new = await site.service.access.webhook_secret("ours")
    assert new != old
    assert new in response.text
    assert (await actions(site, site.org_ids["ours"]))[0][0] == Action.SECRET_REPLACED


# --- sessions -----------------------------------------------------------------------------------------------------


async def test_others_end_only_sessions_of_their_own_key(site: ConsoleSite) -> None:
    second = (await site.sessions.open_by_key(site.keys[MEMBER].text, user_agent=HOSTILE)).session_id
    text = await site.page(PATH, who=MEMBER)
    assert text.count('/end"') == 2
    assert HOSTILE not in text
    assert (await post(site, f"sessions/{await session_id(site, OWNER)}/end", who=MEMBER)).status_code == 404
    assert await site.sessions.find(site.cookies[OWNER]) is not None
    assert (await post(site, f"sessions/{second}/end", who=MEMBER)).status_code == 303


async def test_own_session_is_ended_like_a_log_out(site: ConsoleSite) -> None:
    response = await post(site, f"sessions/{await session_id(site, ADMIN)}/end", who=ADMIN)
    assert response.headers["location"] == "/console/login"
    assert "Max-Age=0" in response.headers["set-cookie"]


async def test_person_is_named_in_sessions_and_in_the_audit_log(site: ConsoleSite) -> None:
    server_id = await site.create_match()
    canceled = await site.request("POST", f"/console/matches/{server_id}/overlay", who=REFEREE, form={})
    assert canceled.status_code == 200
    text = await site.page(PATH)
    sessions, log = text[text.index('id="sessions"') : text.index('id="audit"')], text[text.index('id="audit"') :]
    for who in (REFEREE, CASTER):
        shown = str(escape(NAMES[who]))
        assert f'<bdi class="name">{shown}</bdi> <span class="chip">{who}</span>' in sessions
        assert f"printed a link to log in: <bdi>for {shown}, as {who}</bdi>" in log
    act = log[: log.index("created a link to the overlay")]
    assert "Rita &lt;b&gt;R&lt;/b&gt;" in act[act.rindex("<tr>") :]
    assert NAMES[REFEREE] not in text
    assert f"{escape(NAMES[REFEREE])}</bdi> · " in await site.page(PATH, who=REFEREE)
    api = await site.request("GET", "/api/v1/audit", headers={"Authorization": f"Bearer {site.keys[OWNER].text}"})
    assert NAMES[REFEREE] in {one["actorName"] for one in api.json()["items"]}


async def test_person_with_a_link_sees_their_own_session_only(site: ConsoleSite) -> None:
    for who in (REFEREE, CASTER):
        text = await site.page(PATH, who=who)
        assert "Audit log" not in text
        assert "mk_live_" not in text
        assert text.count("/end") == 1
        assert f"/sessions/{await session_id(site, who)}/end" in text
        assert (await post(site, f"sessions/{await session_id(site, OWNER)}/end", who=who)).status_code == 404
        answer = await post(site, "sessions/end-others", who=who)
        assert "There was no other session to end." in (await site.follow(answer, who=who)).text
    assert await site.sessions.find(site.cookies[OWNER]) is not None


async def test_owner_ends_all_other_sessions_of_the_organization_at_once(site: ConsoleSite) -> None:
    answer = await post(site, "sessions/end-others")
    assert "All other sessions have ended." in (await site.follow(answer, who=OWNER)).text
    left = [who for who, cookie in site.cookies.items() if await site.sessions.find(cookie) is not None]
    assert left == [OWNER, STRANGER, OPERATOR]


async def test_session_shows_browser_and_address(site: ConsoleSite) -> None:
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
    await site.sessions.open_by_key(site.keys[MEMBER].text, user_agent=agent, address="203.0.113.7")
    text = await site.page(PATH)
    assert f'title="{agent}"><bdi>Firefox 145, Linux</bdi>' in text
    assert "<td>203.0.113.7</td>" in text
    assert "<td>unknown</td>" in text  # of those that an earlier version began


async def test_sessions_are_counted_and_all_can_be_listed_and_ended(site: ConsoleSite) -> None:
    oldest = await session_id(site, MEMBER)
    sessions = ConsoleSessions(
        db=site.resources.db,
        clock=site.resources.clock,
        access=site.service.access,
        audit=site.service.console.audit,
        log_ins_per_minute=MAX_SESSIONS,
    )
    for _ in range(5):
        key = await site.service.access.create_key("ours", role=Role.MEMBER, scopes=[Scope.SERVERS_READ])
        for _ in range(MAX_SESSIONS):
            await sessions.open_by_key(key.text, user_agent="")
    count = await site.sessions.count(site.org_ids["ours"])
    text = await site.page(PATH)
    assert f"{count} in total, page 1 of 3" in text
    assert "End all others" in text
    assert 'href="?page=2"' in text
    assert f"/sessions/{oldest}/end" not in text
    for page in (3, 99):
        last = (await site.request("GET", f"{PATH}?page={page}", who=OWNER)).text
        assert f"/sessions/{oldest}/end" in last
        assert 'href="?page=2"' in last
        assert 'href="?page=4"' not in last
    assert "1 in total" in await site.page(PATH, who=MEMBER)
    assert (await post(site, f"sessions/{oldest}/end")).status_code == 303
    assert await site.sessions.find(site.cookies[MEMBER]) is None


@pytest.mark.parametrize("page", ["0", "x", "-1", "1" * 30])
async def test_number_of_a_page_of_sessions_is_checked(site: ConsoleSite, page: str) -> None:
    assert (await site.request("GET", f"{PATH}?page={page}", who=OWNER)).status_code == 400


# --- the audit log ------------------------------------------------------------------------------------------------


async def test_log_is_paged_and_its_texts_are_harmless(site: ConsoleSite) -> None:
    audit = Audit(db=site.resources.db, clock=site.resources.clock)
    for number in range(PAGE_SIZE + 5):
        await audit.record(
            Action.CALLBACK_REDELIVERED,
            org_id=site.org_ids["ours"],
            actor="ses_x",
            target=f"msg_{number:03}",
            detail=HOSTILE,
        )
    text = await site.page(PATH)
    assert HOSTILE not in text
    assert text.count("sent a callback again") == PAGE_SIZE
    assert 'href="/console/deliveries/msg_104"' in text
    (older,) = re.findall(r'href="(\?before=act_\w+)#audit"', text)
    rest = await site.page(PATH + older)
    assert rest.count("sent a callback again") == 5
    assert "Older" not in rest
    assert "Newest" in rest


async def test_only_positions_in_the_log_can_be_asked_for(site: ConsoleSite) -> None:
    for before in ("", "act_" + "z" * 26, "act_" + "0" * 26):
        await site.page(f"{PATH}?before={before}")
    for query in ("before=x", "before=%00", "before='", "after=x"):
        assert (await site.request("GET", f"{PATH}?{query}", who=OWNER)).status_code == 400


async def test_people_without_a_key_see_no_table_of_keys(site: ConsoleSite) -> None:
    for who, sees in ((OWNER, True), (MEMBER, True), (REFEREE, False), (CASTER, False), (OPERATOR, False)):
        page = await site.request("GET", "/console/access", who=who)
        assert ('id="keys"' in page.text) is sees, who
