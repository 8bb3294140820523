"""Property test: a formatted line that is not about a player is parsed to the same value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.game import Side
from cs2_protocol.log_lines import world_lines as lines
from cs2_protocol.log_lines.reader import LineReader
from cs2_protocol.log_lines.world_grammar import STATS_BEGIN, STATS_END, STATS_NAME, STATS_PLAYERS

from .test_player_lines import decimals, free_text, numbers, players, words

sides = st.sampled_from(Side)
quoted = free_text.map(lambda text: text.replace('"', ""))
triples = st.tuples(decimals, decimals, decimals).map(" ".join)

any_line = st.one_of(
    st.builds(lines.WorldTriggered, words, st.none() | quoted),
    st.builds(lines.RoundEndNotice, st.none() | sides, words, numbers, numbers),
    st.builds(lines.TeamScored, sides, numbers, numbers),
    st.builds(lines.TeamPlaying, sides, free_text, st.booleans()),
    st.builds(lines.TeamPlaying, sides, st.none(), st.just(True)),
    st.builds(lines.MatchScore, numbers, numbers, quoted, st.integers(-1, 200)),
    st.builds(lines.PauseChanged, st.booleans(), words),
    st.builds(lines.MatchUnpaused),
    st.builds(
        lines.Vote, st.just("cast"), quoted, st.integers(0, 64), players, words, st.sampled_from([None, "option1"])
    ),
    st.builds(lines.VoteFailed, quoted, st.booleans()),
    st.builds(lines.FreezeStarted),
    st.builds(lines.LoadingMap, quoted),
    st.builds(lines.MapStarted, quoted, st.none() | quoted),
    st.builds(lines.CvarsListed, st.booleans()),
    st.builds(lines.CvarListed, words, words),
    st.builds(lines.CvarChanged, words, free_text),
    st.builds(lines.LogFileStarted, quoted, quoted, quoted),
    st.builds(lines.LogFileClosed),
    st.builds(lines.ServerMessage, free_text),
    st.builds(lines.GameOver, words, st.just("") | words, words, numbers, numbers, numbers),
    st.builds(lines.Accolade, words, free_text, numbers, decimals, numbers, decimals),
    st.builds(lines.MolotovSpawned, triples, triples),
    st.builds(lines.RconCommand, quoted, free_text),
    st.builds(lines.ConsoleChat, words),
    st.builds(lines.StatsMark, st.sampled_from([STATS_BEGIN, STATS_NAME, STATS_PLAYERS, STATS_END])),
    st.builds(lines.StatsField, st.sampled_from(["round_number", "score_t", "map", "server", "fields"]), words),
    st.builds(
        lines.StatsPlayer, st.integers(0, 64), st.lists(numbers, max_size=26).map(lambda n: ",".join(map(str, n)))
    ),
)


@given(any_line)
def test_formatted_line_is_parsed_to_the_same_value(line: lines.WorldLine) -> None:
    assert LineReader().parse(line.text()) == line
