"""What the SDK of Agones says about the server."""

from __future__ import annotations

import json

import pytest

from matchpod_gameserver.log import FatalError
from matchpod_gameserver.sdk import SdkServer, choose_port, parse_gameserver

SERVER = {
    "object_meta": {"name": "cs2-eu-abcde"},
    "status": {"state": "Scheduled", "ports": [{"name": "game", "port": 7001}]},
}


def server_with(**ports: int) -> SdkServer:
    return SdkServer("cs2-eu-abcde", "Scheduled", {name.replace("_", "-"): port for name, port in ports.items()})


def test_gameserver_is_read() -> None:
    answer = json.dumps(SERVER).encode()
    assert parse_gameserver(answer) == SdkServer("cs2-eu-abcde", "Scheduled", {"game": 7001})


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff", b"{}", b'{"object_meta": {}}', b'{"object_meta": null, "status": {}}']
    + [json.dumps({**SERVER, "status": {"ports": ports}}).encode() for ports in ([{"name": "a"}], [1], {"a": 1}, 7)],
)
def test_other_answers_are_reported(body: bytes) -> None:
    with pytest.raises(OSError, match="did not answer with a GameServer"):
        parse_gameserver(body)


@pytest.mark.parametrize("status", [{}, None, {"ports": None}, {"ports": []}])
def test_gameserver_without_ports_is_not_usable_yet(status: object) -> None:
    body = json.dumps({**SERVER, "status": status}).encode()
    with pytest.raises(OSError, match=r"the GameServer cs2-eu-abcde has no ports; list them in its spec.ports"):
        parse_gameserver(body)


def test_port_with_both_protocols_is_found_by_its_name() -> None:
    both = server_with(query=1, srcds_tcp=7002, srcds_udp=7002, game_tcp=7001, game_udp=7001)
    assert choose_port(both, "") == 7001
    assert choose_port(both, "srcds") == 7002
    assert choose_port(both, "query") == 1
    assert choose_port(both, "srcds-tcp") == 7002


def test_udp_port_is_preferred_because_players_use_it() -> None:
    assert choose_port(server_with(game_tcp=1, game_udp=2), "") == 2


def test_first_port_is_used_unless_a_name_is_given() -> None:
    assert choose_port(server_with(default=7777, other=1), "") == 7777
    with pytest.raises(FatalError, match=r"^the GameServer cs2-eu-abcde has no port `game`; it has default, other$"):
        choose_port(server_with(default=7777, other=1), "game")
