"""The texts of `status` and `status_json`, against what we read and what real servers print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.cs2.console_answers import StatusJsonClient, StatusPlayer, parse_status, parse_status_json
from matchpod.simulator.console.status import status_json_text, status_text
from matchpod.simulator.play.player import Person
from tests.unit.simulator.console.bench import Bench

NAMES = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=40)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def depth(line: str) -> int:
    return len(line) - len(line.lstrip("\t"))


def test_empty_server_has_an_empty_table(bench: Bench) -> None:
    bench.say("hostname My Server")
    status = parse_status(status_text(bench.arena))
    assert status is not None
    assert (status.hostname, status.version, status.build, status.map) == (
        "My Server",
        "1.41.2.8",
        10603,
        "de_inferno",
    )
    assert (status.humans, status.bots, status.is_hibernating, status.players) == (0, 0, True, ())


def test_server_with_people_or_told_so_does_not_hibernate(bench: Bench) -> None:
    bench.say("sv_hibernate_when_empty 0")
    assert "(not hibernating)" in status_text(bench.arena)
    bench.say("sv_hibernate_when_empty 1")
    bench.seat(Person("Rebel", 0), 1)
    assert "(hibernating)" in status_text(bench.arena)
    bench.seat(Person("A", 7), 2)
    assert "(not hibernating)" in status_text(bench.arena)
    assert '"hibernating": false,' in status_json_text(bench.arena)


def test_rows_look_like_those_of_a_real_server(bench: Bench) -> None:
    bench.seat(Person("Rebel", 0), 2)
    bench.seat(Person("Nickname", 35, address="127.0.0.1:65498"), 3)
    bench.agenda.run_until(bench.agenda.now_ms + 40_000)
    rows = status_text(bench.arena).split("---------players--------\n")[1]
    assert rows == (
        "  id     time ping loss      state   rate adr name\n"
        "65535 [NoChan]    0    0 challenging      0unknown ''\n"
        "65535 [NoChan]    0    0 challenging      0unknown ''\n"
        "   2      BOT    0    0     active      0 'Rebel'\n"
        "   3    00:40   50    0     active 786432 127.0.0.1:65498 'Nickname'\n"
        "#end\n"
    )


def test_time_on_the_server_grows_hours(bench: Bench) -> None:
    bench.seat(Person("A", 7), 1)
    bench.agenda.run_until(bench.agenda.now_ms + 3_725_000)
    assert "  1:02:05 " in status_text(bench.arena)


def test_somebody_who_loads_has_a_number_that_is_no_number(bench: Bench) -> None:
    bench.seat(Person("A", 7), 3, is_in_game=False)
    status = parse_status(status_text(bench.arena))
    assert status is not None
    assert [(player.user_id, player.state) for player in status.players] == [(65283, "spawning")]


def test_header_of_status_is_that_of_a_real_server(bench: Bench, corpus: Path) -> None:
    bench.say("hostname Larry's Server")
    ours = status_text(bench.arena).split("---------players")[0].splitlines()
    theirs = (corpus / "status_1.41.2.8_bots_hibernating.txt").read_text().split("---------players")[0].splitlines()
    # Who is there, where it is reached and which skybox a map has differ.
    different = re.compile(r"players  :|udp/ip   :|loaded spawngroup")
    assert [line for line in ours if not different.match(line)] == [
        line for line in theirs if not different.match(line)
    ]


def test_status_json_has_the_fields_of_a_real_server_in_their_order(bench: Bench, corpus: Path) -> None:
    for number in range(2, 13):
        bench.seat(Person(f"Bot {number}", 0), number)
    field = re.compile(r'^\t*"([^"]+)":', re.MULTILINE)
    assert field.findall(status_json_text(bench.arena)) == field.findall(
        (corpus / "status_json_build2000696.json").read_text()
    )


def test_status_json_is_indented_like_a_real_one(bench: Bench, corpus: Path) -> None:
    real_lines = (corpus / "status_json_build2000696.json").read_text().splitlines()
    for number in range(2, 13):
        bench.seat(Person(f"Bot {number}", 0), number)
    ours = status_json_text(bench.arena).splitlines()
    assert [depth(line) for line in ours] == [depth(line) for line in real_lines]


def test_thirteen_clients_are_more_than_a_classic_packet(bench: Bench) -> None:
    for number in range(1, 14):
        bench.seat(Person(f"Player {number}", 1000 + number), number)
    assert len(status_json_text(bench.arena).encode()) > 4096


def test_status_json_shows_steam_ids_and_free_slots(bench: Bench) -> None:
    bench.seat(Person("A", 37572195), 1)
    bench.seat(Person("Rebel", 0), 2)
    text = status_json_text(bench.arena)
    status = parse_status_json(text)
    assert status is not None
    assert text.count('"steamid": "[I:0:0]"') == 1
    assert (status.map, status.build_version, status.source_revision) == ("de_inferno", 2000696, "10299884")
    assert status.clients == (
        StatusJsonClient(steam_id64="76561197997837923", name="A", is_bot=False),
        StatusJsonClient(steam_id64="90071996842377218", name="Rebel", is_bot=True),
    )
    assert [client.name for client in status.humans] == ["A"]


def test_status_json_of_an_empty_server_lists_nobody(bench: Bench) -> None:
    status = parse_status_json(status_json_text(bench.arena))
    assert status is not None
    assert (status.clients, status.is_hibernating) == ((), True)


def test_workshop_map_goes_by_its_own_name(bench: Bench) -> None:
    bench.arena.map_name = "workshop/125444404/cs_office"
    text = status_json_text(bench.arena)
    status = parse_status(status_text(bench.arena))
    assert status is not None
    assert status.map == "cs_office"
    assert '"map": "cs_office",\n\t\t"addon": "125444404",' in text


@given(NAMES, NAMES)
def test_any_name_survives_status(human: str, bot: str) -> None:
    bench = Bench()
    bench.seat(Person(human, 35), 1)
    bench.seat(Person(bot, 0), 2)
    status = parse_status(status_text(bench.arena))
    assert status is not None
    assert status.players == (
        StatusPlayer(
            user_id=1,
            connected_s=0,
            ping=50,
            loss=0,
            state="active",
            address="203.0.113.10:27005",
            name=human,
            is_bot=False,
        ),
        StatusPlayer(user_id=2, connected_s=None, ping=0, loss=0, state="active", address=None, name=bot, is_bot=True),
    )


@given(NAMES)
def test_any_name_survives_status_json(name: str) -> None:
    bench = Bench()
    bench.seat(Person(name, 35), 1)
    status = parse_status_json(status_json_text(bench.arena))
    assert status is not None
    assert [client.name for client in status.clients] == [name]
