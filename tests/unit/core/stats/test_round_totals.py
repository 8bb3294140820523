"""Statistics computed from a whole round: by the rules that the simulator follows too, and their limits."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.game import PlayerId, Team
from matchpod.core import events as ev
from matchpod.core.stats.ledger import Ledger
from matchpod.core.stats.player_round import PlayerRound
from matchpod.core.stats.round_record import Fall, RoundRecord
from matchpod.core.stats.round_totals import compute_totals
from simulator_tests.play.counts.round_rules import RULES, check
from tests.unit.core.stats.event_builder import (
    ANNA,
    BEN,
    CARL,
    TEAM1,
    XENA,
    EventBuilder,
    round_decided,
    started_record,
)


def play(script: str, size: int) -> Ledger:
    ours, theirs = tuple("abcdef"[:size]), tuple("uvwxyz"[:size])
    builder = EventBuilder().live().start(1, ours, theirs)
    number, fell_ms = 1, 0
    for word in script.split():
        one, kind, other = [*word, ""][:3]
        is_enemy = (one in ours) != (other in ours)
        if one in "!" or kind == ">":
            fell_ms += int(word.partition("@")[2] or 1000)
            builder.at(fell_ms)
        weapon = word.partition(":")[2] or "ak47"
        match one, kind:
            case "#", _:
                number = int(kind)
                builder.start(number, ours, theirs)
            case "=", _:
                builder.decide(number, {"1": Team.TEAM1, "2": Team.TEAM2}.get(kind))
            case "!", _:
                builder.die(kind)
            case "-", _:
                builder.leave(kind)
            case _, "+" | "*":
                builder.add(ev.Assist, one, other, kind == "*", is_enemy)
            case _ if one == other:
                builder.die(one, weapon)
            case _:
                builder.add(ev.Kill, one, other, weapon, is_enemy)
    return builder.ledger()


@pytest.mark.parametrize(("script", "size", "counts"), RULES)
def test_ledger_follows_the_rules_of_a_round(script: str, size: int, counts: dict[str, int]) -> None:
    found: dict[str, int] = {}
    for line in play(script, size).lines():
        numbers = {name: getattr(line, name) for name in PlayerRound.__struct_fields__}
        numbers["assists"] = line.all_assists
        found |= {f"{line.player_id}_{name}": number for name, number in numbers.items()}
    check(found, counts)


def totals(record: RoundRecord) -> dict[PlayerId, PlayerRound]:
    compute_totals(record)
    return record.players


def test_players_outside_the_line_ups_make_no_trades_and_have_no_kast() -> None:
    record = started_record(team1=(ANNA,))
    for at_ms, victim, killer in ((1, BEN, XENA), (2, XENA, CARL)):
        record.counts(killer).kills += 1
        record.add_fall(Fall(at_ms, victim, killer, is_enemy=True))
    record.decide(round_decided(None))
    assert (totals(record)[CARL].trade_kills, totals(record)[CARL].kast_rounds) == (0, 0)


def test_death_of_a_player_outside_the_line_ups_starts_no_clutch() -> None:
    record = started_record()
    record.add_fall(Fall(1, "3001"))
    record.decide(round_decided(Team.TEAM1))
    assert sum(totals(record)[who].clutch1v3 for who in TEAM1) == 0


def test_computing_totals_twice_gives_the_same_result() -> None:
    record = started_record()
    for at_ms, (victim, killer) in enumerate(((BEN, XENA), (CARL, XENA), (XENA, ANNA)), start=1):
        record.add_fall(Fall(at_ms, victim, killer, is_enemy=True))
    record.decide(round_decided(Team.TEAM1))
    once = msgspec.msgpack.encode(totals(record))
    assert msgspec.msgpack.encode(totals(record)) == once
