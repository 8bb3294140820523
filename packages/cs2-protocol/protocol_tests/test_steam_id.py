"""Tests of Steam ids: every format of a player's id gives the same 64-bit id, and other text gives none."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cs2_protocol.steam_id import FIRST_ID64, MAX_ACCOUNT, account_of, format_steam3, from_account, to_id64

accounts = st.integers(min_value=1, max_value=MAX_ACCOUNT)


@pytest.mark.parametrize(
    "text", ["[U:1:37572195]", "STEAM_1:1:18786097", "STEAM_0:1:18786097", "STEAM_1:1:0018786097", "76561197997837923"]
)
def test_real_id_is_converted_from_every_format(text: str) -> None:
    assert to_id64(text) == "76561197997837923"


@given(accounts)
@example(1)
@example(MAX_ACCOUNT)
def test_every_format_of_an_account_gives_the_same_id(account: int) -> None:
    id64 = from_account(account)
    assert to_id64(id64) == id64
    assert to_id64(format_steam3(id64)) == id64
    assert to_id64(f"STEAM_1:{account % 2}:{account // 2}") == id64
    assert account_of(id64) == account
    assert format_steam3(id64) == f"[U:1:{account}]"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "BOT",
        "STEAM_ID_PENDING",
        "<none>",
        "[U:1:0]",
        "STEAM_1:0:0",
        "0",
        str(FIRST_ID64),
        "[U:1:]",
        "[U:1:",
        "[U:1:7",
        "[U:1:7]x",
        "[U:1:7]\n",
        "[U:1:-7]",
        "[U:1:+7]",
        "[U:1: 7]",
        "[U:1:1_0]",
        "[U:1:007]",
        "[U:1:²]",
        "[U:1:٣]",
        "[U:2:7]",
        "[A:1:2404786178:50561]",
        "[I:0:0]",
        "[U:1:4294967296]",
        "[U:1:" + "9" * 5000 + "]",
        "STEAM_2:0:7",
        "STEAM_1:2:7",
        "STEAM_1:0:2147483648",
        "STEAM_1:0:7\n",
        "STEAM_1:0:" + "9" * 5000,
        str(FIRST_ID64 + MAX_ACCOUNT + 1),
        "90071996842377218",
        "7656119799783792",
        "٧٦٥٦١١٩٧٩٩٧٨٣٧٩٢٣",
        "`As\u05ac\x02",
    ],
)
def test_text_that_is_not_a_player_id_is_none(text: str) -> None:
    assert to_id64(text) is None


@given(st.text() | st.from_regex(r"(\[U:1:|STEAM_|7656119).*", fullmatch=True))
def test_any_text_gives_a_player_id_or_none(text: str) -> None:
    id64 = to_id64(text)
    assert id64 is None or account_of(id64) is not None


@pytest.mark.parametrize("account", [0, -1, MAX_ACCOUNT + 1])
def test_invalid_account_number_is_rejected(account: int) -> None:
    with pytest.raises(ValueError):
        from_account(account)


def test_id_of_another_account_type_cannot_be_formatted() -> None:
    with pytest.raises(ValueError):
        format_steam3("90071996842377218")
