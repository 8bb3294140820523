"""What the benchmarks of latency note and compute."""

from __future__ import annotations

from tests.bench.checkouts import percentile
from tests.bench.relay import Relay

HEAD = b"POST /log HTTP/1.1\r\nX-Server-Addr: 127.0.0.1:27015\r\nContent-Length: 26\r\n\r\n"


def test_relay_records_the_end_of_a_game_even_if_its_text_is_split() -> None:
    relay = Relay(lambda: 0)
    observe = relay.observer()
    for part in (HEAD[:40], HEAD[40:], b"12:00:00 - Game O"):
        observe(part)
        assert relay.game_over_s == {}
    observe(b"ver: comp")
    assert list(relay.game_over_s) == [27015]


def test_percentile_is_one_of_the_values() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert percentile([2.0, 1.0], 0.5) == 1
