"""Tests of demos: when they are recorded, what is posted of them and when."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cs2_protocol.game import Side
from cs2_simulator.plugin.demos import BEGIN, BYTES_PER_S, END
from simulator_tests.plugin.plugin_harness import PluginHarness, match

UPLOAD_URL = "http://service.example/demos"
TWO_MAPS = ("de_dust2", "de_nuke", "de_train")


class Recorded(PluginHarness):
    """A server whose first map was loaded with the settings of a recording, with a match that is live."""

    def __init__(
        self, *, tv_delay: int = 0, maps: tuple[str, ...] = ("de_dust2",), cvars: Mapping[str, str] = {}
    ) -> None:
        super().__init__()
        for name, value in {
            "tv_enable": "1",
            "tv_delay": str(tv_delay),
            "matchzy_demo_upload_url": UPLOAD_URL,
            "matchzy_demo_upload_header_key": "X-Token",
            "matchzy_demo_upload_header_value": "secret",
            **cvars,
        }.items():
            self.rcon(f'{name} "{value}"')
        self.load_map("de_dust2")
        self.load(match(maps=maps))
        self.enter_all()
        self.rcon("css_start")
        self.wait(1)

    def restore(self) -> None:
        self.play_round(Side.CT)
        self.rcon("css_restore 0")
        self.wait(1)

    def content(self, number: int = 0) -> bytes:
        _, _, upload = self.outside.uploads[number]
        content = b"".join(upload.blocks())
        assert len(content) == upload.size
        return content


def test_demo_is_posted_once_half_a_minute_after_the_end() -> None:
    server = Recorded()
    server.play_map(4, 0)
    server.wait(29)
    assert server.outside.uploads == []
    server.wait(1)
    ((url, headers, _),) = server.outside.uploads
    assert url == UPLOAD_URL
    name = headers["MatchZy-FileName"]
    assert name.endswith("_27_de_dust2_Team_Blue_vs_Team_Red.dem")
    numbers = {"FileName": name, "MatchId": "27", "MapNumber": "0", "RoundNumber": "4"}
    both = {f"{prefix}-{key}": value for prefix in ("MatchZy", "Get5") for key, value in numbers.items()}
    assert headers == {"Content-Type": "application/octet-stream", "X-Token": "secret", **both}
    server.wait(600)
    assert len(server.outside.uploads) == 1


def test_demo_waits_for_a_delayed_broadcast() -> None:
    server = Recorded(tv_delay=90)
    server.play_map(4, 0)
    server.wait(119)
    assert server.outside.uploads == []
    server.wait(1)
    assert server.content().endswith(END)


def test_demo_of_a_map_is_complete_although_it_is_posted_after_the_plugin_changed_the_map() -> None:
    server = Recorded(maps=TWO_MAPS)
    server.play_map(4, 0)
    server.wait(29)
    assert server.arena.map_name == "de_nuke"
    assert server.outside.uploads == []
    server.wait(1)
    content = server.content()
    assert content.startswith(BEGIN)
    assert content.endswith(END)


@pytest.mark.parametrize("wait_s", [0, 14, 100])
def test_map_change_before_the_delay_is_over_cuts_a_recording(wait_s: int) -> None:
    server = Recorded(tv_delay=90, maps=TWO_MAPS)
    server.play_map(4, 0)
    server.wait(wait_s)
    server.rcon("changelevel de_nuke")
    server.wait(120)
    assert server.content().startswith(BEGIN)
    assert not server.content().endswith(END)


def test_map_is_recorded_again_after_a_restore_and_both_files_are_posted() -> None:
    server = Recorded()
    server.restore()
    server.play_map(4, 0)
    server.wait(30)
    names = {headers["MatchZy-FileName"] for _, headers, _ in server.outside.uploads}
    assert len(names) == len(server.outside.uploads) == 2
    assert {headers["MatchZy-MapNumber"] for _, headers, _ in server.outside.uploads} == {"0"}


def test_size_follows_from_length_and_speed_unless_it_is_given() -> None:
    server = Recorded()
    server.wait(99)
    server.rcon("sim_speed 2")
    server.play_map(4, 0)
    server.wait(30)
    assert server.outside.uploads[0][2].size == pytest.approx(115 * BYTES_PER_S / 2, rel=0.02)
    given = Recorded(cvars={"sim_demo_mb": "3"})
    given.play_map(4, 0)
    given.wait(30)
    assert len(given.content()) == 3_000_000


@pytest.mark.parametrize(
    "cvars",
    [
        {"tv_enable": "0"},
        {"matchzy_demo_recording_enabled": "false"},
        {"matchzy_demo_upload_url": ""},
        {"sim_demo_faults": "no_recording"},
        {"sim_demo_faults": "no_upload"},
        {"matchzy_demo_name_format": "Zürich"},  # .NET rejects the header
    ],
)
def test_nothing_is_posted_without_a_recording_or_a_valid_upload(cvars: dict[str, str]) -> None:
    server = Recorded(cvars=cvars)
    server.play_map(4, 0)
    server.wait(600)
    assert server.outside.uploads == []


def test_broadcast_that_is_switched_on_after_the_map_was_loaded_records_nothing() -> None:
    server = Recorded(cvars={"tv_enable": "0"})
    server.rcon("tv_enable 1")
    server.play_map(4, 0)
    server.wait(600)
    assert server.outside.uploads == []


def test_upload_can_be_cut_in_the_middle() -> None:
    server = Recorded(cvars={"sim_demo_faults": "cut_upload"})
    server.play_map(4, 0)
    server.wait(30)
    _, _, upload = server.outside.uploads[0]
    assert upload.stops_after == upload.size // 2


def test_match_that_is_reset_posts_nothing() -> None:
    server = Recorded()
    server.play_round(Side.CT)
    server.rcon("css_endmatch")
    server.wait(600)
    assert server.outside.uploads == []
