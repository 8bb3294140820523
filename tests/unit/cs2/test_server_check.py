"""Tests of the questions of a check: what each answer means, and that every fault says what to do."""

from __future__ import annotations

import pytest

from cs2_protocol.log_clock import format_stamp
from matchpod.core.servers.check_report import CheckFinding, CheckItem, CheckVerdict
from matchpod.cs2.server_check import (
    QUESTIONS,
    LogPost,
    Opening,
    build_of,
    clock_finding,
    console_findings,
    log_address_finding,
    log_post_finding,
    missing_post_finding,
    opening_findings,
    round_trip_finding,
)

STATUS = """hostname : Cup 1
version  : 1.41.2.8/14128 10603 secure  public
steamid  : [G:1:15572258] (85568392935611682)
players  : 0 humans, 0 bots (0 max) (hibernating) (unreserved)
---------players--------
  id     time ping loss      state   rate adr name
#end
"""
PLAYER = "   2    00:40    0    0     active 786432 127.0.0.1:65498 'Eve'\n"
META = "Listing 1 plugin:\n  [01] CounterStrikeSharp (v1.0.337 @ adccc4b) by Roflmuffin\n"
CSS = '  List of all plugins currently loaded by CounterStrikeSharp: 1 plugins loaded.\n  [#1:LOADED]: "MatchZy" (0.8.15)\n'
NO_CSS_PLUGINS = "  List of all plugins currently loaded by CounterStrikeSharp: 0 plugins loaded.\n"
GET5 = '{"plugin_version": "0.15.0", "gamestate": "none", "matchid": null}\n'
HEALTHY = {
    "status": STATUS,
    "meta list": META,
    "css_plugins list": CSS,
    "get5_status": GET5,
    "sv_lan": "sv_lan = false\n",
}
BASE = "https://match.example"
URL = f"{BASE}/ingest/logs/mp-0123456789abcdef-check-secret"
NOW_MS = 1_790_000_000_000


def unknown(name: str) -> str:
    return f"Unknown command '{name}'!\n"


def findings(**changed: str) -> dict[CheckItem, CheckFinding]:
    return findings_at(changed, is_public=False)


def findings_at(changed: dict[str, str], *, is_public: bool) -> dict[CheckItem, CheckFinding]:
    answers = {**HEALTHY, **{name.replace("_list", " list"): text for name, text in changed.items()}}
    return {finding.item: finding for finding in console_findings(answers, is_public=is_public)}


def post(ahead_ms: int = 0, *, stamp: str | None = "right") -> LogPost:
    shown = format_stamp(NOW_MS + ahead_ms, millis=True) if stamp == "right" else stamp
    return LogPost(after_ms=400, received_ms=NOW_MS, source="198.51.100.4", stamp=shown)


def test_every_question_of_a_healthy_server_is_ok() -> None:
    assert set(HEALTHY) == set(QUESTIONS)
    found = findings()
    assert {finding.verdict for finding in found.values()} == {CheckVerdict.OK}
    assert found[CheckItem.PLUGIN].text == "MatchZy 0.8.15, CounterStrikeSharp v1.0.337 @ adccc4b."
    assert found[CheckItem.BUILD].text == "1.41.2.8, build 10603."


@pytest.mark.parametrize(
    ("changed", "item", "said", "advice"),
    [
        ({"status": STATUS.replace("10603", "10521")}, CheckItem.BUILD, "10521", "Update the server"),
        ({"meta_list": unknown("meta")}, CheckItem.GAMEINFO, "Metamod is not loaded", "Game csgo/addons/metamod"),
        (
            {"css_plugins_list": NO_CSS_PLUGINS, "get5_status": unknown("get5_status")},
            CheckItem.PLUGIN,
            "MatchZy is not",
            "Unpack MatchZy",
        ),
        (
            {"css_plugins_list": CSS.replace("LOADED]", "UNLOADED]"), "get5_status": unknown("get5_status")},
            CheckItem.PLUGIN,
            "MatchZy 0.8.15 is installed, but does not run",
            "logs",
        ),
        (
            {
                "meta_list": "Listing 1 plugin:\n  [01] <ERROR>\n",
                "css_plugins_list": unknown("css_plugins"),
                "get5_status": unknown("get5_status"),
            },
            CheckItem.PLUGIN,
            "could not load its plugin",
            "libicu",
        ),
        (
            {
                "meta_list": "No plugins loaded.\n",
                "css_plugins_list": unknown("css_plugins"),
                "get5_status": unknown("get5_status"),
            },
            CheckItem.PLUGIN,
            "CounterStrikeSharp is not",
            "Unpack CounterStrikeSharp",
        ),
        (
            {
                "meta_list": unknown("meta"),
                "css_plugins_list": unknown("css_plugins"),
                "get5_status": unknown("get5_status"),
            },
            CheckItem.PLUGIN,
            "needs Metamod",
            "gameinfo.gi",
        ),
        ({"status": STATUS.replace("[G:1:15572258]", "[A:1:5:6]")}, CheckItem.LOGIN_TOKEN, "without", "sv_setsteam"),
        ({"status": STATUS.replace("[G:1:15572258]", "[I:0:0]")}, CheckItem.LOGIN_TOKEN, "not logged in", "Steam"),
    ],
)
def test_fault_is_named_with_what_to_do(changed: dict[str, str], item: CheckItem, said: str, advice: str) -> None:
    found = findings(**changed)[item]
    assert found.verdict is CheckVerdict.FAULT
    assert said in found.text
    assert advice in (found.advice or "")


