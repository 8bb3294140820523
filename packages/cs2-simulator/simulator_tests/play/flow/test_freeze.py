"""Test the log lines at the beginning of a freeze time."""

from __future__ import annotations

from cs2_protocol.game import Side
from simulator_tests.play.flow.played_server import PlayedServer


def kinds(texts: list[str]) -> list[str]:
    """Return the kinds of the lines in order, consecutive lines of a kind as one."""
    found: list[str] = []
    for text in texts:
        kind = next((kind for kind in KINDS if kind in text), "other")
        if not found or found[-1] != kind:
            found.append(kind)
    return found


KINDS = (
    "Starting Freeze period",
    "JSON_BEGIN",
    "Match_Start",
    "MatchStatus: Team playing",
    "MatchStatus: Score",
    "Team playing",
    'picked up "c4"',
    "Got_The_Bomb",
    "picked up",
)
FIRST_FREEZE = [
    "Starting Freeze period",
    "JSON_BEGIN",
    "picked up",
    "Match_Start",
    "Team playing",
    'picked up "c4"',
    "Got_The_Bomb",
    "MatchStatus: Team playing",
    "MatchStatus: Score",
]


def without_rows(texts: list[str]) -> list[str]:
    return [
        text
        for text in texts
        if not text.startswith(('"name"', '"round_', '"score_', '"map"', '"server"', '"fields"', '"player', "}}"))
    ]


def test_first_freeze_time_has_the_line_order_of_a_real_log(server: PlayedServer) -> None:
    server.go_live()
    assert kinds(without_rows(server.log_texts())) == FIRST_FREEZE


def test_statistics_block_has_the_next_round_number_and_the_current_score(server: PlayedServer) -> None:
    server.go_live()
    server.run_until("freeze 2")
    assert server.block_values("round_number") == ["1", "2"]
    scores = server.block_values("score_ct")[1], server.block_values("score_t")[1]
    assert scores == (str(server.game.standing.side_score(Side.CT)), str(server.game.standing.side_score(Side.T)))


def test_spawn_order_is_the_same_in_every_round_and_not_by_user_id(server: PlayedServer) -> None:
    server.go_live({"mp_logdetail_items": "1"}, count=5)
    server.run_until("freeze 3")
    orders = []
    for texts in " | ".join(server.log_texts()).split("Starting Freeze period")[-3:]:
        orders.append([text.split(">")[0] for text in texts.split(" | ") if 'picked up "knife"' in text])
    assert len(orders[0]) == 10
    assert orders[0] != sorted(orders[0])
    for later in orders[1:]:
        assert later == [name for name in orders[0] if name in later]
