"""Compare the output of `status` and `status_json` with our parsers and with real servers."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.console_answers import StatusJsonClient, StatusPlayer, parse_status, parse_status_json
from cs2_simulator.console.status import status_json_text, status_text
from cs2_simulator.play.player import Participant
from simulator_tests.console.console_harness import ConsoleHarness

NAMES = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=40)


def depth(line: str) -> int:
    return len(line) - len(line.lstrip("\t"))


def test_server_hibernates_only_without_humans_and_if_enabled(harness: ConsoleHarness) -> None:
    harness.execute("sv_hibernate_when_empty 0")
    assert "(not hibernating)" in status_text(harness.arena)
    harness.execute("sv_hibernate_when_empty 1")
    harness.add_player(Participant("Rebel", 0), 1)
    assert "(hibernating)" in status_text(harness.arena)
    harness.add_player(Participant("A", 7), 2)
    assert "(not hibernating)" in status_text(harness.arena)
    assert '"hibernating": false,' in status_json_text(harness.arena)


def test_rows_equal_those_of_a_real_server(harness: ConsoleHarness) -> None:
    harness.add_player(Participant("Rebel", 0), 2)
    harness.add_player(Participant("Nickname", 35, address="127.0.0.1:65498"), 3)
    harness.agenda.run_until(harness.agenda.now_ms + 40_000)
    rows = status_text(harness.arena).split("---------players--------\n")[1]
    assert rows == (
        "  id     time ping loss      state   rate adr name\n"
        "65535 [NoChan]    0    0 challenging      0unknown ''\n"
        "65535 [NoChan]    0    0 challenging      0unknown ''\n"
        "   2      BOT    0    0     active      0 'Rebel'\n"
        "   3    00:40   50    0     active 786432 127.0.0.1:65498 'Nickname'\n"
        "#end\n"
    )


def test_status_adds_an_offset_to_the_user_id_of_a_loading_player(harness: ConsoleHarness) -> None:
    harness.add_player(Participant("A", 7), 3, is_in_game=False)
    text = status_text(harness.arena)
    assert [player.user_id for player in parse_status(text)] == [65283]
    assert " spawning " in text


def test_status_header_equals_that_of_a_real_server(harness: ConsoleHarness, corpus: Path) -> None:
    harness.execute("hostname Larry's Server")
    ours = status_text(harness.arena).split("---------players")[0].splitlines()
    theirs = (corpus / "status_1.41.2.8_bots_hibernating.txt").read_text().split("---------players")[0].splitlines()
    # Players, addresses and spawn groups differ.
    different = re.compile(r"players  :|udp/ip   :|loaded spawngroup")
    assert [line for line in ours if not different.match(line)] == [
        line for line in theirs if not different.match(line)
    ]


def test_status_json_has_the_fields_of_a_real_server_in_the_same_order(harness: ConsoleHarness, corpus: Path) -> None:
    for number in range(2, 13):
        harness.add_player(Participant(f"Bot {number}", 0), number)
    field = re.compile(r'^\t*"([^"]+)":', re.MULTILINE)
    assert field.findall(status_json_text(harness.arena)) == field.findall(
        (corpus / "status_json_build2000696.json").read_text()
    )


def test_status_json_of_thirteen_clients_exceeds_4096_bytes(harness: ConsoleHarness) -> None:
    for number in range(1, 14):
        harness.add_player(Participant(f"Player {number}", 1000 + number), number)
    assert len(status_json_text(harness.arena).encode()) > 4096


def test_status_json_shows_steam_ids_and_free_slots(harness: ConsoleHarness) -> None:
    harness.add_player(Participant("A", 37572195), 1)
    harness.add_player(Participant("Rebel", 0), 2)
    text = status_json_text(harness.arena)
    status = parse_status_json(text)
    assert status is not None
    assert text.count('"steamid": "[I:0:0]"') == 1
    assert status.map == "de_inferno"
    assert '"build_version": 2000696,' in text
    assert '"build_source_revision": "10299884",' in text
    assert status.clients == (
        StatusJsonClient(steam_id64="76561197997837923", name="A", is_bot=False),
        StatusJsonClient(steam_id64="90071996842377218", name="Rebel", is_bot=True),
    )
    assert [client.name for client in status.humans] == ["A"]


def test_workshop_map_is_shown_without_its_path(harness: ConsoleHarness) -> None:
    harness.arena.map_name = "workshop/125444404/cs_office"
    text = status_json_text(harness.arena)
    assert "[1: cs_office |" in status_text(harness.arena)
    assert '"map": "cs_office",\n\t\t"addon": "125444404",' in text


@given(NAMES, NAMES)
def test_any_name_can_be_parsed_from_status(human: str, bot: str) -> None:
    harness = ConsoleHarness()
    harness.add_player(Participant(human, 35), 1)
    harness.add_player(Participant(bot, 0), 2)
    assert parse_status(status_text(harness.arena)) == (
        StatusPlayer(user_id=1, name=human, is_bot=False),
        StatusPlayer(user_id=2, name=bot, is_bot=True),
    )


@given(NAMES)
def test_any_name_can_be_parsed_from_status_json(name: str) -> None:
    harness = ConsoleHarness()
    harness.add_player(Participant(name, 35), 1)
    status = parse_status_json(status_json_text(harness.arena))
    assert status is not None
    assert [client.name for client in status.clients] == [name]
