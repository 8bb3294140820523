"""Tests of lines that begin with a player token."""

from __future__ import annotations

import re

import pytest

from cs2_protocol.log_lines import player_lines as lines
from cs2_protocol.log_lines.player_grammar import read_rest
from cs2_protocol.log_lines.player_token import KnownPlayers, player_token
from cs2_protocol.log_lines.reader import LineReader
from cs2_protocol.log_lines.world_lines import Unknown

from .samples import ANN, BEN, PLAYER_LINES, A, B

FREE_TEXT = re.compile(" say|changed name|disconnected")


@pytest.mark.parametrize("text", PLAYER_LINES)
def test_formatting_a_parsed_line_gives_the_original_text(text: str) -> None:
    line = LineReader().parse(text)
    assert not isinstance(line, Unknown)
    assert line.text() == text


@pytest.mark.parametrize("text", [text for text in PLAYER_LINES if not FREE_TEXT.search(text)])
@pytest.mark.parametrize("tail", [" ", "x", '"', ' "x"', " (headshot) (headshot)", "\n", "\u2028"])
def test_line_with_extra_characters_is_unknown(text: str, tail: str) -> None:
    if tail == " " and "blinded" in text:
        return  # real log files have this trailing space
    assert isinstance(LineReader().parse(text + tail), Unknown)


@pytest.mark.parametrize("text", PLAYER_LINES)
def test_truncated_line_is_not_an_error(text: str) -> None:
    for end in range(len(text)):
        LineReader().parse(text[:end])


def test_kill_modifiers_are_parsed() -> None:
    line = LineReader().parse(f'{A} [1 2 3] killed {B} [4 5 6] with "awp" (headshot noscope whatever)')
    assert line == lines.Killed(ANN, "1 2 3", BEN, "4 5 6", "awp", ("headshot", "noscope", "whatever"))


def test_numbers_of_a_hit_are_parsed() -> None:
    line = LineReader().parse(PLAYER_LINES[10])
    assert line == lines.Attacked(ANN, "1227 468 -0", BEN, "-316 852 5", "m4a1", 108, 0, 0, 0, "left arm")


def test_self_inflicted_hit_with_a_garbage_id_names_the_player() -> None:
    for garbage in ("", "`As\u05ac\x02", "<<", ">>", '"'):
        text = (
            f'{A} [1 2 3] attacked "Ann<1><{garbage}><CT>" [1 2 3] with "hegrenade" (damage "9")'
            ' (damage_armor "0") (health "91") (armor "0") (hitgroup "generic")'
        )
        line = LineReader().parse(text)
        assert isinstance(line, lines.Attacked)
        assert line.victim.player_id == ANN.player_id


def test_self_inflicted_flash_with_an_empty_id_names_the_player() -> None:
    line = LineReader().parse(f'{A} blinded for 1.01 by "Ann<1><><CT>" from flashbang entindex 9 ')
    assert isinstance(line, lines.BlindedBy)
    assert line.thrower.player_id == ANN.player_id


def test_other_player_with_a_garbage_id_has_no_player_id() -> None:
    line = LineReader().parse(f'{A} assisted killing "Cid<3><xx><CT>"')
    assert isinstance(line, lines.Assisted)
    assert line.victim == player_token("Cid", 3, "xx", "CT")
    assert line.victim.player_id == ""


@pytest.mark.parametrize(
    "rest",
    [
        'assisted killing "nobody"',
        'blinded for 1.00 by "nobody" from flashbang entindex 9',
        '[1 2 3] killed "nobody" [1 2 3] with "ak47"',
        '[1 2 3] attacked "nobody" [1 2 3] with "ak47" (damage "1") (damage_armor "0") (health "9") (armor "0") (hitgroup "head")',
        "threw flashbang [1 2 3] hegrenade entindex 5)",
        "switched from team <CT> to <Moon>",
        "sv_throw_banana 1 2 3",
        "[1 2 3] sang",
        "[1 2 3]",
        'say "',
        'changed name to "',
        "",
        "[",
    ],
)
def test_invalid_rest_of_a_line_is_rejected(rest: str) -> None:
    assert read_rest(ANN, rest, KnownPlayers()) is None


def test_money_line_is_assigned_by_steam_id_despite_its_wrong_user_id() -> None:
    line = LineReader().parse('"Ann<2><[U:1:101]><CT>" money change 100+300 = $400 (tracked)')
    assert isinstance(line, lines.MoneyChange)
    assert line.player.player_id == ANN.player_id
    assert (line.before, line.change, line.after, line.cause) == (100, 300, 400, None)
