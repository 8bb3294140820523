"""The page with the history of matches: rows, filters, pages, CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from html import unescape
from unittest.mock import patch

import httpx
import pytest

from matchpod.console.match_csv import COLUMNS
from matchpod.core.effects import CancelReason
from matchpod.ports import Statement
from matchpod.service.history.search_index import index_some
from tests.contract.console import console_site
from tests.contract.console.callback_rows import end
from tests.contract.console.console_site import ADMIN, CASTER, MEMBER, OWNER, REFEREE, STRANGER, ConsoleSite

PATH = "/console/matches"
PLAYERS = [str(76561198000000001 + number) for number in range(4)]


site = console_site.own_site


def settings(team1: str = "Night Owls", team2: str = "Blue Foxes", **more: object) -> dict[str, object]:
    """Return the settings of a match between two teams."""
    teams = {"team1": {"name": team1, "players": PLAYERS[:2]}, "team2": {"name": team2, "players": PLAYERS[2:]}}
    return {"matchType": "wingman", "map": "de_mirage", "teams": teams, **more}


async def show(site: ConsoleSite, query: str = "", *, who: str = MEMBER, status: int = 200) -> str:
    response = await site.request("GET", f"{PATH}?{query}", who=who)
    assert response.status_code == status, response.text
    return response.text


async def download(site: ConsoleSite, query: str = "") -> list[dict[str, str]]:
    """Return the rows of the CSV file."""
    response = await site.request("GET", f"{PATH}.csv?{query}", who=MEMBER)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == 'attachment; filename="matches.csv"'
    assert response.headers["x-content-type-options"] == "nosniff"
    rows = list(csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"), newline="")))
    assert all(list(row) == list(COLUMNS) for row in rows)
    return rows


def listed(text: str) -> list[str]:
    """Return the server ids of the rows, in their order."""
    return re.findall(r'<a class="clamp" data-item href="/console/matches/(srv_\w+)"', text)


async def score(site: ConsoleSite, server_id: str, number: int, scores: tuple[int, int], winner: str) -> None:
    """Store the score of a finished map."""
    params: Mapping[str, str | int] = {
        "id": server_id, "number": number, "one": scores[0], "two": scores[1], "winner": winner
    }  # fmt: skip
    sql = (
        "UPDATE maps SET team1_score = :one, team2_score = :two, winner = :winner, status = 'finished',"
        " duration_s = 1800 WHERE server_id = :id AND map_number = :number"
    )
    await site.resources.db.write([Statement(sql, params)])


# --- page ---------------------------------------------------------------------------------------------------------


async def test_matches_are_shown_newest_first_with_teams_maps_and_outcome(site: ConsoleSite) -> None:
    series = await site.create_match(
        externalMatchId="cup/final",
        gameSettings=settings(seriesFormat="bo3", maps=["de_mirage", "de_nuke", "de_inferno"]),
    )
    await score(site, series, 1, (13, 7), "team1")
    await score(site, series, 2, (5, 13), "team2")
    lost = await site.create_match(externalMatchId="cup/lost")
    await end(site, lost)
    await site.create_match(STRANGER, externalMatchId="not ours")
    text = await show(site)
    assert listed(text) == [lost, series]
    for shown in (
        "Night Owls",
        "Blue Foxes",
        "<b>13:7</b>",
        "<b>5:13</b>",
        "de_inferno",
        "1:00:00",
        "getting a server",
    ):
        assert shown in text
    assert "failed: the server was lost" in text
    assert "The server stopped responding, or its process ended." in text
    assert "not ours" not in text


async def test_text_of_callers_is_escaped(site: ConsoleSite) -> None:
    await site.create_match(externalMatchId="<img src=x>\u202e", gameSettings=settings("<b>bold</b>", "a&b"))
    text = await show(site, "externalMatchId=%3Cimg+src%3Dx%3E%E2%80%AE")
    assert "<bdi>&lt;img src=x&gt;\u202e</bdi>" in text
    assert '<bdi class="name">&lt;b&gt;bold&lt;/b&gt;</bdi>' in text
    assert 'title="&lt;img src=x&gt;\u202e"' in text
    assert "<img src=x" not in text
    assert "<b>bold" not in text
    (line,) = (unescape(found) for found in re.findall(r'data-copy="([^"]+)"', text))
    assert line.startswith(f"curl -s '{site.public_url}/api/v1/servers?externalMatchId=%3Cimg+src%3Dx%3E%E2%80%AE'")


async def test_number_of_queries_does_not_depend_on_the_number_of_matches(site: ConsoleSite) -> None:
    async def queries() -> int:
        db = site.resources.db
        await show(site)  # what all pages say about regions is kept for a while
        with patch.object(type(db), "read", autospec=True, side_effect=type(db).read) as read:
            await show(site)
        return read.call_count

    await site.create_match()
    await end(site, await site.create_match())
    alone = await queries()
    for _ in range(12):
        await end(site, await site.create_match())
    assert await queries() == alone > 0


# --- CSV ----------------------------------------------------------------------------------------------------------


async def test_csv_has_no_formulas_and_hostile_names_in_their_own_cells(site: ConsoleSite) -> None:
    starts, names = ("=", "+", "-", "@", "＝"), ['a","b', "a;b,c", "\u202eé", "''"]
    for start in starts:
        await site.create_match(externalMatchId=f'{start}F(1),x"', gameSettings=settings(f"{start}1+1", "plain"))
    for name in names:
        await site.create_match(externalMatchId=name)
    rows = (await download(site))[::-1]
    assert [row["externalMatchId"] for row in rows] == [*(f"'{start}F(1),x\"" for start in starts), *names]
    assert [row["team1"] for row in rows[: len(starts)]] == [f"'{start}1+1" for start in starts]
    assert {row["team2"] for row in rows[: len(starts)]} == {"plain"}


async def test_csv_shows_results(site: ConsoleSite) -> None:
    server_id = await site.create_match(
        externalMatchId="m", gameSettings=settings(seriesFormat="bo3", maps=["de_mirage", "de_nuke"])
    )
    await score(site, server_id, 1, (13, 7), "team1")
    await end(site, server_id, reason=CancelReason.ALL_PLAYERS_LEFT)
    await site.create_match(STRANGER)
    (row,) = await download(site)
    assert row["maps"] == "de_mirage 13:7; de_nuke; de_mirage"
    assert (row["team1MapsWon"], row["team2MapsWon"], row["playedSeconds"]) == ("1", "0", "1800")
    assert (row["status"], row["reason"]) == ("stopped", "all_players_left")
    assert row["outcome"] == "canceled: all players left"
    assert row["endedAt"].endswith("Z")


async def test_csv_is_read_in_pages_and_ends_after_the_newest(site: ConsoleSite) -> None:
    site = site.with_parts(csv_page_size=2)
    ids = [await site.create_match() for _ in range(5)]
    assert [row["serverId"] for row in await download(site)] == ids[::-1]
    site = site.with_parts(max_csv_rows=4)
    assert [row["serverId"] for row in await download(site)] == ids[:0:-1]
    assert "the newest 4 matches" in await show(site)


async def test_csv_has_each_match_of_the_same_millisecond_once(site: ConsoleSite) -> None:
    site = site.with_parts(csv_page_size=2)
    ids = [await site.create_match() for _ in range(8)]
    same = "UPDATE servers SET created_at_ms = (SELECT created_at_ms FROM servers WHERE id = :first) WHERE id = :id"
    for one in ids[2:7]:
        await site.resources.db.write([Statement(same, {"id": one, "first": ids[1]})])
    assert [row["serverId"] for row in await download(site)] == [ids[7], *ids[1:7], ids[0]]


async def test_filters_select_matches(site: ConsoleSite) -> None:
    first, second, third = [await site.create_match(externalMatchId=f"id {number}") for number in range(3)]
    await end(site, second)
    await end(site, third, reason=CancelReason.CANCELED_BY_OPERATOR)
    for query, expected in (
        ("status=failed", [second]),
        ("outcome=canceled", [third]),
        ("phase=allocating&status=allocating", [first]),
        ("externalMatchId=id+0", [first]),
        ("region=elsewhere", []),
        ("dateTo=2020-01-01", []),
        ("dateFrom=2020-01-01&dateTo=", [third, second, first]),
    ):
        assert listed(await show(site, query)) == expected, query
        assert [row["serverId"] for row in await download(site, query)] == expected, query


async def test_pages_keep_their_filters_and_csv_has_all_pages(site: ConsoleSite) -> None:
    for _ in range(3):
        await site.create_match()
    text = await show(site, "region=sandbox&pageSize=2&page=2")
    assert len(listed(text)) == 1
    assert 'rel="prev" href="?region=sandbox&amp;pageSize=2&amp;page=1"' in text
    assert 'href="/console/matches.csv?region=sandbox&amp;pageSize=2"' in text
    assert len(await download(site, "region=sandbox&pageSize=2&page=2")) == 3
    assert "This page is past the end of the list." in await show(site, "page=9")


async def test_labels_lead_to_the_matches_that_have_them(site: ConsoleSite) -> None:
    labels = {"event": "cup & co", "formula": "=1+1"}
    labeled = await site.create_match(gameSettings=settings(labels=labels))
    await site.create_match(gameSettings=settings(labels={"event": "other"}))
    (link,) = re.findall(
        r'href="/console/matches\?([^"]*)" title="event: cup &amp; co"><bdi>cup &amp; co</bdi>', await show(site)
    )
    text = await show(site, unescape(link))
    assert listed(text) == [labeled]
    assert 'type="hidden" name="label" value="event:cup &amp; co"' in text
    assert 'href="?" aria-label="Remove the filter event:cup &amp; co"' in text
    (row,) = await download(site, unescape(link))
    assert row["labels"] == "event: cup & co; formula: =1+1"
    assert "must be the name of a label" in await show(site, "label=cup", status=400)


# --- search -------------------------------------------------------------------------------------------------------


async def test_one_box_searches_and_the_page_says_what(site: ConsoleSite) -> None:
    first = await site.create_match(externalMatchId="cup/r1-m1", gameSettings=settings("<b>Owls</b>"))
    second = await site.create_match(externalMatchId="cup/r1-m2", gameSettings=settings(labels={"event": "finals"}))
    await end(site, second)
    await site.create_match(STRANGER, externalMatchId="cup/r1-m1")
    await index_some(site.resources.db)
    for query, expected in (
        ("search=r1", [second, first]),
        ("search=OWLS", [second, first]),
        ("search=m1+owl", [first]),
        ("search=finals", [second]),
        ("search=lost", [second]),
        (f"search={PLAYERS[0]}&outcome=failed", [second]),
        ("search=%3Cb%3E+m1", [first]),
        ("search=%21", []),
        ("search=", [second, first]),
    ):
        assert listed(await show(site, query)) == expected, query
        assert [row["serverId"] for row in await download(site, query)] == expected, query
    text = await show(site, "search=%3Cimg%3E%22")
    assert 'value="&lt;img&gt;&#34;"' in text
    assert "The search covers words of external ids, teams, labels and reasons" in text
    assert "must be 1 to 300 characters" in await show(site, f"search={'x' * 301}", status=400)


# --- selections ---------------------------------------------------------------------------------------------------


async def select(site: ConsoleSite, action: str, ids: list[str], *, who: str = OWNER, back: str = "") -> httpx.Response:
    form = {"back": back, **{f"selected-{server_id}": "on" for server_id in ids}}
    return await site.request("POST", f"/console/selection/{action}", who=who, form=form)


async def phases(site: ConsoleSite, ids: list[str]) -> list[str]:
    found = {str(row[0]): str(row[1]) for row in await site.resources.db.read("SELECT id, match_phase FROM servers")}
    return [found[server_id] for server_id in ids]


async def test_selected_matches_are_canceled_and_those_that_have_ended_stay(site: ConsoleSite) -> None:
    ids = [await site.create_match() for _ in range(4)]
    await end(site, ids[0])
    before = await site.resources.db.read("SELECT * FROM outcomes")
    answer = await select(site, "cancel", ids[:3], who=ADMIN, back="region=sandbox&pageSize=2&page=2")
    assert answer.headers["location"] == f"{PATH}?region=sandbox&pageSize=2&page=2"
    assert "2 matches were canceled." in (await site.follow(answer, who=ADMIN)).text
    assert await phases(site, ids) == ["ended"] * 3 + ["allocating"]
    assert set(before) < set(await site.resources.db.read("SELECT * FROM outcomes"))
    answer = await select(site, "cancel", ids[:3])
    assert "Nothing was canceled: these matches have ended." in (await site.follow(answer, who=OWNER)).text
    assert "No match was selected." in (await site.follow(await select(site, "cancel", []), who=OWNER)).text


async def test_callbacks_of_selected_matches_are_sent_again(site: ConsoleSite) -> None:
    ids = [await site.create_match(callbackUrl="https://caller.example/") for _ in range(3)]
    for server_id in ids[:2]:
        await end(site, server_id)
    tried = "UPDATE callbacks SET attempts = 2, next_at_ms = NULL WHERE server_id = :id"
    await site.resources.db.write([Statement(tried, {"id": ids[0]})])
    answer = await select(site, "redeliver", ids, who=REFEREE)
    assert "1 callback is being sent again." in (await site.follow(answer, who=REFEREE)).text
    answer = await select(site, "redeliver", ids[1:])
    assert "No callback was sent" in (await site.follow(answer, who=OWNER)).text


async def test_only_those_who_may_act_select_and_only_their_own_matches(site: ConsoleSite) -> None:
    ours, theirs = await site.create_match(), await site.create_match(STRANGER)
    for who, cancels, sends in (
        (OWNER, True, True),
        (REFEREE, False, True),
        (CASTER, False, False),
        (MEMBER, False, False),
    ):
        text = await show(site, who=who)
        assert (f"selected-{ours}" in text, "selection/cancel" in text) == (sends, cancels), who
        assert ('href="/console/create"' in text) is cancels, who
        assert (await select(site, "cancel", [theirs] if cancels else [ours], who=who)).status_code == 403, who
        answer = await select(site, "redeliver", [theirs], who=who)
        assert answer.status_code == (303 if sends else 403), who
        if sends:
            assert "No callback was sent" in (await site.follow(answer, who=who)).text
    assert await phases(site, [ours, theirs]) == ["allocating"] * 2
    assert (await select(site, "cancel", ["%00", "'"])).status_code == 400
    assert (await select(site, "cancel", [f"srv_{number}" for number in range(101)])).status_code == 400


@pytest.mark.parametrize("back", ["//evil.example", "x" * 9_000, "a=%0d%0aX:1", "&&&=", "é=é"])
async def test_way_back_stays_on_the_list(site: ConsoleSite, back: str) -> None:
    answer = await select(site, "cancel", [], back=back)
    assert answer.status_code == 303
    assert re.fullmatch(r"/console/matches(\?[!-~]*)?", answer.headers["location"])
