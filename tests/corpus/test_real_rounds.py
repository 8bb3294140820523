"""Tests that the rounds of a complete real match add up, and that their economy agrees with all sources in the log."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from cs2_protocol.game import Team
from matchpod.core.stats.buy_types import BuyType
from matchpod.core.views.round_shapes import RoundEntry
from matchpod.core.views.rounds import build_rounds
from matchpod.cs2.prices import PRICES
from tests.corpus.real_logs import INFERNO, read_log

_PURCHASE = re.compile(r"money change \d+-(\d+) = .* \(purchase: weapon_(\w+)\)")


def real_rounds(corpus: Path) -> tuple[RoundEntry, ...]:
    reader, _ = read_log(corpus / INFERNO)
    return build_rounds(reader.match, reader.match.current_map)


def test_fifteen_complete_rounds_lead_to_the_final_score(corpus: Path) -> None:
    rounds = real_rounds(corpus)
    assert [(one.number, one.complete) for one in rounds] == [(number, True) for number in range(1, 16)]
    wins = Counter(one.winner for one in rounds)
    assert wins == {Team.TEAM1: 13, Team.TEAM2: 2}
    assert [one.number for one in rounds if one.defuse is not None and one.plant is not None] == [11]
    assert all(len(one.players) == 10 for one in rounds)


def test_team_that_lost_by_elimination_has_no_survivors(corpus: Path) -> None:
    for one in real_rounds(corpus):
        loser, winner = (one.team2, one.team1) if one.winner is Team.TEAM1 else (one.team1, one.team2)
        assert loser.survivors == 0
        assert winner.survivors is not None
        assert 0 <= winner.survivors <= 5


def test_money_equipment_and_buys_are_known_in_every_round(corpus: Path) -> None:
    for one in real_rounds(corpus):
        for team in (one.team1, one.team2):
            assert team.money is not None
            assert team.spent is not None
            assert team.equipment_value is not None
            assert team.spent <= team.money
        assert (one.number in (1, 13)) == (one.team1.buy_type is one.team2.buy_type is BuyType.PISTOL)
        if one.number in (1, 13):
            assert one.team1.money == one.team2.money == 4000


def test_buy_type_without_one_exit_of_the_buy_zone_is_the_same_or_unknown(corpus: Path) -> None:
    reader, _ = read_log(corpus / INFERNO)
    match, played, known = reader.match, reader.match.current_map, Counter[BuyType | None]()
    whole = build_rounds(match, played)
    for record, one in zip(played.ledger.records(), whole, strict=True):
        details = record.details = record.read_details()
        for player_id, value in list(details.equipment.items()):
            del details.equipment[player_id]
            team = record.team_of(player_id)
            shown = build_rounds(match, played)[one.number - 1]
            details.equipment[player_id] = value
            found, expected = (shown.team1, one.team1) if team is Team.TEAM1 else (shown.team2, one.team2)
            assert found.buy_type in (expected.buy_type, None)
            known[found.buy_type] += 1
    assert known == {None: 80, BuyType.PISTOL: 20, BuyType.ECO: 40, BuyType.FORCE: 5, BuyType.FULL: 5}


def test_prices_are_those_that_players_paid(corpus: Path) -> None:
    text = (corpus / INFERNO).read_text(encoding="utf-8", errors="replace")
    paid = {(name, int(price)) for price, name in _PURCHASE.findall(text)}
    assert len(paid) > 25
    assert {(name, PRICES[name]) for name, _ in paid} == paid
