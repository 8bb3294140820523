"""The page that creates a match: who may use it, faults beside fields, and one match per form."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from html import unescape
from pathlib import Path

import httpx
import pytest

from matchpod.service.regions.regions import UNAVAILABLE
from tests.contract.agones_cluster import agones_region, secret_file, write_kubeconfig
from tests.contract.console import console_site
from tests.contract.console.console_site import ADMIN, OPERATOR, OWNER, ConsoleSite, open_site
from tests.contract.console.test_form_faults import check_faults
from tests.e2e.serve_process import REGION

PATH = "/console/create"
CURL = "/console/create/curl"
HOSTILE = "<script>alert(1)</script>"


site = console_site.own_site


async def new_form(site: ConsoleSite) -> dict[str, str]:
    """Return the fields of a new form, as a browser sends them."""
    text = (await site.request("GET", PATH, who=OWNER)).text
    fields = {
        name: unescape(value) for name, value in re.findall(r'<input[^>]* name="(\w+)"[^>]*? value="([^"]*)"', text)
    }
    for name, content in re.findall(r'<textarea[^>]* name="(\w+)"[^>]*>\n(.*?)</textarea>', text, re.DOTALL):
        fields[name] = unescape(content).replace("\n", "\r\n")
    for name, content in re.findall(r'<select[^>]* name="(\w+)"[^>]*>(.*?)</select>', text, re.DOTALL):
        options = re.findall(r'<option value="([^"]*)"( selected)?>', content)
        fields[name] = next((value for value, is_selected in options if is_selected), options[0][0])
    return fields


async def send(site: ConsoleSite, form: Mapping[str, str], *, path: str = PATH, who: str = OWNER) -> httpx.Response:
    return await site.request("POST", path, who=who, form=form)


async def matches(site: ConsoleSite) -> list[tuple[object, ...]]:
    """Return the id, the external id and the settings of all matches."""
    rows = await site.resources.db.read("SELECT id, external_match_id, settings FROM servers ORDER BY id")
    return [tuple(row) for row in rows]


async def acts(site: ConsoleSite) -> list[tuple[object, ...]]:
    sql = "SELECT action, target FROM audit_log WHERE action = 'match_created'"
    return [tuple(row) for row in await site.resources.db.read(sql)]


# --- who ----------------------------------------------------------------------------------------------------------


# --- once ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", [OWNER, ADMIN])
async def test_new_form_creates_one_match_also_if_it_is_sent_twice(site: ConsoleSite, who: str) -> None:
    form = await new_form(site)
    assert (await new_form(site))["once"] != form["once"]
    first, second = await send(site, form, who=who), await send(site, form, who=who)
    ((server_id, external_id, settings),) = await matches(site)
    assert first.status_code == 303
    assert first.headers["location"] == second.headers["location"] == f"/console/matches/{server_id}"
    assert str(external_id).startswith("demo-")
    decoded = json.loads(settings if isinstance(settings, str | bytes) else "")
    assert [len(decoded[team]["players"]) for team in ("team1", "team2")] == [5, 5]
    assert await acts(site) == [("match_created", server_id)]


async def test_changed_form_that_created_a_match_asks_before_it_creates_another(site: ConsoleSite) -> None:
    form = await new_form(site)
    await send(site, form)
    response = await send(site, {**form, "externalMatchId": "another"})
    assert response.status_code == 409
    check_faults(response.text, [])
    assert "A match was created from this form before you changed it." in response.text
    assert 'value="another"' in response.text
    (once,) = re.findall(r'name="once" value="([^"]+)"', response.text)
    assert once != form["once"]
    assert len(await matches(site)) == 1
    await send(site, {**form, "externalMatchId": "another", "once": once})
    assert len(await matches(site)) == 2


async def test_forms_of_two_organizations_do_not_meet(site: ConsoleSite) -> None:
    form = await new_form(site)
    await send(site, form)
    await send(site, form, who="stranger")
    assert len(await matches(site)) == 2


# --- faults -------------------------------------------------------------------------------------------------------


async def test_forms_of_other_programs_get_faults(site: ConsoleSite) -> None:
    forms = ({"x": ""}, {"once": "é"}, {"region": "x" * 10_000}, {"matchType": "[]", "map1": "\x00"})
    for form in forms:
        response = await send(site, form)
        assert response.status_code == 400
        assert "The match was not created." in response.text
    assert await matches(site) == []


async def test_limit_of_matches_is_reported_with_the_form(tmp_path: Path) -> None:
    async with open_site(tmp_path / "data", max_live_matches="1") as site:
        await send(site, await new_form(site))
        response = await send(site, {**await new_form(site), "map1": "de_nuke"})
        assert response.status_code == 429
        assert "matches that have not ended, its limit" in response.text
        assert 'value="de_nuke"' in response.text


async def test_region_that_is_off_is_not_offered(site: ConsoleSite) -> None:
    form = await new_form(site)
    await site.request("POST", "/console/regions/sandbox/off", who=OPERATOR, form={})
    text = (await site.request("GET", PATH, who=OWNER)).text
    assert "No region accepts matches at present." in text
    assert '<option value="sandbox"' not in text
    response = await send(site, form)
    assert response.status_code == 400
    assert "Is not accepting new servers." in response.text


async def test_region_whose_cluster_cannot_be_reached_is_offered_last_and_its_match_waits(tmp_path: Path) -> None:
    unreachable = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")
    settings = tmp_path / "settings.toml"
    sandbox = REGION.format(speed=30, port=27100)
    settings.write_text(agones_region("cluster", unreachable, secret_file(tmp_path)) + sandbox)
    async with open_site(tmp_path / "data", config=str(settings)) as site:
        cluster, sandboxed = site.service.regions.all()
        assert await cluster.fleet.check() == []  # as at the start of the service
        text = (await site.request("GET", PATH, who=OWNER)).text
        offered = re.findall(r'<option value="(cluster|sandbox)"[^>]*>([^<]*)</option>', text)
        assert [code for code, _ in offered] == [sandboxed.code, cluster.code]
        assert "not available now: matches wait" in offered[1][1]
        assert "not available" not in offered[0][1]
        response = await send(site, {**await new_form(site), "region": "cluster"})
        assert response.status_code == 303
        page = (await site.request("GET", "/console/regions", who=OPERATOR)).text
        assert "http://127.0.0.1:1 cannot be reached: Connection refused." in page
        page = (await site.request("GET", "/console/regions", who=OWNER)).text
        assert "127.0.0.1:1" not in page
        assert UNAVAILABLE in page
        await cluster.fleet.close()


async def test_scenarios_of_the_simulator_are_offered_and_played(site: ConsoleSite) -> None:
    text = (await site.request("GET", PATH, who=OWNER)).text
    assert "pauses: tactical timeouts and a technical pause" in text
    await send(site, {**await new_form(site), "scenario": "pauses"})
    ((_, _, settings),) = await matches(site)
    assert "sim_scenario" in str(settings)


# --- curl ---------------------------------------------------------------------------------------------------------


async def test_request_is_shown_without_creating_anything(site: ConsoleSite) -> None:
    form = {**await new_form(site), "team1Name": "O'Brien", "callbackUrl": "https://example.com/?a=1&b=2"}
    before = site.stored()
    response = await send(site, form, path=CURL)
    assert response.status_code == 200
    assert site.stored() == before
    curl, body = (unescape(one) for one in re.findall(r"<pre[^>]*>(.*?)</pre>", response.text, re.DOTALL))
    words = shlex.split(curl)
    assert words[:3] == ["curl", "-s", "http://127.0.0.1:8080/api/v1/matches"]
    assert "Authorization: Bearer $KEY" in words
    assert json.loads(words[-1]) == json.loads(body)
    assert json.loads(body)["gameSettings"]["teams"]["team1"]["name"] == "O'Brien"
    async with site.program() as client:
        headers = {"Authorization": f"Bearer {site.keys[OWNER].text}"}
        created = await client.post("/api/v1/matches", content=words[-1], headers=headers)
    assert created.status_code == 201
    assert (await send(site, form)).status_code == 303


async def test_faults_are_shown_with_the_request(site: ConsoleSite) -> None:
    response = await send(site, {**await new_form(site), "map1": "De Dust"}, path=CURL)
    assert "The service would reject this request." in response.text
    assert "Must be a map name" in response.text
