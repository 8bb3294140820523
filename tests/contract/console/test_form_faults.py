"""Faulty forms: a summary that is announced, with links to the fields; the focus on the first one; what was typed."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from matchpod.console.match_form import FIELDS
from tests.contract.console import console_site
from tests.contract.console.callback_rows import given_up
from tests.contract.console.console_site import OPERATOR, OWNER, ConsoleSite

pytestmark = pytest.mark.asyncio(loop_scope="module")
site = console_site.site

NEW_KEY = {"name": "typed", "role": "admin", "servers:read": "on", "days": "90"}


class Elements(HTMLParser):
    """The elements of a page with their attributes, in order, and its title."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []
        self.title = ""
        self._tag = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        self.found.append({"tag": tag, **{name: value or "" for name, value in attrs}})

    def handle_data(self, data: str) -> None:
        if self._tag == "title":
            self.title += data
            self._tag = ""

    def ids(self, attribute: str, value: str | None = None) -> list[str]:
        return [one.get("id", "") for one in self.found if attribute in one and value in (None, one[attribute])]


def check_faults(text: str, wrong: list[str]) -> None:
    """Check that these fields, in their order on the page, are marked, announced, linked and explained."""
    page = Elements(text)
    assert page.title.startswith("Fault")
    assert page.ids("aria-invalid") == wrong
    assert page.ids("autofocus") == [wrong[0] if wrong else "faults"]
    assert "faults" in page.ids("role", "alert")
    known = set(page.ids("id"))
    links = [one["href"].removeprefix("#") for one in page.found if one.get("href", "").startswith("#")]
    assert [link for link in links if link != "main" and link in wrong] == wrong
    for one in page.found:
        assert set(one.get("aria-describedby", "").split()) <= known
    assert len(known) == len(page.ids("id"))


async def test_new_match_with_faults(site: ConsoleSite) -> None:
    form = {"region": "none", "matchType": "competitive", "map1": "De Dust", "map2": "Typed", "freezeTime": "soon"}
    response = await site.request("POST", "/console/create", who=OWNER, form=form)
    assert response.status_code == 400
    check_faults(response.text, ["region", "map1", "map2", "freezeTime"])
    assert 'value="Typed"' in response.text


async def test_fields_of_a_new_match_are_in_the_order_of_the_page(site: ConsoleSite) -> None:
    page = Elements((await site.request("GET", "/console/create", who=OWNER)).text)
    shown = [one["id"] for one in page.found if one.get("id") in FIELDS]
    assert shown == list(FIELDS)


@pytest.mark.parametrize(
    ("form", "field", "message"),
    [
        ({"role": "king"}, "role", "The role must be one of owner, admin, member."),
        ({"name": "x" * 65}, "name", "must have 0 to 64 characters"),
        ({"days": "0"}, "lifetime", "The lifetime of a key must be"),
        ({"days": "x"}, "lifetime", "The lifetime must be 1 to 3650 days."),
        ({"days": "9" * 5000}, "lifetime", "The lifetime must be 1 to 3650 days."),
    ],
)
async def test_new_key_with_a_fault(site: ConsoleSite, form: dict[str, str], field: str, message: str) -> None:
    response = await site.request("POST", "/console/access/keys", who=OWNER, form={**NEW_KEY, **form})
    assert response.status_code == 400
    check_faults(response.text, [field])
    assert message in response.text
    assert form.get("name", "typed") in response.text
    assert "<details" in response.text.partition('id="new-key"')[0][-60:]


async def test_new_key_without_scopes(site: ConsoleSite) -> None:
    form = {"name": "typed", "role": "member", "days": "7"}
    response = await site.request("POST", "/console/access/keys", who=OWNER, form=form)
    assert "A key needs at least one scope." in response.text
    page = Elements(response.text)
    boxes = [one for one in page.found if one.get("type") == "checkbox" and "name" in one]
    assert [one["aria-describedby"] for one in boxes] == ["scopes-wrong"] * 2
    assert ["autofocus" in one for one in boxes] == [True, False]
    assert "scopes-wrong" in page.ids("id")
    assert 'value="typed"' in response.text


@pytest.mark.parametrize(
    ("name", "message"), [("", "must have 1 to 64"), ("ours", "already exists"), ("a\u202eb", "control or format")]
)
async def test_new_organization_with_a_fault(site: ConsoleSite, name: str, message: str) -> None:
    response = await site.request("POST", "/console/operator/organizations", who=OPERATOR, form={"name": name})
    assert response.status_code == 400
    check_faults(response.text, ["name"])
    assert message in response.text


async def test_log_in_with_a_fault_keeps_where_to_go_but_not_the_key(site: ConsoleSite) -> None:
    form = {"key": "mk_live_typed", "next": "/console/regions"}
    response = await site.request("POST", "/console/login", form=form)
    assert response.status_code == 401
    page = Elements(response.text)
    (key,) = [one for one in page.found if one.get("id") == "key"]
    assert (key["aria-invalid"], key["aria-describedby"], "autofocus" in key) == ("true", "faults", True)
    assert "faults" in page.ids("role", "alert")
    assert page.title.startswith("Fault")
    assert 'value="/console/regions"' in response.text
    assert "mk_live_typed" not in response.text


async def test_used_link_is_announced_and_the_key_is_not_wrong(site: ConsoleSite) -> None:
    response = await site.request("POST", "/console/login/used", form={})
    page = Elements(response.text)
    assert (page.ids("aria-invalid"), page.ids("autofocus")) == ([], ["key"])
    assert "faults" in page.ids("role", "alert")
    assert page.ids("aria-describedby") == ["key"]


@pytest.mark.parametrize(
    ("address", "wrong"),
    [
        ("/console/matches?dateTo=x&outcome=lost&region=%00", ["f-outcome", "f-region", "f-dateTo"]),
        ("/console/matches?page=x", []),
        ("/console/deliveries?until=y&since=x&state=lost", ["f-since", "f-until"]),
        ("/console/deliveries?state=lost", []),
    ],
)
async def test_filters_with_faults(site: ConsoleSite, address: str, wrong: list[str]) -> None:
    response = await site.request("GET", address, who=OWNER)
    assert response.status_code == 400
    check_faults(response.text, wrong)


async def test_callbacks_that_cannot_be_sent_again(site: ConsoleSite) -> None:
    response = await site.request("POST", "/console/deliveries/redeliver", who=OWNER, form={"since": "yesterday"})
    check_faults(response.text, ["since"])
    callback_id = await given_up(site, "stale")
    form = {"attempts": "9"}
    response = await site.request("POST", f"/console/deliveries/{callback_id}/redeliver", who=OWNER, form=form)
    assert response.status_code == 409
    check_faults(response.text, [])


@pytest.mark.parametrize("path", ["/console/matches", "/console/deliveries"])
async def test_filters_keep_the_size_of_pages(site: ConsoleSite, path: str) -> None:
    text = (await site.request("GET", f"{path}?pageSize=7", who=OWNER)).text
    form = text[text.index('role="search"') :].partition("</form>")[0]
    assert '<input type="hidden" name="pageSize" value="7">' in form
