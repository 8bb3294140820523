"""Losing a post of a real match changes only rounds that are named, and few rounds are named in vain."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from cs2_protocol.game import Team
from cs2_protocol.log_batches import LogPost
from matchpod.core.match.timers import Timers
from matchpod.cs2.match_reader import MatchReader
from tests.corpus.real_logs import COMPETITIVE, CSGO_LOGS, INFERNO, LEAVER, read_log
from tests.corpus.test_real_leaver import ABSENT, KHANJER, line_of
from tests.effort import some_of
from tests.lost_posts import Losses, lose_posts, posts_by_second

SAMPLE = 30
"""Posts of each log that `make test` loses."""

PATIENT = Timers(join_s=1e6, all_left_grace_s=1e6, idle_s=1e6, max_duration_s=1e6, map_change_grace_s=1e6)
"""Players of these logs come and go for longer than our matches wait."""

LOGS = (INFERNO, LEAVER, *CSGO_LOGS)


def lose(posts: list[LogPost], lost: Collection[int], *, has_console: bool = False) -> Losses:
    losses = lose_posts(
        lambda: MatchReader.create(COMPETITIVE, posts[0].received_ms, PATIENT), posts, lost, has_console=has_console
    )
    assert losses.faults == []
    return losses


def kicks_in(posts: list[LogPost]) -> list[int]:
    return [index for index, post in enumerate(posts) if b"KICKED_IDLE" in post.body]


@pytest.mark.parametrize("name", LOGS)
def test_lost_post_changes_only_named_rounds(corpus: Path, name: str) -> None:
    posts = posts_by_second((corpus / name).read_bytes())
    losses = lose(posts, {*kicks_in(posts), *some_of(range(len(posts)), SAMPLE)})
    assert 0 < losses.named >= 3 * losses.equal


@pytest.mark.soak
@pytest.mark.parametrize("has_console", [False, True], ids=["log", "console"])
@pytest.mark.parametrize("name", LOGS)
def test_each_lost_post_changes_only_named_rounds(corpus: Path, name: str, *, has_console: bool) -> None:
    posts = posts_by_second((corpus / name).read_bytes())
    losses = lose(posts, range(len(posts)), has_console=has_console)
    assert 0 < losses.named >= 3 * losses.equal


def test_console_names_the_rounds_in_which_a_leaver_may_have_been(corpus: Path) -> None:
    posts = posts_by_second((corpus / LEAVER).read_bytes())
    alone, asked = (lose(posts, kicks_in(posts), has_console=has_console) for has_console in (False, True))
    assert alone.named < asked.named <= alone.named + 2


def test_player_whose_leaving_is_lost_is_in_no_later_line_up(corpus: Path) -> None:
    posts = posts_by_second((corpus / LEAVER).read_bytes())
    reader = MatchReader.create(COMPETITIVE, posts[0].received_ms, PATIENT)
    del posts[kicks_in(posts)[0]]
    for post in posts:
        reader.read_post(post)
    (played,) = reader.match.maps
    assert played.missing_rounds == (4, 5), "in the 5th, a team of one bot may have changed sides"
    assert {record.number for record in played.ledger.rounds if record.team_of(KHANJER) is None} == ABSENT
    assert all(len(record.alive(Team.TEAM2)) <= 1 for record in played.ledger.rounds)


@pytest.mark.parametrize("entered", ["04:50:50", "05:07:55"])
def test_player_whose_return_is_not_in_the_log_is_believed_by_what_they_buy_or_carry(
    corpus: Path, tmp_path: Path, entered: str
) -> None:
    lines = (corpus / LEAVER).read_bytes().splitlines(keepends=True)
    (at,) = (index for index, line in enumerate(lines) if b"Khanjer" in line and f"{entered}: ".encode() in line)
    returned = {index for index in range(at - 20, at + 1) if b'Khanjer<2><[U:1:1098204826]><>"' in lines[index]}
    assert len(returned) == 3
    file = tmp_path / "without.log"
    file.write_bytes(b"".join(line for index, line in enumerate(lines) if index not in returned))
    match, whole = read_log(file)[0].match, read_log(corpus / LEAVER)[0].match
    assert line_of(match) == line_of(whole)
    assert line_of(match).rounds_played == 15
    (number,) = match.maps[0].missing_rounds
    assert number - 1 in ABSENT, "lines of the return are missing, so it says so"
