"""Property test: a formatted player line is parsed to the same value, with any name and text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.log_lines import player_lines as lines
from cs2_protocol.log_lines.player_token import TEAMS, PlayerToken, player_token
from cs2_protocol.log_lines.reader import LineReader

free_text = st.text(
    st.one_of(st.sampled_from('"<>[]() \u2028\x01\x1c\ufffd'), st.characters(codec="utf-8")), max_size=40
)
numbers = st.integers(0, 9999)
positions = st.tuples(*[st.integers(-9999, 9999)] * 3).map(lambda xyz: " ".join(map(str, xyz)))
words = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True)
modifiers = st.lists(st.sampled_from(["headshot", "penetrated", "noscope"]), max_size=3).map(tuple)
steam_ids = st.one_of(st.integers(1, 2**32 - 1).map(lambda n: f"[U:1:{n}]"), st.just("BOT"))
decimals = st.tuples(numbers, st.integers(0, 99)).map(lambda n: f"{n[0]}.{n[1]:02d}")


def tokens(teams: st.SearchStrategy[str | None]) -> st.SearchStrategy[PlayerToken]:
    return st.builds(player_token, free_text, st.integers(0, 65535), steam_ids, teams)


players = tokens(st.sampled_from(TEAMS))

any_line = st.one_of(
    st.builds(lines.Connected, players, words),
    st.builds(lines.Validated, players),
    st.builds(lines.Entered, players),
    st.builds(lines.SwitchedTeam, tokens(st.none()), st.sampled_from(TEAMS), st.sampled_from(TEAMS)),
    st.builds(lines.Disconnected, players, free_text),
    st.builds(lines.ChangedName, players, free_text),
    st.builds(lines.Chat, players, st.booleans(), free_text),
    st.builds(lines.Attacked, players, positions, players, positions, words, numbers, numbers, numbers, numbers, st.sampled_from(["head", "left arm", "GENERIC"])),
    st.builds(lines.Killed, players, positions, players, positions, words, modifiers),
    st.builds(lines.KilledOther, players, positions, words, numbers, positions, words, modifiers),
    st.builds(lines.Suicide, players, positions, words),
    st.builds(lines.BombDeath, players, positions),
    st.builds(lines.HostageMoved, players, positions, st.booleans()),
    st.builds(lines.Assisted, players, players, st.booleans()),
    st.builds(lines.BlindedBy, players, decimals, players, numbers),
    st.builds(lines.GrenadeLaunched, players, st.sampled_from(["hegrenade", "molotov"]), positions),
    st.builds(lines.GrenadeLanded, players, st.sampled_from(["flashbang", "decoy"]), positions, st.none() | numbers),
    st.builds(lines.Triggered, players, words, st.sampled_from([None, "A", "B"])),
    st.builds(lines.ItemTransfer, players, st.sampled_from(["purchased", "picked up", "dropped"]), words),
    st.builds(lines.MoneyChange, players, numbers, st.integers(-9999, 9999), numbers, st.none() | words, st.booleans()),
    st.builds(lines.LeftBuyzone, players, st.lists(words, max_size=5).map(tuple)),
)  # fmt: skip


@given(any_line)
def test_formatted_line_is_parsed_to_the_same_value(line: lines.PlayerLogLine) -> None:
    reader = LineReader()
    for player in (line.player, getattr(line, "victim", line.player), getattr(line, "thrower", line.player)):
        reader.known.learn(player)
    assert reader.parse(line.text()) == line
