"""A match of three rounds, three against three, with every number computed by hand."""

from __future__ import annotations

from typing import Any

from cs2_protocol.game import Team
from matchpod.core import events as ev
from matchpod.core.stats.ledger import Ledger
from matchpod.core.stats.player_line import PlayerLine
from tests.unit.core.stats.event_builder import ANNA, BEN, CARL, XENA, YURI, ZOE, EventBuilder, game_count


def play_round_1(builder: EventBuilder) -> None:
    """Team 1 wins: Ben wins a 1v1 against Zoe."""
    builder.at(0).start(1)
    # Anna gets the first kill, on Xena. Damage 110 on 100 health: 100.
    builder.at(1000).hit(ANNA, XENA, 110, 0).at(1000).kill(ANNA, XENA, "ak47", headshot=True)
    # Yuri kills Anna 2 s after she killed Xena: a trade, Xena's death is traded. 100 damage.
    builder.at(3000).hit(YURI, ANNA, 115, 0, "awp").at(3000).kill(YURI, ANNA, "awp")
    # Ben hits Yuri for 60 logged (61 actual), then for the last 39, 1 s after Yuri killed Anna: a trade.
    builder.at(4000).hit(BEN, YURI, 60, 39, "deagle").at(4000).hit(BEN, YURI, 45, 0, "deagle")
    builder.at(4000).kill(BEN, YURI, "deagle").at(4000).assist(CARL, YURI)
    # Zoe is the last of team 2, against Ben and Carl: 1v2. Her kill of Carl is a clutch kill.
    builder.at(6000).hit(ZOE, CARL, 165, 0, "knife").at(6000).kill(ZOE, CARL, "knife_t")
    # Ben is now the last of team 1, against Zoe: 1v1. 30 damage, then 70 by fire, 7 s after Carl's death: no trade.
    builder.at(12000).hit(BEN, ZOE, 30, 70, "glock")
    builder.at(13000).hit(BEN, ZOE, 71, 0, "inferno").at(13000).kill(BEN, ZOE, "inferno")
    builder.at(13000).decide(1, Team.TEAM1)
    # KAST: Anna K, Ben K, Carl A, Xena T, Yuri K, Zoe K.


def play_round_2(builder: EventBuilder) -> None:
    """Team 2 wins with the bomb, which kills Carl, the last player of team 1."""
    builder.at(100_000).start(2)
    # Carl kills teammate Ben: a first death, but no first kill, no headshot and no kill with a sniper rifle.
    builder.at(101_000).kill(CARL, BEN, "awp", headshot=True)
    # Zoe's flash: two living enemies (0.5 s counts too), a teammate, and dead Ben, who is logged but does not count.
    builder.at(102_000).add(ev.GrenadeThrown, ZOE, ev.GrenadeKind.FLASH)
    builder.blind(ZOE, CARL, 3.0).blind(ZOE, ANNA, 0.5).blind(ZOE, YURI, 1.0).blind(ZOE, BEN, 3.0)
    # Xena's grenade: 57 logged, 58 actual damage. Yuri deals the other 42 and gets the first kill of the round.
    builder.at(103_000).add(ev.GrenadeThrown, XENA, ev.GrenadeKind.HE)
    builder.at(103_000).hit(XENA, ANNA, 57, 42, "hegrenade").at(103_500).hit(YURI, ANNA, 45, 0, "m4a1")
    builder.at(103_500).kill(YURI, ANNA, "m4a1_silencer").at(103_500).assist(XENA, ANNA).assist(ZOE, ANNA, flash=True)
    # Carl loses a 1v3 and is killed by the bomb; the log prints the death twice.
    builder.at(105_000).add(ev.BombPlanted, XENA, "A")
    builder.at(145_000).die(CARL, "bomb").at(145_000).die(CARL, "world").at(145_000).decide(2, Team.TEAM2)
    # KAST: Xena A, Yuri K, Zoe S; no player of team 1.


def play_round_3(builder: EventBuilder) -> None:
    """Team 1 wins: Ben leaves, Anna kills all three."""
    builder.at(200_000).start(3)
    builder.at(200_500).leave(BEN)
    builder.at(201_000).hit(ANNA, XENA, 448, 0, "awp").at(201_000).kill(ANNA, XENA, "awp")
    builder.at(202_000).hit(ANNA, YURI, 448, 0, "awp").at(202_000).kill(ANNA, YURI, "awp", headshot=True)
    builder.at(203_000).hit(ANNA, ZOE, 180, 0, "knife").at(203_000).kill(ANNA, ZOE, "knife_butterfly")
    builder.at(203_000).decide(3, Team.TEAM1)
    builder.at(202_500).add(ev.BombDefused, ANNA).add(ev.BombDefused, None)
    builder.at(205_000).add(ev.ChickenKilled, CARL, "knife")
    # KAST: Anna K, Carl S; Ben left, and team 2 had no trades. Zoe lost a 1v2.


