"""Tests of what a server says about itself: real samples, texts that people post, and arbitrary text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.server_facts import (
    MAX_TEXT_CHARS,
    Plugin,
    ServerBuild,
    SteamLogin,
    has_pending_request,
    knows_command,
    parse_build,
    parse_css_plugins,
    parse_hibernation,
    parse_log_state,
    parse_login,
    parse_meta_list,
)

META = """Listing 3 plugins:
  [01] CleanerCS2 (1.0.5) by Poggu
  [02] CounterStrikeSharp (v1.0.337 @ adccc4b) by Roflmuffin
  [03] MultiAddonManager (v1.4.6-0-g3f416b1) by xen
"""
CSS = """  List of all plugins currently loaded by CounterStrikeSharp: 2 plugins loaded.
  [#1:LOADED]: "MatchZy" (0.8.11) by WD- (https://github.com/shobhit-pathak/)
    A plugin for running and managing CS2 practice/pugs/scrims/matches!
  [#2:UNLOADED]: "Broken" (1.0)
    Termination Reason: it crashed
"""
URL = "http://203.0.113.7:8080/ingest/logs/mp-0123456789abcdef-check"


def test_build_login_and_hibernation_of_a_real_server_are_parsed(corpus: Path) -> None:
    status = (corpus / "status_1.41.2.8_bots_hibernating.txt").read_text()
    assert parse_build(status) == ServerBuild(version="1.41.2.8", build=10603)
    assert parse_login(status) is SteamLogin.TOKEN
    assert parse_hibernation(status) is True


@pytest.mark.parametrize(
    ("line", "login"),
    [
        ("steamid  : [A:1:2404786178:50561] (90223523129704450)", SteamLogin.ANONYMOUS),
        ("steamid  : [I:0:0] (0)", SteamLogin.NONE),
        ("steamid  : [U:1:7]", None),
        ("hostname : steamid  : [G:1:7]", None),
    ],
)
def test_login_is_told_by_the_kind_of_the_id(line: str, login: SteamLogin | None) -> None:
    assert parse_login(f"{line}\n") is login


def test_awake_server_does_not_hibernate() -> None:
    assert parse_hibernation("players  : 2 humans, 0 bots (10 max) (not hibernating) (unreserved)\r\n") is False
    assert parse_hibernation("players: some") is None


def test_plugins_of_metamod_are_parsed() -> None:
    found = parse_meta_list(f"a line of the game\n{META}")
    assert found is not None
    assert [(plugin.name, plugin.version) for plugin in found] == [
        ("CleanerCS2", "1.0.5"),
        ("CounterStrikeSharp", "v1.0.337 @ adccc4b"),
        ("MultiAddonManager", "v1.4.6-0-g3f416b1"),
    ]
    assert all(plugin.is_loaded for plugin in found)


@pytest.mark.parametrize(
    ("line", "plugin"),
    [
        ("  [01] <ERROR>", Plugin(name="", version="", is_loaded=False)),
        (
            "  [01] <FAILED> CounterStrikeSharp (v1.0.375 @ 751eb0c)",
            Plugin(name="CounterStrikeSharp", version="v1.0.375 @ 751eb0c", is_loaded=False),
        ),
    ],
)
def test_plugin_that_failed_is_not_loaded(line: str, plugin: Plugin) -> None:
    assert parse_meta_list(f"Listing 1 plugin:\n{line}\n") == (plugin,)


def test_metamod_without_plugins_differs_from_no_metamod() -> None:
    assert parse_meta_list("No plugins loaded.\n") == ()
    assert parse_meta_list("Unknown command 'meta'!\n") is None


def test_plugins_of_counterstrikesharp_are_parsed() -> None:
    assert parse_css_plugins(CSS) == (
        Plugin(name="MatchZy", version="0.8.11", is_loaded=True),
        Plugin(name="Broken", version="1.0", is_loaded=False),
    )
    assert parse_css_plugins("Unknown command 'css_plugins'!\n") is None


def test_long_texts_are_cut() -> None:
    found = parse_meta_list(f"Listing 1 plugin:\n  [01] {'n' * 100} ({'v' * 90}) by x\n")
    assert found == (Plugin(name="n" * MAX_TEXT_CHARS, version="v" * MAX_TEXT_CHARS, is_loaded=True),)


def test_unknown_command_is_recognized() -> None:
    assert knows_command("Unknown command 'Meta'!\n", "meta") is False
    assert knows_command("Listing 1 plugin:", "meta") is True
    assert knows_command("\n", "meta") is None


@pytest.mark.parametrize(
    ("text", "is_on"),
    [
        ("Usage:  log < on | off >\ncurrently logging\n", True),
        ("Usage:  log < on | off >\nnot currently logging\n", False),
        ("nothing of the kind", None),
    ],
)
def test_state_of_the_log_is_parsed(text: str, is_on: bool | None) -> None:
    assert parse_log_state(text) is is_on


def test_pending_request_is_that_of_our_address() -> None:
    listed = f"{URL} - has pending request\n\tlast acknowledged tick 0\nhttp://other - no pending request\n"
    assert has_pending_request(listed, URL) is True
    assert has_pending_request(listed, "http://other") is False
    assert has_pending_request(listed, "http://third") is None


@given(st.text())
def test_arbitrary_text_is_read_without_an_error(text: str) -> None:
    readers = (parse_build, parse_login, parse_hibernation, parse_meta_list, parse_css_plugins, parse_log_state)
    for read in readers:
        read(text)
    knows_command(text, "meta")
    has_pending_request(text, URL)
