"""Many matches from a sheet: all or none, each once, and what is wrong with each row."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from pathlib import Path

import httpx
import pytest

from tests.contract.console import console_site
from tests.contract.console.console_site import ADMIN, OWNER, ConsoleSite, open_site

PATH = "/console/create/sheet"
COMMON = {"region": "sandbox", "matchType": "wingman", "seriesFormat": "bo1", "map1": "de_mirage"}
HEADINGS = "match\tteam1\tplayers1\tteam2\tplayers2"


site = console_site.own_site


def row(number: int, *, name: str = "", players: str = "") -> str:
    first = 76561198000000001 + 4 * number
    return f"{name or f'm{number}'}\tOwls\t{players or f'Ann {first} {first + 1}'}\tFoxes\t{first + 2}, {first + 3}"


def sheet(*rows: str) -> str:
    return "\r\n".join([HEADINGS, *rows])


async def send(
    site: ConsoleSite, text: str, *, path: str = PATH, once: str = "once-1", who: str = OWNER, **common: str
) -> httpx.Response:
    return await site.request("POST", path, who=who, form={**COMMON, "once": once, "sheet": text, **common})


async def created(site: ConsoleSite) -> list[str]:
    return [str(name) for (name,) in await site.resources.db.read("SELECT external_match_id FROM servers ORDER BY id")]


async def test_matches_are_created_once_however_often_the_sheet_is_sent(site: ConsoleSite) -> None:
    text = sheet(*map(row, range(5)))
    answers = await asyncio.gather(*(send(site, text, who=ADMIN) for _ in range(3)))
    assert [answer.headers["location"] for answer in answers] == ["/console"] * 3
    assert "5 matches were created." in (await site.follow(answers[0], who=ADMIN)).text
    assert sorted(await created(site)) == ["m0", "m1", "m2", "m3", "m4"]
    await send(site, sheet(row(7), *map(row, range(3))), who=ADMIN)
    assert sorted(await created(site)) == ["m0", "m1", "m2", "m3", "m4", "m7"], "other rows change nothing"
    await send(site, text, once="once-2")
    assert len(await created(site)) == 11


async def test_nothing_is_created_while_a_row_is_wrong(site: ConsoleSite) -> None:
    text = sheet(row(0), row(1, players="Bo 7656119800000000"), row(2, name="m0"), row(3, name="<img src=x>"))
    for path, status, said in (
        (PATH, 400, "Nothing was created."),
        (f"{PATH}/check", 200, "Nothing would be created."),
    ):
        answer = await send(site, text, path=path)
        assert answer.status_code == status
        page = unescape(answer.text)
        assert said in page
        assert "2 rows are wrong" in page
        rows = re.findall(r'<tr id="row-(\d)"( class="wrong-row")?>', page)
        assert rows == [("2", ""), ("3", ' class="wrong-row"'), ("4", ' class="wrong-row"'), ("5", "")]
        assert "Players of team 1: Line 1: “7656119800000000” is not a SteamID." in page
        assert "External id: “m0” is already in row 2." in page
        assert "<img src=x>" not in answer.text
        assert "Ann 76561198000000001" in page, "what was pasted is kept"
        assert 'name="once" value="once-1"' in page
    assert await created(site) == []


async def test_check_shows_what_would_be_created(site: ConsoleSite) -> None:
    before = site.stored()
    page = (await send(site, sheet(row(0), row(1)), path=f"{PATH}/check", map1="de_nuke")).text
    assert "2 matches would be created. Nothing is created yet." in page
    assert page.count('<span class="muted">2 players</span>') == 4
    assert page.count("<td>de_nuke</td>") == 2
    assert site.stored() == before


async def test_limit_in_the_middle_says_what_was_created_and_the_rest_follows(tmp_path: Path) -> None:
    async with open_site(tmp_path / "data", max_live_matches="2") as site:
        text = sheet(*map(row, range(3)))
        answer = await send(site, text)
        assert answer.status_code == 429
        assert "2 of 3 matches were created, then it stopped." in answer.text
        assert len(re.findall(r'<a href="/console/matches/srv_\w+">created</a>', answer.text)) == 2
        assert "matches that have not ended, its limit" in answer.text
        (first, *_) = re.findall(r"/console/matches/(srv_\w+)", answer.text)
        await site.request("POST", f"/console/matches/{first}/cancel", who=OWNER, form={})
        assert (await send(site, text)).status_code == 303
        assert sorted(await created(site)) == ["m0", "m1", "m2"]


@pytest.mark.parametrize("text", ["", "\x00", "a\tb\n\x1f", '"', "match\n" + "x" * 60_000])
async def test_any_text_is_answered_with_faults(site: ConsoleSite, text: str) -> None:
    answer = await send(site, text)
    assert answer.status_code == 400
    assert "Nothing was created." in answer.text
    assert await created(site) == []
