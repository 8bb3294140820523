"""Faults as values, and the texts that are made of them."""

from __future__ import annotations

import string

from matchpod.core.errors import InvalidFieldsError
from matchpod.core.faults import Fault, FaultCode, FieldPath, stated_fault

PLAYERS = FieldPath() / "gameSettings" / "teams" / "team1" / "players"


def test_path_is_written_as_callers_write_it() -> None:
    assert str(PLAYERS / 3) == "gameSettings.teams.team1.players[3]"
    assert str(FieldPath()) == ""
    assert str(FieldPath() / "gameSettings" / "") == "gameSettings."


def test_parameters_are_put_into_the_phrase() -> None:
    assert Fault(FaultCode.TOO_HIGH, {"maximum": 60}).message == "must be at most 60"
    assert Fault(FaultCode.NOT_A_CHOICE, {"choices": ("bo1", "bo3")}).message == "must be one of bo1, bo3"
    assert Fault(FaultCode.LISTED_TWICE, {"first": PLAYERS / 0}).message == f"is already listed at {PLAYERS / 0}"


def test_text_of_a_caller_is_not_a_template() -> None:
    assert Fault(FaultCode.FORBIDDEN_TEXT, {"found": "{ } {name}"}).message == "must not contain { } {name}"


def test_line_comes_before_the_phrase() -> None:
    fault = Fault(FaultCode.UNKNOWN_CVAR, {"line": 7, "name": "mp_x"})
    assert (fault.line, fault.message) == (7, f"line 7: {fault.phrase}")
    assert Fault(FaultCode.TOO_MANY_LINES, {"maximum": 200}).line is None


def test_fault_is_the_same_at_another_path() -> None:
    fault = Fault(FaultCode.TOO_LOW, {"minimum": 1})
    moved = fault.at(PLAYERS / 1)
    assert (moved.code, moved.parameters, moved.path) == (fault.code, fault.parameters, PLAYERS / 1)


def test_phrases_name_their_parameters_and_end_without_a_full_stop() -> None:
    for code in FaultCode:
        names = [name for _, name, _, _ in string.Formatter().parse(code.value) if name is not None]
        assert all(name.isidentifier() for name in names)
        assert not code.value.endswith(".")


def test_error_of_one_fault_is_that_fault_and_of_several_their_number() -> None:
    low = Fault(FaultCode.TOO_LOW, {"minimum": 1})
    assert str(InvalidFieldsError((low.at(FieldPath(("page",))),))) == "page must be at least 1"
    assert str(InvalidFieldsError((low,), request="the query")) == "the query must be at least 1"
    assert str(InvalidFieldsError((low, low), request="the query")) == "2 faults in the query"


def test_unlisted_faults_are_counted_after_the_others() -> None:
    error = InvalidFieldsError((Fault(FaultCode.EMPTY), Fault(FaultCode.REQUIRED)), unlisted=3)
    messages = ["must not be empty", "is required", "faults that are not listed: 3"]
    assert [fault.message for fault in error.faults] == messages
    assert str(error) == "5 faults in the request body"


def test_stated_fault_has_the_words_of_its_author() -> None:
    fault = stated_fault("name", "The name is taken.")
    assert (str(fault.path), fault.message) == ("name", "The name is taken.")
