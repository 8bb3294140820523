"""When warmup begins and ends."""

from __future__ import annotations

from matchpod.core.model import Side
from matchpod.simulator.play.door import BY_USER
from matchpod.simulator.play.flow.game import Phase

from .played_server import PlayedServer

START, END = 'World triggered "Warmup_Start"', 'World triggered "Warmup_End"'


def test_warmup_is_announced_two_seconds_after_it_was_opened() -> None:
    server = PlayedServer()
    server.start_listening()
    server.game.start_warmup()
    server.wait(1.9)
    assert START not in server.world()
    server.wait(0.2)
    assert server.world()[-1] == START


def test_warmup_ends_after_its_time_once_both_sides_have_people() -> None:
    server = PlayedServer()
    server.set({"mp_warmuptime": "30"})
    server.come(1, Side.CT)
    server.wait(100)
    server.come(2, Side.T)
    server.wait(29.9)
    assert server.is_in(Phase.WARMUP)
    server.wait(0.2)
    assert server.is_in(Phase.LIVE)
    assert END in server.world()


def test_countdown_waits_for_the_side_that_is_empty_again() -> None:
    server = PlayedServer()
    server.set({"mp_warmuptime": "30"})
    server.come(1, Side.CT)
    leaver = server.come(2, Side.T)
    server.wait(20)
    server.door.leave(leaver, BY_USER)
    server.wait(100)
    assert server.is_in(Phase.WARMUP)


def test_warmup_with_a_stopped_timer_goes_on() -> None:
    server = PlayedServer()
    server.set({"mp_warmuptime": "30", "mp_warmup_pausetimer": "1"})
    server.fill()
    server.wait(600)
    assert server.is_in(Phase.WARMUP)
    server.set({"mp_warmup_pausetimer": "0"})
    server.wait(30.1)
    assert server.is_in(Phase.LIVE)


def test_new_length_counts_from_the_moment_it_is_set() -> None:
    server = PlayedServer()
    server.fill()
    server.wait(200)
    server.set({"mp_warmuptime": "10"})
    server.wait(9.9)
    assert server.is_in(Phase.WARMUP)
    server.wait(0.2)
    assert server.is_in(Phase.LIVE)


def test_free_for_all_needs_two_people_on_any_side() -> None:
    server = PlayedServer({"game_type": "1", "game_mode": "2"})
    server.set({"mp_teammates_are_enemies": "1", "mp_warmuptime": "10"})
    server.come(1, Side.CT)
    server.wait(60)
    assert server.is_in(Phase.WARMUP)
    server.come(2, Side.CT)
    server.wait(10.1)
    assert server.is_in(Phase.LIVE)


def test_pause_holds_the_announcement_and_a_warmup_never_announced_ends_in_silence() -> None:
    server = PlayedServer()
    server.fill()
    server.start_listening()
    server.game.start_warmup()
    server.game.pause("mp_pause_match")
    server.wait(40)
    server.game.end_warmup()
    assert START not in server.world()
    assert END not in server.world()


def test_announcement_follows_when_the_pause_is_over() -> None:
    server = PlayedServer()
    server.game.start_warmup()
    server.game.pause("mp_pause_match")
    server.wait(40)
    server.start_listening()
    server.game.unpause("mp_unpause_match")
    server.wait(2.1)
    assert server.world()[-1] == START


def test_people_shoot_at_each_other_in_warmup_and_nothing_is_counted() -> None:
    server = PlayedServer()
    server.set({"mp_warmup_pausetimer": "1"})
    server.fill()
    server.wait(120)
    assert [line for line in server.heard() if " killed " in line]
    assert server.arena.book.tallies() == []


def test_nothing_is_planned_on_an_empty_server() -> None:
    server = PlayedServer()
    server.fill()
    server.wait(60)
    server.empty()
    server.wait(10)
    assert server.agenda.next_due_ms() is None
