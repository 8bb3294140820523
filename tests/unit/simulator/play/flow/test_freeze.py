"""The beginning of a freeze time, line by line."""

from __future__ import annotations

from matchpod.core.model import Side

from .played_server import PlayedServer


def kinds(texts: list[str]) -> list[str]:
    """What each line is, as far as the order of a freeze start goes; repeated kinds once."""
    found: list[str] = []
    for text in texts:
        kind = next((word for word in KINDS if word in text), "other")
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
FIRST = [
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


def test_first_freeze_time_of_a_match_is_in_the_order_of_a_real_log() -> None:
    server = PlayedServer()
    server.go_live()
    assert kinds(without_rows(server.heard())) == FIRST


def test_later_freeze_time_has_no_match_start() -> None:
    server = PlayedServer()
    server.go_live()
    server.until("end 1")
    server.wait(0.1)
    server.start_listening()
    server.until("freeze 2")
    heard = without_rows(server.heard())
    heard = heard[heard.index("Starting Freeze period") :]
    expected = [kind for kind in FIRST if kind not in ("Match_Start", "Team playing")]
    assert [kind for kind in kinds(heard) if kind != "picked up"] == [kind for kind in expected if kind != "picked up"]


def test_block_tells_the_round_to_come_and_the_score_before_it() -> None:
    server = PlayedServer()
    server.go_live()
    server.until("freeze 2")
    assert server.block_values("round_number") == ["1", "2"]
    scores = server.block_values("score_ct")[1], server.block_values("score_t")[1]
    assert scores == (str(server.game.side_score(Side.CT)), str(server.game.side_score(Side.T)))


def test_everybody_is_alive_in_freeze_time() -> None:
    server = PlayedServer()
    server.go_live()
    server.until("freeze 2")
    assert all(player.is_alive for player in server.arena.players)


def test_people_come_to_life_in_an_order_of_their_own_in_every_round() -> None:
    server = PlayedServer()
    server.go_live({"mp_logdetail_items": "1"}, count=5)
    server.until("freeze 3")
    orders = []
    for texts in " | ".join(server.heard()).split("Starting Freeze period")[-3:]:
        orders.append([text.split(">")[0] for text in texts.split(" | ") if 'picked up "knife"' in text])
    assert len(orders[0]) == 10
    assert orders[0] != sorted(orders[0])
    for later in orders[1:]:
        assert later == [name for name in orders[0] if name in later]
