from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.text import unprintable_in
from matchpod.core.faults import Fault, FaultCode
from matchpod.core.requests import text_rules


def message_of(fault: Fault | None) -> str | None:
    return None if fault is None else fault.message


def test_ordinary_team_names_are_accepted() -> None:
    for name in ["A", "Team 1", "O'Neill (2): a,b", "日本 🎯", "x" * 32, "a/b", "!?&|<>#@+-=~^*"]:
        assert text_rules.team_name_fault(name) is None


def test_team_names_that_are_invalid_or_unsafe_in_the_console_are_rejected() -> None:
    for name, fault in [
        ("", "must be 1 to 32 characters"),
        ("x" * 33, "must be 1 to 32 characters"),
        (" A", "must not start or end with whitespace"),
        ("A\u3000", "must not start or end with whitespace"),
        ("   ", "must not start or end with whitespace"),
        ("a\nb", "must not contain control, format or line-separator characters (found U+000A)"),
        ("a\u200bb", "must not contain control, format or line-separator characters (found U+200B)"),
        ("a\u2028b", "must not contain control, format or line-separator characters (found U+2028)"),
        ("a\ud800b", "must not contain control, format or line-separator characters (found U+D800)"),
        ("a//b", "must not contain //"),
        ('a"b;', 'must not contain " ;'),
        *((f"a{character}b", f"must not contain {character}") for character in '";\\%${}`'),
    ]:
        assert message_of(text_rules.team_name_fault(name)) == fault


def test_reasons_and_people_are_any_visible_text_of_one_line() -> None:
    assert text_rules.reason_fault('3:1 for "Reds"; see https://cup.example/p/7 $5') is None
    assert message_of(text_rules.reason_fault("x" * 501)) == "must be 1 to 500 characters"
    assert message_of(text_rules.person_fault("x" * 101)) == "must be 1 to 100 characters"
    assert message_of(text_rules.person_fault("Eva ")) == "must not start or end with whitespace"
    for hidden in "\n\u202e\u2028\ud800\x00":
        assert "control, format or line-separator" in str(message_of(text_rules.reason_fault(f"a{hidden}b")))


@given(st.text(max_size=40))
def test_accepted_team_names_have_no_invisible_or_forbidden_characters(name: str) -> None:
    if text_rules.team_name_fault(name) is None:
        assert 1 <= len(name.strip()) == len(name) <= 32
        assert not set(name) & set('";\\%${}`')
        assert not {unicodedata.category(character) for character in name} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize("text", ["76561197990682262", "76561190000000000"])
def test_valid_player_ids_are_accepted(text: str) -> None:
    assert text_rules.player_id_fault(text) is None


@pytest.mark.parametrize(
    "text",
    ["", "7656119799068226", "765611979906822620", "12345678901234567", "7656119799068226٣", "76561197990682262\n"],
)
def test_other_player_ids_are_rejected(text: str) -> None:
    assert text_rules.player_id_fault(text) == Fault(FaultCode.NOT_A_PLAYER)


def test_game_and_workshop_maps_are_accepted() -> None:
    for name in ["de_nuke", "a", "x" * 64, "workshop/3070284539"]:
        assert text_rules.map_fault(name) is None


def test_other_map_names_are_rejected() -> None:
    for name in [
        "",
        "De_nuke",
        "de nuke",
        "x" * 65,
        "workshop/",
        "workshop/x",
        "workshop/1/2",
        "de_nuke\n",
        "../de_nuke",
        "workshop/٣",
    ]:
        assert text_rules.map_fault(name)


def test_external_id_is_free_text() -> None:
    for text in ["x", "cup/7 № 3", "x" * 255, "a\u200db"]:
        assert text_rules.external_id_fault(text) is None


def test_empty_long_and_unprintable_external_ids_are_rejected() -> None:
    for text in ["", "x" * 256, "a\tb", "a\0", "a\x7f", "a\ud800"]:
        assert text_rules.external_id_fault(text)


def test_ordinary_passwords_are_accepted() -> None:
    for text in ["x", "let me in", "p{a}(s):s\\", "ünï", "x" * 32]:
        assert text_rules.password_fault(text) is None


def test_passwords_of_invalid_length_or_that_the_game_would_misread_are_rejected() -> None:
    for text in ["", "x" * 33, 'a"b', "a'b", "a;b", "a\nb", "a\u2028b", "none", "None"]:
        assert text_rules.password_fault(text)


def test_valid_header_values_are_accepted_as_tokens() -> None:
    for text in ["x", "Bearer abc.def", "a \t b", "~" * 4096]:
        assert text_rules.auth_token_fault(text) is None


def test_tokens_that_are_invalid_header_values_are_rejected() -> None:
    for text in ["", " a", "a ", "a\tb\t", "a\r\nX: y", "a\0", "é", "x" * 4097]:
        assert text_rules.auth_token_fault(text)