def test_server_of_a_lan_needs_no_token() -> None:
    status = STATUS.replace("[G:1:15572258]", "[A:1:5:6]")
    assert findings(status=status, sv_lan="sv_lan = true\n")[CheckItem.LOGIN_TOKEN].verdict is CheckVerdict.OK


@pytest.mark.parametrize("login", ["[A:1:5:6]", "[G:1:15572258]"])
def test_server_of_a_lan_at_a_public_address_is_a_fault(login: str) -> None:
    changed = {"status": STATUS.replace("[G:1:15572258]", login), "sv_lan": "sv_lan = true\n"}
    found = findings_at(changed, is_public=True)[CheckItem.LOGIN_TOKEN]
    assert found.verdict is CheckVerdict.FAULT
    assert "Set sv_lan to 0" in (found.advice or "")
    assert findings_at({}, is_public=True)[CheckItem.LOGIN_TOKEN].verdict is CheckVerdict.OK


def test_older_plugin_is_a_warning() -> None:
    found = findings(css_plugins_list=CSS.replace("0.8.15", "0.8.9"))[CheckItem.PLUGIN]
    assert found.verdict is CheckVerdict.WARNING
    assert found.advice == "Update MatchZy: Matchpod was developed against 0.8.15."


def test_version_that_is_no_number_is_shown_and_not_judged() -> None:
    found = findings(css_plugins_list=CSS.replace("0.8.15", "0.8.x-dev"))[CheckItem.PLUGIN]
    assert (found.verdict, found.text[:15]) == (CheckVerdict.OK, "MatchZy 0.8.x-d")


def test_plugin_that_is_not_listed_may_answer() -> None:
    found = findings(css_plugins_list=unknown("css_plugins"))[CheckItem.PLUGIN]
    assert (found.verdict, "get5_status" in found.text) == (CheckVerdict.OK, True)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"status": STATUS.replace("#end", f"{PLAYER}#end")}, "One player is on the server"),
        ({"status": STATUS.replace("#end", f"{PLAYER}{PLAYER}#end")}, "2 players are on the server"),
        ({"get5_status": GET5.replace("none", "live")}, "has a match"),
    ],
)
def test_people_and_matches_of_others_are_a_warning(changed: dict[str, str], said: str) -> None:
    found = findings(**changed)[CheckItem.IDLE]
    assert found.verdict is CheckVerdict.WARNING
    assert said in found.text
    assert found.advice


def test_what_cannot_be_read_is_unknown() -> None:
    found = findings(status="", meta_list="")
    unread = (CheckItem.BUILD, CheckItem.GAMEINFO, CheckItem.LOGIN_TOKEN)
    assert {found[item].verdict for item in unread} == {CheckVerdict.UNKNOWN}
    assert build_of("") is None


@pytest.mark.parametrize("opening", [opening for opening in Opening if opening is not Opening.ACCEPTED])
@pytest.mark.parametrize("is_game_up", [True, False, None])
def test_console_that_cannot_be_used_is_a_fault_with_advice(opening: Opening, is_game_up: bool | None) -> None:
    found = opening_findings(opening, "198.51.100.4:27015", is_game_up=is_game_up, error="it said no")
    faults = [finding for finding in found if finding.verdict is CheckVerdict.FAULT]
    assert faults
    assert all(finding.advice for finding in faults)
    assert any("198.51.100.4:27015" in finding.text for finding in found)


