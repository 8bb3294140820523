"""Players from pasted text."""

from __future__ import annotations

import pytest

from matchpod.console.roster_text import read_roster

PLAYER = "76561198000000001"


@pytest.mark.parametrize(
    "line",
    [
        PLAYER,
        f"  {PLAYER}\t",
        f"{PLAYER},",
        f"{PLAYER} ;",
        f"Ann {PLAYER}",
        f"{PLAYER} Ann, the 1st",
        f'"Ann; the 1st","{PLAYER}",captain',
        f"Ann\t{PLAYER}\t1337",
        "1. Ann (STEAM_0:1:19867136)",
        f"<https://steamcommunity.com/profiles/{PLAYER}> | Ann",
        f"Ann https://steamcommunity.com/id/ann {PLAYER}",
        "[U:1:39734273]",
        "STEAM_0:1:19867136",
        "STEAM_1:1:19867136",
        f"https://steamcommunity.com/profiles/{PLAYER}",
        f"http://www.steamcommunity.com/profiles/{PLAYER}/?l=english",
        f"steamcommunity.com/profiles/{PLAYER}#games",
        "https://steamcommunity.com/profiles/[U:1:39734273]",
    ],
)
def test_all_forms_of_a_steam_id_are_read(line: str) -> None:
    (listed,) = read_roster(line)
    assert (listed.line, listed.player, listed.fault) == (1, PLAYER, None)


def test_lines_are_counted_as_in_the_text_field() -> None:
    listed = read_roster(f"\n{PLAYER}\n\n  \nfoo\n")
    assert [(one.line, one.player) for one in listed] == [(2, PLAYER), (5, "foo")]


@pytest.mark.parametrize(
    "line",
    ["foo", "7656119800000000", "[U:1:0]", "STEAM_9:0:1", "https://evil.example/profiles/7", "0", "Ann Bo", "name"],
)
def test_line_that_cannot_be_read_is_kept_with_a_fault(line: str) -> None:
    (listed,) = read_roster(f"\n{line}")
    assert listed.player == line
    assert listed.fault is not None
    assert listed.fault.startswith(f"line 2: “{line}” is not a SteamID")


OTHER = "76561198000000002"


@pytest.mark.parametrize(
    "text",
    [
        f"{PLAYER} {OTHER}",
        f"{PLAYER},{OTHER}",
        f"Ann {PLAYER}; Bo {OTHER};",
        f"Ann\t{PLAYER}\r\nBo\t{OTHER}\r\n",
        f"Name;Steam ID\nAnn;{PLAYER}\nBo;{OTHER}",
        f"name,steamid64\n{PLAYER}\n[U:1:39734274]",
    ],
)
def test_lists_and_tables_are_read(text: str) -> None:
    listed = read_roster(text)
    assert [(one.player, one.fault) for one in listed] == [(PLAYER, None), (OTHER, None)]


@pytest.mark.parametrize(
    "typo", ["7656119800000000", "765611980000000011", "STEAM_0:2:1", "https://steamcommunity.com/profiles/ann"]
)
def test_id_with_a_typo_does_not_pass_for_a_name(typo: str) -> None:
    listed = read_roster(f"Ann {PLAYER}\nBo {typo} {OTHER}")
    assert [one.player for one in listed] == [PLAYER, typo, OTHER]
    assert [one.fault is None for one in listed] == [True, False, True]


def test_heading_counts_only_in_the_first_line() -> None:
    assert [one.player for one in read_roster(f"{PLAYER}\nname id")] == [PLAYER, "name id"]


def test_profile_with_a_name_is_explained() -> None:
    (listed,) = read_roster("https://steamcommunity.com/id/someone")
    assert listed.fault is not None
    assert "does not contain the SteamID, and names of profiles cannot be looked up here" in listed.fault


def test_fault_quotes_only_a_part_of_a_long_line() -> None:
    (listed,) = read_roster("x" * 10_000 + "\x1b")
    assert listed.fault is not None
    assert len(listed.fault) < 300


def test_nothing_lists_no_player() -> None:
    assert read_roster("") == read_roster(" \n,\n") == []
