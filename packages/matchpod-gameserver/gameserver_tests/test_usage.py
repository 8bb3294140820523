"""A match that was left: when its server is ended."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from matchpod_gameserver.usage import LOOK_S, PLAYER_PACKETS_S, Usage, count_connections, count_packets

HOUR_S = 3600.0


def observe(
    usage: Usage, seconds: float, *, is_allocated: bool = True, is_used: bool = False, since_s: float = 0.0
) -> float:
    """Look at a server as often as the program does; return the time at which it would be ended, or -1."""
    for number in range(int(seconds / LOOK_S) + 1):
        if usage.observe(since_s + number * LOOK_S, is_allocated=is_allocated, is_used=is_used):
            return number * LOOK_S
    return -1


def test_match_without_players_and_console_is_ended_after_the_limit() -> None:
    assert observe(Usage(0, 600), HOUR_S) == 600


def test_match_that_is_used_is_never_idle() -> None:
    assert observe(Usage(0, 600), 24 * HOUR_S, is_used=True) == -1


def test_use_begins_the_idle_time_anew() -> None:
    usage = Usage(0, 600)
    assert observe(usage, 595) == -1
    usage.observe(600, is_allocated=True, is_used=True)
    assert observe(usage, HOUR_S, since_s=600) == 600


def test_server_without_a_match_is_left_to_agones() -> None:
    assert observe(Usage(600, 600), HOUR_S, is_allocated=False) == -1


def test_life_counts_from_the_allocation() -> None:
    usage = Usage(600, 0)
    assert observe(usage, 24 * HOUR_S, is_allocated=False) == -1
    assert observe(usage, HOUR_S, is_used=True, since_s=25 * HOUR_S) == 600


def test_without_limits_nothing_ends() -> None:
    assert observe(Usage(0, 0), 24 * HOUR_S) == -1


def test_time_in_which_the_program_stood_still_does_not_count() -> None:
    usage = Usage(0, 600)
    usage.observe(0, is_allocated=True, is_used=True)
    assert usage.observe(HOUR_S, is_allocated=True, is_used=False) is None


TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:6987 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   1: 0A00002A:6987 0A000017:C350 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0 100 0 0 10 0
   2: 0A00002A:6987 0A000017:C351 06 00000000:00000000 00:00000000 00000000  1000        0 0 1 0 100 0 0 10 0
   3: 0A00002A:C352 0A000017:6987 01 00000000:00000000 00:00000000 00000000  1000        0 3 1 0 100 0 0 10 0
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when
   0: 0000000000000000FFFF00000A00002A:6987 0000000000000000FFFF00000A000017:C350 01 00000000:00000000 00:00000000
"""


@pytest.mark.parametrize(("table", "port", "number"), [(TCP, 27015, 1), (TCP6, 27015, 1), (TCP, 27016, 0), ("", 1, 0)])
def test_only_open_connections_to_the_port_count(table: str, port: int, number: int) -> None:
    assert count_connections(table, port) == number


def test_received_packets_are_read_from_the_kernel() -> None:
    before = count_packets(Path("/proc/net/snmp").read_text())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        for _ in range(100):
            own.sendto(b"x", own.getsockname())
            own.recv(1)
        assert count_packets(Path("/proc/net/snmp").read_text()) >= before + 100


def test_packets_of_both_protocols_count() -> None:
    table = "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts\nUdp: 40 3\nUdpLite: InDatagrams\nUdpLite: 7\n"
    assert count_packets(table) == 40
    assert count_packets(table, "Ip6InReceives\t9\nUdp6InDatagrams                 \t2\nUdp6NoPorts\t5\n") == 42


def test_one_player_is_above_the_limit_and_a_server_browser_below() -> None:
    assert 5 < PLAYER_PACKETS_S < 64
