"""Tests of the console parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_simulator.console.statements import MAX_STATEMENT_BYTES, ConsoleStatement, statements


def words(text: str) -> list[list[str]]:
    return [[statement.name, *statement.args] for statement in statements(text)]


def only(text: str) -> ConsoleStatement:
    (statement,) = statements(text)
    return statement


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ('say "a;b" c; quit', [["say", "a;b", "c"], ["quit"]]),
        ('say "a\nquit"', [["say", "a"], ["quit", ""]]),
        ("say a // b ; quit", [["say", "a"]]),
        ('say "http://x"', [["say", "http://x"]]),
        ('say \\"a', [["say", "\\", "a"]]),
        ("say it's(x)", [["say", "it", "'", "s", "(", "x", ")"]]),
        ("say a\0; quit", [["say", "a"]]),
        ("//x\n;; quit", [["quit"]]),
    ],
)
def test_text_is_parsed_as_in_the_engine(text: str, commands: list[list[str]]) -> None:
    assert words(text) == commands


@given(
    st.lists(st.lists(st.text("ab1_.-", min_size=1, max_size=5), min_size=1, max_size=4), max_size=5),
    st.sampled_from([";", "\n", " ; ", ";;", " // say no\n", "\r\n"]),
)
def test_joined_commands_are_split_again(commands: list[list[str]], separator: str) -> None:
    assert words(separator.join(" ".join(command) for command in commands)) == commands


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=80))
def test_any_text_can_be_parsed(text: str) -> None:
    kept = text.partition("\0")[0]
    for statement in statements(text):
        assert statement.rest in kept
        assert all(word in kept and '"' not in word and "\n" not in word for word in [statement.name, *statement.args])


def test_value_ends_at_its_second_quote() -> None:
    assert only('hostname "a" b').value == "a"


def test_value_with_an_unclosed_quote_is_the_rest_of_the_line() -> None:
    assert only('hostname "a b').value == "a b"


def test_url_without_quotes_is_cut_at_its_slashes() -> None:
    assert only("logaddress_add_http http://x/y").args == ["http", ":"]


def test_command_above_the_length_limit_is_marked_as_too_long() -> None:
    fits = "a " + "b" * (MAX_STATEMENT_BYTES - 2)
    assert [only(fits).is_too_long, only(fits + "b").is_too_long] == [False, True]


def test_length_is_counted_in_bytes_per_command() -> None:
    long, short = statements("say " + "é" * 260 + ";say b")
    assert (long.is_too_long, short.is_too_long) == (True, False)
