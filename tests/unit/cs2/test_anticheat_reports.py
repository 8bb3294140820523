"""Tests of anti-cheat reports: all formats are parsed, telemetry is skipped, and names cannot accuse other players."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.cs2.anticheat_reports import (
    MAX_DETECTIONS,
    MAX_FREE_TEXT_CHARS,
    MAX_REPORT_BYTES,
    MAX_TEXT_CHARS,
    PluginDetection,
    read_detections,
)

PLAYER = "76561197997837923"
OTHER = "76561198034202275"


def body(value: object) -> bytes:
    return msgspec.json.encode(value)


def tbac(name: str = "Ic3", *, steam_id: str = "STEAM_1:1:18786097", weapon: str = "weapon_ak47") -> bytes:
    content = (
        f"**----- CHEATER DETECTED -----**\n```Detection: Aimbot\nWeapon: {weapon}\nInfo: Aimbot -> 41.2\n\n"
        f"Name: {name}\nSteamID: {steam_id}\nTime: 01/19/2026 19:03:11```"
    )
    return body({"username": "TB Anti-Cheat", "content": content})


def schwarper(name: str = "Ic3", *, details: str = "Details:  (720 degrees)\n", line_end: str = "\n") -> bytes:
    content = (
        f"```\nServer IP: 203.0.113.1\nPlayer: {name}\nSteamID: {PLAYER}\nCheat Type: Spinbot\n{details}```".replace(
            "\n", line_end
        )
    )
    return body({"content": content})


def observation(**changes: object) -> dict[str, object]:
    return {
        "SteamID": PLAYER,
        "PlayerName": "Ic3",
        "Slot": 3,
        "IsBot": False,
        "Source": "detection_module",
        "Kind": "RapidFire",
        "Summary": "RapidFire -> Player: 3",
        "Weapon": "ak47",
        "WeaponFamily": "rifle",
        "RoundNumber": 7,
        "ServerTick": 40_000,
        "Metadata": {"module": "RapidFire"},
        **changes,
    }


def batch(*observations: object) -> bytes:
    return body({"PluginName": "TB Anti-Cheat", "RoundNumber": 7, "Players": [], "Observations": list(observations)})


# --- formats ----------------------------------------------------------------------------------------------------


def test_tb_anti_cheat_webhook_is_parsed() -> None:
    assert read_detections(tbac()) == [
        PluginDetection(player_id=PLAYER, name="Ic3", kind="Aimbot", reason="Aimbot -> 41.2", weapon="ak47")
    ]


def test_schwarper_webhook_is_parsed() -> None:
    found = [PluginDetection(player_id=PLAYER, name="Ic3", kind="Spinbot", reason="720 degrees")]
    assert read_detections(schwarper()) == found
    assert read_detections(schwarper(line_end="\r\n")) == found


def test_details_are_optional() -> None:
    (found,) = read_detections(schwarper(details=""))
    assert found.reason == "Spinbot"


def test_only_brackets_around_all_details_are_removed() -> None:
    (found,) = read_detections(schwarper(details="Details: (a) and b\n"))
    assert found.reason == "(a) and b"


def test_batch_of_observations_is_parsed() -> None:
    assert read_detections(batch(observation(), observation(RoundNumber=0, Weapon=""))) == [
        PluginDetection(player_id=PLAYER, name="Ic3", kind="RapidFire", reason="RapidFire -> Player: 3", weapon="ak47"),
        PluginDetection(player_id=PLAYER, name="Ic3", kind="RapidFire", reason="RapidFire -> Player: 3"),
    ]


def test_own_format_is_parsed_as_object_and_as_list() -> None:
    entry = {"steamId": PLAYER, "type": "aim", "reason": "41 degrees", "weapon": "weapon_awp"}
    found = PluginDetection(player_id=PLAYER, name="", kind="aim", reason="41 degrees", weapon="awp")
    assert read_detections(body(entry)) == [found]
    assert read_detections(body([entry, {**entry, "steamId": "[U:1:37572195]"}])) == [found, found]


def test_own_format_may_contain_a_name() -> None:
    entry = {"steamId": int(PLAYER), "type": "aim", "name": "Ic3", "roundNumber": 4}
    assert read_detections(body(entry)) == [PluginDetection(player_id=PLAYER, name="Ic3", kind="aim", reason="aim")]


# --- other input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"Source": "utility_telemetry", "Kind": "player_blinded"},
        {"Source": "combat_telemetry", "Kind": "interesting_kill"},
        {"Source": None},
        {"IsBot": True},
        {"SteamID": "0"},
        {"SteamID": None},
        {"SteamID": "BOT"},
        {"Kind": ""},
        {"Kind": 7},
    ],
)
def test_telemetry_bots_and_invalid_ids_are_skipped(changes: dict[str, object]) -> None:
    assert read_detections(batch(observation(**changes), "stray")) == []


def test_other_posts_contain_no_detections() -> None:
    for sent in [
        b"",
        b"{",
        b"\xff",
        b"7",
        b"null",
        b"[[1]]",
        b"[" * 100_000,
        body({}),
        body({"content": 7}),
        body({"content": "hello"}),
        body({"content": "x" * (MAX_FREE_TEXT_CHARS + 1)}),
        body({"Observations": {}}),
        body({"steamId": PLAYER}),
        body({"steamId": True, "type": "aim"}),
        tbac(steam_id="STEAM_ID_PENDING"),
        b" " * (MAX_REPORT_BYTES + 1),
    ]:
        assert read_detections(sent) == []


# --- limits and hostile names -----------------------------------------------------------------------------------


def test_number_of_detections_is_bounded() -> None:
    assert len(read_detections(batch(*[observation()] * (MAX_DETECTIONS + 5)))) == MAX_DETECTIONS


def test_long_texts_are_truncated() -> None:
    (found,) = read_detections(batch(observation(Kind="k" * 999, Summary="s" * 999, PlayerName="n" * 999)))
    assert {len(found.kind), len(found.reason), len(found.name)} == {MAX_TEXT_CHARS}


def test_name_cannot_forge_the_id_in_a_webhook() -> None:
    forged = f"bob\nSteamID: {OTHER}\nTime: 01/19/2026 19:03:11```"
    (found,) = read_detections(tbac(forged))
    assert found.player_id == PLAYER
    (found,) = read_detections(schwarper(f"bob\nSteamID: {OTHER}\nCheat Type: Wallhack\n```"))
    assert (found.player_id, found.kind) == (PLAYER, "Spinbot")


words = st.sampled_from(["content", "Observations", "SteamID", "steamId", "type", "Source", "Kind", "detection_module"])
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10) | words
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4), max_leaves=8
)


@given(st.binary(max_size=60) | values.map(lambda value: body(value)))
def test_arbitrary_post_never_raises(sent: bytes) -> None:
    assert isinstance(read_detections(sent), list)


@given(st.text(alphabet=st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_every_name_is_parsed_completely(name: str) -> None:
    (posted,) = read_detections(tbac(name))
    assert posted.name == name
