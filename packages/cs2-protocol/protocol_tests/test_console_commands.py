"""Commands have the console's syntax, and no value can end its argument. With a console: tests/unit/cs2."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from cs2_protocol import console_commands as commands


def test_commands_have_the_console_syntax() -> None:
    assert commands.kick_command(7, "not on the list") == 'kickid 7 "not on the list"'
    assert commands.set_command("mp_maxrounds", "24") == "mp_maxrounds 24"
    assert commands.set_command("hostname", "a b") == 'hostname "a b"'
    assert commands.log_address_command("https://a.example/l") == 'logaddress_add_http "https://a.example/l"'
    assert commands.remove_log_address_command("http://a/l") == 'logaddress_del_http "http://a/l"'
    assert commands.end_match_command() == "css_endmatch"
    load = commands.load_match_command("http://a/m", header_name="Authorization", header_value="Bearer x")
    assert load == 'matchzy_loadmatch_url "http://a/m" "Authorization" "Bearer x"'


def test_address_of_reports_is_three_variables() -> None:
    assert commands.report_address_commands("http://a/r", header_name="H", header_value="v") == (
        'matchzy_remote_log_url "http://a/r"',
        'matchzy_remote_log_header_key "H"',
        'matchzy_remote_log_header_value "v"',
    )


@pytest.mark.parametrize("value", ['a"b', "a;b", "a\nb", "a\u2028b", "a\x00b", "a\u202eb"])
def test_value_that_could_end_its_quotes_or_is_invisible_is_rejected(value: str) -> None:
    with pytest.raises(ValueError, match="quoted console argument"):
        commands.quoted(value)


@pytest.mark.parametrize(
    "make",
    [
        partial(commands.bare, ""),
        partial(commands.bare, "a b"),
        partial(commands.kick_command, -1, "x"),
        partial(commands.kick_command, 1, "x" * 500),
        partial(commands.log_address_command, "10.0.0.1/log"),
        partial(commands.command, "two words"),
    ],
)
def test_unsafe_command_is_rejected(make: Callable[[], str]) -> None:
    with pytest.raises(ValueError):
        make()


def test_demos_have_ascii_names_and_are_uploaded_to_an_address_with_a_header() -> None:
    sent = commands.demo_upload_commands("http://a/d", header_name="H", header_value="v")
    assert sent[-3:] == (
        'matchzy_demo_upload_header_key "H"',
        'matchzy_demo_upload_header_value "v"',
        'matchzy_demo_upload_url "http://a/d"',
    )
    assert 'matchzy_demo_name_format "{TIME}_{MATCH_ID}_{MAP}"' in sent
    with pytest.raises(ValueError, match="http"):
        commands.demo_upload_commands("ftp://a/d", header_name="H", header_value="v")
