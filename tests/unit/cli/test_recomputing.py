"""`matchpod recompute`, as an operator uses it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from matchpod.cli import app, recomputing
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, Statement
from matchpod.service.history.differences import Difference, Part
from matchpod.service.history.recomputing import Finding
from matchpod.storage import history
from tests.contract.ended_matches import play
from tests.unit.cli import office as offices
from tests.unit.cli.office import Office
from tests.unit.cli.test_matches import on_database

office = offices.office

REGION = '[[regions]]\ncode = "eu"\nname = "Europe"\n[regions.fleet]\nkind = "process"\nports = "27100-27101"\n'
WRONG = Statement("UPDATE maps SET team1_score = 7 WHERE server_id = 'srv_1' AND map_number = 1")


@pytest.fixture
def played(office: Office) -> Office:
    """Four matches: one was counted wrongly, one is right, one lost its log, one goes on."""
    (office.data_dir / "matchpod.toml").write_text(REGION)

    async def fill(db: Database) -> None:
        await play(db, "srv_1", entries=20)
        await play(db, "srv_2", entries=20)
        await play(db, "srv_3", entries=20)
        await play(db, "srv_4", phase=ServerPhase.RUNNING)
        await db.write([WRONG, Statement("DELETE FROM raw_log WHERE server_id = 'srv_3'")])

    on_database(office, fill)
    return office


def said(office: Office, *words: str, code: int = 0) -> tuple[list[str], list[str]]:
    """The lines on standard output and on standard error."""
    result = office.run(app, "recompute", *words)
    assert result.exit_code == code, result.output
    return result.stdout.splitlines(), result.stderr.splitlines()


def versions(office: Office) -> list[int]:
    found: list[int] = []

    async def look(db: Database) -> None:
        for one in await history.maps_of(db, "srv_1"):
            stats = await history.stats_of(db, one.id)
            found.append(stats.stats_version if stats else 0)

    on_database(office, look)
    return found


def test_a_difference_is_shown_and_not_written(played: Office) -> None:
    for _ in range(2):
        out, beside = said(played, "srv_1")
        assert out == ["srv_1: 1 difference", "  map 1: team1Score 7 -> 0"]
        assert beside == ["matchpod: Nothing was written; --write does that."]
    assert versions(played) == [1, 1, 1]


def test_a_difference_is_written_once(played: Office) -> None:
    assert said(played, "srv_1", "--write") == (
        ["srv_1: 1 difference, written as version 2", "  map 1: team1Score 7 -> 0"],
        [],
    )
    assert said(played, "srv_1", "--write") == (["srv_1: nothing differs."], [])
    assert versions(played) == [2, 1, 1]


def test_programs_get_an_object_a_line(played: Office) -> None:
    out, _ = said(played, "--all", "--json")
    findings = [json.loads(line) for line in out]
    assert [(one["serverId"], one["verdict"]) for one in findings] == [
        ("srv_1", "changed"),
        ("srv_2", "unchanged"),
        ("srv_3", "skipped"),
        ("srv_4", "skipped"),
    ]
    assert findings[0]["isWritten"] is False
    assert findings[0]["differences"] == [
        {"part": "map", "mapNumber": 1, "steamId": None, "name": None, "field": "team1Score", "old": 7, "new": 0}
    ]
    (line,), _ = said(played, "srv_2", "--json")
    assert json.loads(line)["statsVersion"] == 1


def test_all_matches_end_with_a_sum(played: Office) -> None:
    out, beside = said(played, "--all")
    assert out == ["srv_1: 1 difference", "  map 1: team1Score 7 -> 0"]
    assert beside == [
        "matchpod: 4 matches: 1 unchanged, 1 changed, 2 skipped.",
        "matchpod: Skipped 1: Its log is no longer stored, or not all of it.",
        "matchpod: Skipped 1: It has not ended yet.",
        "matchpod: Nothing was written; --write does that.",
    ]
    _, beside = said(played, "--all", "--write")
    assert beside[-1] == "matchpod: 1 match was written."
    out, beside = said(played, "--all")
    assert (out, beside[0]) == ([], "matchpod: 4 matches: 2 unchanged, 2 skipped.")


def test_an_empty_database_has_nothing_to_read(office: Office) -> None:
    assert said(office, "--all") == ([], ["matchpod: 0 matches: none."])


def test_a_match_that_cannot_be_read_again_is_exit_code_1(played: Office) -> None:
    out, beside = said(played, "srv_3", code=1)
    assert (out, beside) == (
        [],
        ["matchpod: srv_3 was not recomputed. Its log is no longer stored, or not all of it."],
    )
    (line,), _ = said(played, "srv_4", "--json", code=1)
    assert json.loads(line)["reason"] == "It has not ended yet."


def test_wrong_words_are_exit_code_2(played: Office) -> None:
    assert played.refused(app, "recompute", "srv_9") == "There is no server srv_9."
    assert played.refused(app, "recompute") == "Name one server, or give --all."
    assert played.refused(app, "recompute", "") == '"" is not the id of a server: 1 to 64 letters, digits, _ and -.'
    assert "is not the id of a server" in played.refused(app, "recompute", "srv 1")
    assert played.refused(app, "recompute", "srv_1", "--all") == "Name one server, or give --all."


def test_a_match_without_a_history_is_new(played: Office) -> None:
    async def forget(db: Database) -> None:
        await db.write([Statement(f"DELETE FROM {name} WHERE server_id = 'srv_2'") for name in ("maps", "series")])

    on_database(played, forget)
    out, _ = said(played, "srv_2", "--write")
    assert out == [
        "srv_2: nothing was stored of it, written as version 1",
        *(f"  map {number}: is new" for number in (1, 2, 3)),
        "  series: is new",
    ]


def test_a_broken_match_is_told_and_the_others_are_read(played: Office) -> None:
    async def damage(db: Database) -> None:
        await db.write([Statement("UPDATE servers SET settings = :broken WHERE id = 'srv_1'", {"broken": b"{"})])

    on_database(played, damage)
    _, beside = said(played, "--all", code=1)
    assert any(line.startswith("matchpod: srv_1 was not recomputed. DecodeError: ") for line in beside)
    assert "matchpod: 4 matches: 1 unchanged, 2 skipped, 1 failed." in beside


def test_numbers_that_are_no_longer_any_are_repaired(played: Office) -> None:
    async def damage(db: Database) -> None:
        sql = "UPDATE map_stats SET players = :a, anti_cheat = :b, leaderboard = :c"
        await db.write([Statement(sql, {"a": b'[{"name": "\xff"}]', "b": b"", "c": b"{}"})])

    on_database(played, damage)
    out, _ = said(played, "srv_2", "--write")
    assert out[0] == "srv_2: 9 differences, written as version 2"
    assert out[1:4] == [
        '  map 1 players: entries "[{\\"name\\": \\"\ufffd\\"}]" -> []',
        '  map 1 leaderboard: entries "{}" -> []',
        '  map 1 antiCheat: entries "" -> []',
    ]
    assert said(played, "srv_2") == (["srv_2: nothing differs."], [])


def test_many_differences_are_cut(played: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recomputing, "SHOWN_DIFFERENCES", 2)

    async def wrong(db: Database) -> None:
        await db.write([Statement("UPDATE maps SET team1_score = 9, team2_score = 9, player_count = 9, winner = 'x'")])

    on_database(played, wrong)
    out, _ = said(played, "srv_2")
    assert out[0] == "srv_2: 12 differences"
    assert out[3:] == ["  and 10 more; --json shows them all"]


def test_long_runs_say_how_far_they_are(played: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recomputing, "PROGRESS_S", 0.0)
    _, beside = said(played, "--all")
    assert beside[:2] == [
        "matchpod: 1 of about 4 matches, 1 different",
        "matchpod: 2 of about 4 matches, 1 different",
    ]


def test_an_interrupted_run_says_what_it_did(played: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: Finding) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(recomputing, "_print_text", interrupt)
    _, beside = said(played, "--all", "--write", code=130)
    assert beside == [
        "matchpod: Interrupted. Every match is as it was, or changed as a whole.",
        "matchpod: 1 match: 1 changed.",
        "matchpod: 1 match was written.",
    ]


@pytest.mark.parametrize(
    ("difference", "line"),
    [
        (Difference(part=Part.SERIES, field="winnerTeam", old=None, new="Reds"), 'series: winnerTeam null -> "Reds"'),
        (
            Difference(part=Part.PLAYERS, map_number=2, steam_id="1", name="\x1b[2J", field="adr", new=1.5),
            r"map 2 players, \x1b[2J (1): adr - -> 1.5",
        ),
        (Difference(part=Part.ANTI_CHEAT, map_number=1, steam_id="1", old={}), "map 1 antiCheat, - (1): is gone"),
        (
            Difference(part=Part.LEADERBOARD, map_number=1, field="order", old=[], new=["x" * 200]),
            f'map 1 leaderboard: order [] -> ["{"x" * 78}…',
        ),
    ],
)
def test_a_difference_is_one_harmless_line(difference: Difference, line: str) -> None:
    assert recomputing._line(difference) == line


def test_help_is_short(office: Office) -> None:
    words: Sequence[str] = office.done(app, "recompute", "--help").splitlines()
    assert any("SERVER_ID" in line for line in words)
    assert len(words) < 24