def mini_match() -> Ledger:
    builder = EventBuilder().live()
    play_round_1(builder)
    builder.at(90_000).game_counts(
        2,
        game_count(ANNA, kills=1, deaths=1, damage=100, hs_percent=100, first_kills=1),
        game_count(BEN, kills=2, damage=200, utility_damage=70, pistol_kills=1, clutch_kills=1, mvps=1),
        game_count(CARL, deaths=1, assists=1),
        game_count(XENA, deaths=1),
        game_count(YURI, kills=1, deaths=1, damage=100, sniper_kills=1),
        game_count(ZOE, kills=1, deaths=1, damage=100, clutch_kills=1),
    )
    play_round_2(builder)
    builder.at(190_000).game_counts(
        3,
        game_count(ANNA, kills=1, deaths=2, damage=100, hs_percent=100, first_kills=1),
        game_count(BEN, kills=2, deaths=1, damage=200, utility_damage=70, pistol_kills=1, clutch_kills=1, mvps=1),
        game_count(CARL, deaths=2, assists=1),
        game_count(XENA, deaths=1, assists=1, damage=58, utility_damage=58),
        game_count(YURI, kills=2, deaths=1, damage=142, sniper_kills=1, first_kills=1, mvps=1),
        game_count(ZOE, kills=1, deaths=1, assists=1, damage=100, clutch_kills=1, enemies_flashed=2),
    )
    play_round_3(builder)
    return builder.mvp(3, ANNA, 1).end().ledger()


def expected(player_id: str, team: Team, **counts: Any) -> PlayerLine:
    return PlayerLine(player_id=player_id, team=team, **{"rounds_played": 3, "mvps": 0, **counts})


def test_every_player_has_the_expected_numbers() -> None:
    ledger = mini_match()
    assert ledger.lines() == [
        expected(
            ANNA,
            Team.TEAM1,
            kills=4,  # Xena, then Xena, Yuri, Zoe
            deaths=2,
            headshots=2,
            damage=400,
            sniper_kills=2,
            knife_kills=1,
            first_kills=2,  # rounds 1 and 3
            traded_deaths=1,  # by Ben in round 1
            triple_kills=1,
            kast_rounds=2,
            mvps=1,
            bomb_defuses=1,
            weapon_kills={"ak47": 1, "awp": 2, "knife_butterfly": 1},
        ),
        expected(
            BEN,
            Team.TEAM1,
            kills=2,
            deaths=1,  # by Carl; leaving is not a death
            damage=200,  # 61 + 39 + 30 + 70
            utility_damage=70,
            pistol_kills=1,
            first_deaths=1,
            trade_kills=1,
            clutch_kills=1,
            clutch1v1=1,
            double_kills=1,
            kast_rounds=1,
            mvps=1,
            weapon_kills={"deagle": 1, "inferno": 1},
        ),
        expected(
            YURI,
            Team.TEAM2,
            kills=2,  # Anna twice
            deaths=2,
            damage=142,
            sniper_kills=1,
            first_kills=1,
            trade_kills=1,
            kast_rounds=2,
            mvps=1,
            weapon_kills={"awp": 1, "m4a1_silencer": 1},
        ),
        expected(
            ZOE,
            Team.TEAM2,
            kills=1,
            deaths=2,
            flash_assists=1,
            damage=100,
            knife_kills=1,
            enemies_flashed=2,
            flash_thrown=1,
            clutch_kills=1,
            kast_rounds=2,
            weapon_kills={"knife_t": 1},
        ),
        expected(
            XENA,
            Team.TEAM2,
            deaths=2,
            assists=1,
            damage=58,
            utility_damage=58,
            bomb_plants=1,
            he_thrown=1,
            first_deaths=2,  # rounds 1 and 3
            traded_deaths=1,
            kast_rounds=2,
        ),
        expected(CARL, Team.TEAM1, deaths=2, assists=1, team_kills=1, chicken_kills=1, kast_rounds=2),
    ]


def test_our_counts_agree_with_the_game() -> None:
    ledger = mini_match()
    assert ledger.is_complete
    assert ledger.discrepancies == []
