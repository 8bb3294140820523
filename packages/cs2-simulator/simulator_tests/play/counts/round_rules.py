"""The rules of a round's statistics, with small rounds that show them: the simulator and the service follow the same."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

TOGETHER = (
    {"clutch1v1", "clutch1v2", "clutch1v3", "clutch1v4", "clutch1v5", "clutch_kills"},
    {"double_kills", "triple_kills", "quad_kills", "aces"},
)
"""If a rule is about one of these counters, the others of all players are 0 unless it names them."""


def rule(sentence: str, script: str, *, size: int = 3, **counts: int) -> object:
    """A case: the counters `a_kills`, `b_deaths`, … after a script (see `BookAndTeams.play`)."""
    return pytest.param(script, size, counts, id=sentence)


def check(found: Mapping[str, int], expected: Mapping[str, int]) -> None:
    """Compare counters, named as in the rules, with those that a rule expects."""
    named = {name[2:] for name in expected}
    others = {counter for group in TOGETHER for counter in group - {"clutch_kills"} if named & group}
    unexpected = {name: count for name, count in found.items() if count and name[2:] in others}
    assert {name: found[name] for name in expected} | unexpected == expected


RULES = [
    # --- kills deaths and assists
    rule(
        "team kill is a death and a team kill only",
        "u>c a>b",
        a_team_kills=1,
        a_kills=0,
        a_trade_kills=0,
        a_clutch_kills=0,
        b_deaths=1,
    ),
    rule("suicide is a death but no kill", "a>a:hegrenade", a_deaths=1, a_kills=0, a_team_kills=0, a_first_deaths=1),
    rule("death by bomb or fall counts", "!a", a_deaths=1),
    rule("player dies at most once per round", "u>a !a #2 !a", a_deaths=2),
    rule("flash assist is also an assist", "a*u a+v", a_assists=2, a_flash_assists=1),
    rule("assist on a teammate does not count", "a+b", a_assists=0),
    rule(
        "only the first kill and death are first",
        "a>u v>a",
        a_first_kills=1,
        v_first_kills=0,
        u_first_deaths=1,
        a_first_deaths=0,
    ),
    rule(
        "team kill can be the first death but not the first kill",
        "a>b u>a",
        b_first_deaths=1,
        a_first_deaths=0,
        a_first_kills=0,
        u_first_kills=1,
    ),
    rule("suicide can be the first death", "!c a>u", c_first_deaths=1, u_first_deaths=0),
    rule("leaving is not a death", "-a b>u", a_deaths=0, a_first_deaths=0, u_first_deaths=1),
    rule("kill after the decision is not a first kill", "=1 u>a", u_kills=1, u_first_kills=0),
    rule("death after the decision is not a first death", "=2 !a", a_first_deaths=0),
    # --- trades
    rule("trade may be in the same tick", "u>a b>u@0", b_trade_kills=1, a_traded_deaths=1),
    rule("trade may follow after five seconds", "u>a b>u@5000", b_trade_kills=1, a_traded_deaths=1),
    rule("later kill is not a trade", "u>a b>u@5001", b_trade_kills=0, a_traded_deaths=0),
    rule(
        "kill that trades two deaths is one trade kill",
        "u>a u>b c>u",
        c_trade_kills=1,
        a_traded_deaths=1,
        b_traded_deaths=1,
        c_traded_deaths=0,
    ),
    rule("killing another enemy is not a trade", "u>a b>v", b_trade_kills=0, a_traded_deaths=0),
    rule(
        "dead player does not trade their own death",
        "u>a a>u:inferno",
        a_kills=1,
        a_trade_kills=0,
        a_traded_deaths=0,
    ),
    rule(
        "dead player can trade the death of a teammate",
        "u>a u>b a>u:inferno",
        a_trade_kills=1,
        a_traded_deaths=0,
        b_traded_deaths=1,
        c_traded_deaths=0,
    ),
    rule("team kill neither trades nor is traded", "a>b c>a", c_trade_kills=0, b_traded_deaths=0),
    rule("killing a team killer is not a trade", "a>b u>a", u_trade_kills=0, b_traded_deaths=0),
    rule("trade after the decision counts", "u>a =2 b>u", b_trade_kills=1, a_traded_deaths=1, a_kast_rounds=1),
    rule("trade does not count across rounds", "u>a =2 #2 b>u", b_trade_kills=0),
    # --- clutches
    rule("one enemy is left", "!u !v !a !b c>w =1", c_clutch1v1=1, c_clutch_kills=1),
    rule("two enemies are left", "!u !a !b c>v c>w =1", c_clutch1v2=1, c_clutch_kills=2),
    rule("three enemies are left", "!a !b c>u c>v c>w =1", c_clutch1v3=1, c_clutch_kills=3),
    rule("more than five enemies count as five", "!a !b !c !d !e =1", size=6, f_clutch1v5=1),
    rule("lost round is not a won clutch", "!a !b =2", c_clutch1v3=0),
    rule("drawn round is not a won clutch", "!a !b =0", c_clutch1v3=0),
    rule("only the winner gets it if both sides are in one", "a>u v>a v>b =2", size=2, v_clutch1v2=1),
    rule("dead player can win it", "!u a>v =2", size=2, v_clutch1v2=1),
    rule("team of one is not in one", "a>u =1", size=1, a_clutch1v1=0),
    rule("last player without enemies is not in one", "!u !v !a =1", size=2, b_clutch1v1=0),
    rule("leaving puts a teammate into one", "-a b>u =1", size=2, b_clutch1v2=1, b_clutch_kills=1),
    rule("leaving while dead or twice changes nothing", "!a -a -a b>u =1", b_clutch1v1=0, b_clutch_kills=0),
    rule("it does not start after the decision", "=1 !a b>u", size=2, b_clutch1v2=0, b_clutch_kills=0),
    rule("kill after the decision is no clutch kill", "!a =1 b>u", size=2, b_clutch_kills=0, b_clutch1v2=1),
    rule("kill by a dead player is no clutch kill", "!a a>u:hegrenade", size=2, a_clutch_kills=0),
    # --- multi kills
    rule("one kill is no multi-kill", "a>u", size=6, a_kills=1, a_double_kills=0),
    rule("two kills", "a>u a>v", size=6, a_double_kills=1),
    rule("three kills", "a>u a>v a>w", size=6, a_triple_kills=1),
    rule("four kills", "a>u a>v a>w a>x", size=6, a_quad_kills=1),
    rule("five kills", "a>u a>v a>w a>x a>y", size=6, a_aces=1),
    rule("six kills are an ace too", "a>u a>v a>w a>x a>y a>z", size=6, a_aces=1),
    rule("kills after the decision count", "a>u =1 a>v", size=6, a_double_kills=1),
    rule("they are counted per round", "a>u a>v =1 #2 a>u a>v =1", size=6, a_double_kills=2),
    # --- kast
    rule(
        "KAST counts kill, assist, survival and traded death, not flash assists",
        "u>c a>u b+u d*u !a !b !d =2",
        size=6,
        a_kast_rounds=1,
        b_kast_rounds=1,
        c_kast_rounds=1,
        d_kast_rounds=0,
        u_kast_rounds=1,
        v_kast_rounds=1,
    ),
    rule(
        "survivor is alive and connected at the decision",
        "-a !b =2 !c -u",
        a_kast_rounds=0,
        b_kast_rounds=0,
        c_kast_rounds=1,
        u_kast_rounds=1,
        c_deaths=1,
    ),
    rule("team kill and assist on a teammate do not count for KAST", "a>b a+b !a =2", a_kast_rounds=0),
    rule("KAST counts a round once", "a>u a>v a+w =1", a_kast_rounds=1),
]
