"""The words of a match and of a search."""

from __future__ import annotations

import pytest

from matchpod.core.search_words import MAX_WORD, MAX_WORDS, search_words, words_of

PLAYER = "76561198000000001"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cup-2026_R1/m12", ["cup", "2026", "r1", "m12"]),
        ("Night Owls, night", ["night", "owls"]),
        ("Björn STRASSE straße", ["bjorn", "strasse"]),
        ("\u202egnp.exe \u2066 \u200f", ["gnp", "exe"]),
        ("{{7*7}} <img src=x>", ["7", "img", "src", "x"]),
        ("Жизнь 日本", ["жизнь", "日本"]),
        ("ﬁnal Ⅳ", ["final", "iv"]),
        ("!?", []),
        ("x" * 300, ["x" * MAX_WORD]),
    ],
)
def test_text_is_compared_by_its_words_without_case_and_accents(text: str, words: list[str]) -> None:
    assert words_of([text]) == words
    assert set(search_words(text)) == set(words)


@pytest.mark.parametrize(
    "text",
    [
        PLAYER,
        "[U:1:39734273]",
        "STEAM_0:1:19867136",
        f"https://steamcommunity.com/profiles/{PLAYER}/?l=english",
        f"steamcommunity.com/profiles/{PLAYER}",
    ],
)
def test_player_may_be_given_in_any_form(text: str) -> None:
    assert search_words(text) == (PLAYER,)


def test_longest_words_of_a_search_count() -> None:
    text = " ".join("x" * length for length in range(1, MAX_WORDS + 3))
    assert sorted(map(len, search_words(text))) == list(range(3, MAX_WORDS + 3))
    assert search_words(" ") == ()