def test_labels_have_a_plain_name_and_a_visible_value() -> None:
    assert (text_rules.label_name_fault("A.b-c_9" + "n" * 25), text_rules.label_value_fault("é" * 64)) == (None, None)
    for name in ["", "a:b", "ä", "n" * 33]:
        assert text_rules.label_name_fault(name)
    for value in ["", "x" * 65, " x", "a\u202eb", "a\nb"]:
        assert text_rules.label_value_fault(value)
    for label in ["finals", ":finals", "ev ent:finals", "event:", "event:\n", "event:\udcff"]:
        assert text_rules.label_fault(label)


def test_absolute_http_urls_are_accepted_as_callback_urls() -> None:
    for url in [
        "http://a",
        "HTTPS://Example.com:8443/cb?x=1&y={2}#z",
        "https://10.0.0.1/",
        "http://[::1]:80/x",
        "http://xn--bcher-kva.example./",
        "http://my_host?x@y",
        "http://a/" + "x" * 2039,
    ]:
        assert text_rules.callback_url_fault(url) is None


def test_other_callback_urls_are_rejected_with_the_reason() -> None:
    for url, fault in [
        ("", "must be 1 to 2048 characters"),
        ("http://a/" + "x" * 2040, "must be 1 to 2048 characters"),
        ("http://a/ b", "must be visible ASCII characters without backslashes; percent-encode other characters"),
        ("http://a/\n", "must be visible ASCII characters without backslashes; percent-encode other characters"),
        (
            "http://bücher.example/",
            "must be visible ASCII characters without backslashes; percent-encode other characters",
        ),
        (
            "http://good.example\\@evil.example/",
            "must be visible ASCII characters without backslashes; percent-encode other characters",
        ),
        ("ftp://a/", "must be an absolute http or https URL"),
        ("//a/b", "must be an absolute http or https URL"),
        ("http:a", "must be an absolute http or https URL"),
        ("a.example/cb", "must be an absolute http or https URL"),
        ("http://me:secret@a/", "must not contain a user name or password; use callbackAuthToken"),
        ("http://@a/", "must not contain a user name or password; use callbackAuthToken"),
        ("http://", "must have a valid host"),
        ("http:///cb", "must have a valid host"),
        ("http://:80/", "must have a valid host"),
        ("http://a..b/", "must have a valid host"),
        ("http://-a/", "must have a valid host"),
        ("http://./", "must have a valid host"),
        ("http://" + "a" * 64 + "/", "must have a valid host"),
        ("http://" + "a." * 127 + "/", "must have a valid host"),
        ("http://a%2eb/", "must have a valid host"),
        ("http://[::1/", "must have a valid host"),
        ("http://[1:2]/", "must have a valid host"),
        ("http://a:b/", "must have a valid host"),
        ("http://a:/", "must have a valid host"),
        ("http://a:0/", "must have a port between 1 and 65535, or none"),
        ("http://a:65536/", "must have a port between 1 and 65535, or none"),
    ]:
        assert message_of(text_rules.callback_url_fault(url)) == fault


@pytest.mark.parametrize(
    ("name", "meant"),
    [("maxRound", "maxRounds"), ("maxrounds", "maxRounds"), ("FREEZETIME", "freezeTime"), ("xyz", None), ("", None)],
)
def test_nearest_name_ignores_case_and_small_errors(name: str, meant: str | None) -> None:
    assert text_rules.nearest(name, ("maxRounds", "freezeTime", "map")) == meant


def test_nearest_of_many_names_is_found_among_those_with_the_most_pairs_of_letters_in_common() -> None:
    known = [f"mp_{letter}{other}_enabled" for letter in "abcdefghij" for other in "abcdefghij"]
    assert len(known) > text_rules.MAX_COMPARED
    assert text_rules.nearest("mp_gh_enabld", known) == "mp_gh_enabled"


@given(st.text(max_size=200))
def test_printable_text_is_short_and_encodable(text: str) -> None:
    shown = text_rules.printable(text)
    assert len(shown) <= text_rules.MAX_QUOTED + 1
    assert unprintable_in(shown) is None
    shown.encode()


def test_unprintable_characters_are_replaced_and_long_text_is_truncated() -> None:
    assert text_rules.printable("é b\n") == "é b\ufffd"
    assert text_rules.printable("x" * 65) == "x" * 64 + "…"
    assert text_rules.printable("\ud800") == "\ufffd"


def test_text_with_a_mark_is_visible() -> None:
    for text in ["a", " a ", "\u200b1", "é", "e\u0301", "日", "👍", ".", "\u202eabc"]:
        assert text_rules.has_visible(text)


@pytest.mark.parametrize(
    "text",
    ["", " ", "\u00a0", "\u3000 \u2003", "\u200b\u200d", "\u202e\u2066", "\ufeff", "\u00ad", "\u034f", "\u0301", "\ufe0f",
     "\u115f", "\u3164\uffa0", "\u2800", "\u2028", "\ue000", "\U000e0041", "\u0378"],
)  # fmt: skip
def test_text_of_spaces_and_invisible_marks_is_not_visible(text: str) -> None:
    assert not text_rules.has_visible(text)
