"""The endpoint for the audit log: permissions, pages, and what it shows."""

from __future__ import annotations

from matchpod.service.access.audit import Action
from matchpod.service.identity.principals import Role, Scope
from tests.unit.web import sites
from tests.unit.web.sites import Site

site = sites.site
API = "/api/v1/audit"


def key_prefix(text: str) -> str:
    """Return how a key without a name is called."""
    return text[: len("mk_live_") + 4] + "…"


def cancel(site: Site) -> str:
    """Create and cancel a match, a millisecond after what was done before."""
    site.clock.at_ms += 1
    server_id = site.new_server()
    site.cancel(server_id)
    return server_id


def test_acts_are_listed_newest_first(site: Site) -> None:
    server_id = cancel(site)
    page = site.get(API).json()
    assert page["nextBefore"] is None
    canceled, created, key = page["items"]
    for item, action in ((canceled, "match_canceled"), (created, "match_created")):
        assert item.pop("id").startswith("act_")
        assert item == {
            "at": "2026-09-21T14:13:20.124Z",
            "actor": key["target"],
            "actorName": key_prefix(site.key),
            "action": action,
            "target": server_id,
            "detail": "",
        }
    assert (key["actor"], key["actorName"], key["action"]) == ("command line", None, "key_created")
    assert key["detail"] == "owner, servers:read servers:write"


def test_actors_are_named_after_the_keys_that_they_used(site: Site) -> None:
    key = site.run(site.services.access.create_key("ours", role=Role.OWNER, scopes=list(Scope), name="ladder"))
    server_id = site.create(key.text).json()["serverId"]
    begun = {"ses_1": f"with {key.view.id}, 7 times", "ses_2": "with a link", "ses_3": None}
    org_id = site.row(server_id).org_id
    for session, detail in begun.items():
        acts = [site.services.audit.entry(Action.MATCH_CANCELED, org_id=org_id, actor=session)]
        if detail is not None:
            acts.append(site.services.audit.entry(Action.LOGGED_IN, org_id=org_id, actor=session, detail=detail))
        site.run(site.db.write(acts))
    names = {item["actor"]: item["actorName"] for item in site.get(API).json()["items"]}
    expected = {key.view.id: "ladder", "ses_1": "ladder", "ses_2": "a link", "ses_3": None, "command line": None}
    assert names == expected


def test_pages_follow_each_other(site: Site) -> None:
    expected = [cancel(site) for _ in range(4)][::-1]
    found: list[str] = []
    before = ""
    while True:
        page = site.get(f"{API}?pageSize=2{before}").json()
        assert len(page["items"]) <= 2
        found += [item["target"] for item in page["items"] if item["action"] == "match_canceled"]
        if page["nextBefore"] is None:
            break
        cancel(site)  # a new entry does not move the others
        before = f"&before={page['nextBefore']}"
    assert found == expected


def test_page_that_is_full_and_the_last_has_no_next(site: Site) -> None:
    cancel(site)
    assert site.get(f"{API}?pageSize=3").json()["nextBefore"] is None
    page = site.get(f"{API}?pageSize=1").json()
    assert page["nextBefore"] == page["items"][0]["id"]


def test_other_organizations_are_not_shown(site: Site) -> None:
    server_id = cancel(site)
    theirs = site.get(API, key=site.other_key).json()["items"]
    assert [item["action"] for item in theirs] == ["key_created"]
    assert server_id not in str(theirs)
    before = site.get(API).json()["items"][0]["id"]
    assert site.get(f"{API}?before={before}", key=site.other_key).json()["items"] == theirs
