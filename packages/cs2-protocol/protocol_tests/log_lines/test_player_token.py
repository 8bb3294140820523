"""Tests of player tokens and known players."""

from __future__ import annotations

import pytest

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_token import (
    MAX_KNOWN_PLAYERS,
    MAX_NAME_CHARS,
    MAX_SECOND_TOKENS,
    KnownPlayers,
    player_token,
)

from .samples import ANN, BEN


@pytest.mark.parametrize(
    ("steam_id", "player_id"),
    [
        ("[U:1:37572195]", "76561197997837923"),
        ("STEAM_1:1:18786097", "76561197997837923"),
        ("BOT", "BOT:Ann"),
        ("STEAM_ID_PENDING", ""),
        ("<none>", ""),
        ("", ""),
        ("\x02`As", ""),
    ],
)
def test_player_id_comes_from_the_steam_id_or_the_name_of_a_bot(steam_id: str, player_id: str) -> None:
    assert player_token("Ann", 1, steam_id, "CT").player_id == player_id


@pytest.mark.parametrize(
    ("team", "side"), [("CT", Side.CT), ("TERRORIST", Side.T), ("Spectator", None), ("", None), (None, None)]
)
def test_only_ct_and_terrorist_are_sides(team: str | None, side: Side | None) -> None:
    assert player_token("Ann", 1, "BOT", team).side is side


def test_known_player_is_known_on_every_side() -> None:
    known = KnownPlayers()
    known.learn(ANN)
    assert known.knows(player_token("Ann", 1, "[U:1:101]", "TERRORIST"))
    assert not known.knows(player_token("Ann", 2, "[U:1:101]", "CT"))


def test_second_player_of_a_line_does_not_become_known() -> None:
    known = KnownPlayers()
    assert known.second_token("Ben<2><[U:1:102]><TERRORIST>", ANN) == BEN
    assert known.second_token("Ben<2><[U:1:102]><TERRORIST>", ANN) == BEN
    assert not known.knows(BEN)


def test_only_the_latest_name_of_a_player_is_known() -> None:
    known = KnownPlayers()
    for team in ("CT", "TERRORIST", None):
        known.learn(player_token("Ann", 1, "[U:1:101]", team))
    known.learn(player_token("Zoe", 1, "[U:1:101]", "CT"))
    assert not known.knows(ANN)
    assert known.knows(player_token("Zoe", 1, "[U:1:101]", "TERRORIST"))
    assert list(known.tokens) == ["Zoe<1><[U:1:101]><CT>"]
    assert list(known.ids) == ["Zoe<1>"]


def test_renames_do_not_drop_other_players() -> None:
    known = KnownPlayers()
    known.learn(ANN)
    for number in range(5 * MAX_KNOWN_PLAYERS):
        known.learn(player_token(f"n{number}", 2, "[U:1:102]", "CT"))
    assert known.knows(ANN)
    assert len(known.tokens) == len(known.ids) == len(known.players) == 2


def test_number_of_known_players_is_bounded() -> None:
    known = KnownPlayers()
    for number in range(MAX_KNOWN_PLAYERS + 50):
        known.learn(player_token(f"n{number}", number, "[U:1:101]", "CT"))
    assert [token.name for token in known.players.values()] == [
        f"n{50 + number}" for number in range(MAX_KNOWN_PLAYERS)
    ]
    assert len(known.tokens) == len(known.ids) == MAX_KNOWN_PLAYERS
    for number in range(MAX_SECOND_TOKENS + 1):
        known.second_token(f"m{number}<{number}><[U:1:101]><CT>", BEN)
        assert len(known.second_tokens) == number % MAX_SECOND_TOKENS + 1


def test_second_player_with_a_quote_in_the_name_is_a_player_only_as_long_as_the_name_is_known() -> None:
    known = KnownPlayers()
    known.learn(player_token('a" b', 2, "[U:1:102]", "CT"))
    text = 'a" b<2><[U:1:102]><TERRORIST>'
    assert known.second_token(text, ANN) == player_token('a" b', 2, "[U:1:102]", "TERRORIST")
    known.learn(player_token("Ben", 2, "[U:1:102]", "CT"))
    assert known.second_token(text, ANN) is None


def test_players_with_names_that_are_too_long_are_not_kept() -> None:
    known = KnownPlayers()
    for number in range(3):
        name = f"{number}" + "x" * MAX_NAME_CHARS
        known.learn(player_token(name, number, f"[U:1:{number + 1}]", "CT"))
        second = known.second_token(f"{name}<{number}><[U:1:{number + 1}]><CT>", player_token("a", 1, "[U:1:9]", "CT"))
        assert second is not None
        assert second.name == name
    assert known == KnownPlayers()
    assert player_token("y" * 4000, 1, "BOT", "CT").player_id == "BOT:" + "y" * MAX_NAME_CHARS


def test_tokens_of_a_player_share_their_texts() -> None:
    known = KnownPlayers()
    names = [bytes(name).decode() for name in [b"Ann Other"] * 3]
    known.learn(player_token(names[0], 1, "[U:1:101]", "CT"))
    known.learn(player_token(names[1], 1, "".join(["[U:1:", "101]"]), "TERRORIST"))
    other = known.second_token(f"{names[2]}<1><[U:1:101]><>", BEN)
    assert other is not None
    tokens = [*known.tokens.values(), other]
    assert [token.team for token in tokens] == ["CT", "TERRORIST", ""]
    assert {len({id(getattr(token, name)) for token in tokens}) for name in ("name", "steam_id", "player_id")} == {1}
