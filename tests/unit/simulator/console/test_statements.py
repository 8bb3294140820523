"""How the console cuts text into commands."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from matchpod.simulator.console.statements import MAX_STATEMENT_BYTES, Statement, statements
from tests.unit.cs2.console_tokenizer import tokenize


def only(text: str) -> Statement:
    (statement,) = statements(text)
    return statement


@given(st.text(alphabet=st.sampled_from("ab \t\n\r\0;\"/{}()':é"), max_size=60))
def test_words_are_those_the_engine_finds(text: str) -> None:
    assert [[statement.name, *statement.args] for statement in statements(text)] == tokenize(text)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=80))
def test_any_text_is_cut_into_commands(text: str) -> None:
    assert [[statement.name, *statement.args] for statement in statements(text)] == tokenize(text)


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