def test_ways_not_to_open_a_console_are_told_apart() -> None:
    texts = {
        opening: "".join(finding.text for finding in opening_findings(opening, "h:1", is_game_up=False))
        for opening in Opening
    }
    assert len(set(texts.values())) == len(Opening)


def test_game_without_a_console_was_started_without_usercon() -> None:
    found = opening_findings(Opening.REFUSED, "h:1", is_game_up=True)
    assert {finding.item for finding in found} == {CheckItem.RCON, CheckItem.USERCON}
    assert any("-usercon" in (finding.advice or "") for finding in found)


def test_wrong_password_proves_that_the_console_is_open() -> None:
    found = {
        finding.item: finding.verdict for finding in opening_findings(Opening.WRONG_PASSWORD, "h:1", is_game_up=None)
    }
    assert found == {
        CheckItem.RCON: CheckVerdict.OK,
        CheckItem.USERCON: CheckVerdict.OK,
        CheckItem.PASSWORD: CheckVerdict.FAULT,
    }


@pytest.mark.parametrize(
    ("times_ms", "verdict", "said"),
    [
        ([3.2, 900.0, 3.4], CheckVerdict.OK, "3.4 ms"),
        ([300.0], CheckVerdict.WARNING, "300 ms"),
        ([2_500.0, 2_100.0], CheckVerdict.FAULT, "2300 ms"),
    ],
)
def test_round_trip_is_judged_by_its_median(times_ms: list[float], verdict: CheckVerdict, said: str) -> None:
    found = round_trip_finding(times_ms)
    assert (found.verdict, said in found.text) == (verdict, True)


def test_token_is_not_shown() -> None:
    kept = log_address_finding(URL, f"{URL} - no pending request\n")
    lost = log_address_finding(URL, "")
    assert (kept.verdict, lost.verdict) == (CheckVerdict.OK, CheckVerdict.FAULT)
    assert "secret" not in f"{kept.text}{lost.text}{lost.advice}"


def test_post_that_arrived_names_its_sender() -> None:
    assert log_post_finding(post(), BASE).text == f"A post from 198.51.100.4 arrived at {BASE} after 0.4 s."


@pytest.mark.parametrize(
    ("is_pending", "is_base_local", "is_server_local", "said"),
    [
        (True, False, False, "lost on the way"),
        (False, False, False, "No log post"),
        (None, True, True, "No log post"),
    ],
)
def test_missing_post_says_where_to_look(
    is_pending: bool | None, is_base_local: bool, is_server_local: bool, said: str
) -> None:
    found = missing_post_finding(
        BASE, waited_s=10, is_pending=is_pending, is_base_local=is_base_local, is_server_local=is_server_local
    )
    assert said in found.text
    assert "DNS" in (found.advice or "")


def test_loopback_address_cannot_be_reached_by_another_machine() -> None:
    found = missing_post_finding(BASE, waited_s=10, is_pending=False, is_base_local=True, is_server_local=False)
    assert "MATCHPOD_PUBLIC_URL" in (found.advice or "")


@pytest.mark.parametrize(
    ("ahead_ms", "verdict", "said"),
    [
        (0, CheckVerdict.OK, "zone +00:00"),
        (-800, CheckVerdict.OK, "zone +00:00"),
        (7_200_000, CheckVerdict.OK, "zone +02:00"),
        (-12_600_000, CheckVerdict.OK, "zone -03:30"),
        (3_600_000 - 90_000, CheckVerdict.WARNING, "1.5 min behind (zone +01:00)"),
        (20_000, CheckVerdict.WARNING, "20 s ahead"),
        (-86_400_000 * 30, CheckVerdict.FAULT, "30 d behind"),
    ],
)
def test_clock_is_compared_apart_from_its_zone(ahead_ms: int, verdict: CheckVerdict, said: str) -> None:
    found = clock_finding(post(ahead_ms))
    assert (found.verdict, said in found.text) == (verdict, True)
    assert bool(found.advice) == (verdict is not CheckVerdict.OK)


@pytest.mark.parametrize("seen", [None, post(stamp=None), post(stamp="yesterday")])
def test_clock_without_a_stamp_is_unknown(seen: LogPost | None) -> None:
    assert clock_finding(seen).verdict is CheckVerdict.UNKNOWN


def test_clock_of_a_faster_game_is_not_compared() -> None:
    assert clock_finding(post(999_000), is_real_time=False).verdict is CheckVerdict.OK
