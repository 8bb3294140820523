"""How the console cuts text into commands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.simulator.console.statements import MAX_STATEMENT_BYTES, Statement, statements


def words(text: str) -> list[list[str]]:
    return [[statement.name, *statement.args] for statement in statements(text)]


def only(text: str) -> Statement:
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
def test_text_is_cut_as_the_engine_does(text: str, commands: list[list[str]]) -> None:
    assert words(text) == commands


@given(
    st.lists(st.lists(st.text("ab1_.-", min_size=1, max_size=5), min_size=1, max_size=4), max_size=5),
    st.sampled_from([";", "\n", " ; ", ";;", " // say no\n", "\r\n"]),
)
def test_commands_come_apart_as_they_were_put_together(commands: list[list[str]], separator: str) -> None:
    assert words(separator.join(" ".join(command) for command in commands)) == commands


@given(st.lists(st.text(st.characters(exclude_characters='"\n\0', exclude_categories=["Cs"]), max_size=12), max_size=4))
def test_whatever_stands_in_quotes_is_one_argument(values: list[str]) -> None:
    assert words("say " + " ".join(f'"{value}"' for value in values)) == [["say", *values]]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=80))
def test_any_text_is_cut_into_commands(text: str) -> None:
    kept = text.partition("\0")[0]
    for statement in statements(text):
        assert statement.rest in kept
        assert all(word in kept and '"' not in word and "\n" not in word for word in [statement.name, *statement.args])


def test_semicolon_inside_quotes_belongs_to_the_value() -> None:
    assert only('say "a; b"').value == "a; b"


def test_value_without_quotes_is_the_whole_rest_of_the_line() -> None:
    assert only("mp_teamname_1 Team  One: Two ").value == "Team  One: Two"


def test_value_ends_at_its_second_quote() -> None:
    assert only('hostname "a" b').value == "a"


def test_value_whose_quote_is_never_closed_is_the_rest() -> None:
    assert only('hostname "a b').value == "a b"


def test_empty_quotes_are_an_empty_value_and_not_none() -> None:
    statement = only('sv_password ""')
    assert (statement.value, bool(statement.rest)) == ("", True)


def test_comment_hides_the_rest_of_its_line_only() -> None:
    assert [statement.name for statement in statements("a // b; c\nd")] == ["a", "d"]


def test_address_without_quotes_ends_at_its_slashes() -> None:
    assert only("logaddress_add_http http://x/y").args == ["http", ":"]


def test_command_that_overflows_the_buffer_is_marked() -> None:
    fits = "a " + "b" * (MAX_STATEMENT_BYTES - 2)
    assert [only(fits).is_too_long, only(fits + "b").is_too_long] == [False, True]


def test_length_is_counted_in_bytes_and_for_each_command() -> None:
    long, short = statements("say " + "é" * 260 + ";say b")
    assert (long.is_too_long, short.is_too_long) == (True, False)
