"""Test participants and players."""

from __future__ import annotations

from cs2_simulator.play.player import Participant, Player

ANNA = Participant("Anna", 91379634)


def _player(team: str = "CT") -> Player:
    return Player(ANNA, 4, team=team, is_in_game=True)


def test_money_token_has_a_user_id_one_too_high() -> None:
    assert _player().money_token.text() == '"Anna<5><[U:1:91379634]><CT>"'


def test_bot_has_no_account() -> None:
    bot = Participant("Kao", 0)
    assert (bot.is_bot, bot.steam_id, bot.player_id) == (True, "BOT", "BOT:Kao")
    assert ANNA.player_id == "76561198051645362"


def test_only_a_loaded_player_on_a_side_is_playing() -> None:
    assert _player().is_playing
    assert not _player("Spectator").is_playing
    assert not Player(ANNA, 4, team="CT").is_playing
    assert _player("Unassigned").side is None


def test_plain_knife_has_a_different_name_on_the_t_side() -> None:
    assert _player("CT").knife == "knife"
    assert _player("TERRORIST").knife == "knife_t"
    assert Player(Participant("Bea", 2, knife="knife_falchion"), 1, team="TERRORIST").knife == "knife_falchion"


def test_all_tokens_use_the_new_name_after_a_rename() -> None:
    player = _player()
    before = player.token
    player.rename("Annika")
    assert before.name == "Anna"
    assert (player.token.name, player.money_token.name, player.teamless_token.name) == ("Annika",) * 3
