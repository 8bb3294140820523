"""`matchpod recompute`: compare and rewrite the statistics of ended matches."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence

import pytest

from matchpod.cli import create_app, recomputing
from matchpod.cli.recomputing import SHOWN_DIFFERENCES
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, Statement
from matchpod.service.history.differences import Difference, DifferencePart
from matchpod.service.history.recomputing import Finding, Verdict
from matchpod.storage import history
from tests.contract.ended_matches import store_match
from tests.unit.cli.command_runner import CommandRunner
from tests.unit.cli.test_matches import on_database

REGION = '[[regions]]\ncode = "eu"\nname = "Europe"\n[regions.fleet]\nkind = "process"\nports = "27100-27101"\n'
WRONG = Statement("UPDATE maps SET team1_score = 7 WHERE server_id = 'srv_1' AND map_number = 1")


@pytest.fixture
def played(runner: CommandRunner) -> CommandRunner:
    """A command runner with four matches: one with wrong statistics, one correct, one without a log, one running."""
    (runner.data_dir / "matchpod.toml").write_text(REGION)

    async def fill(db: Database) -> None:
        await store_match(db, "srv_1", entries=20)
        await store_match(db, "srv_2", entries=20)
        await store_match(db, "srv_3", entries=20)
        await store_match(db, "srv_4", phase=ServerPhase.RUNNING)
        await db.write([WRONG, Statement("DELETE FROM raw_log WHERE server_id = 'srv_3'")])

    on_database(runner, fill)
    return runner


def recompute(runner: CommandRunner, *args: str, code: int = 0) -> tuple[list[str], list[str]]:
    """Run the command; return the lines on standard output and, without the progress of slow ones, on standard error."""
    result = runner.invoke(create_app("recompute"), "recompute", *args)
    assert result.exit_code == code, result.output
    return result.stdout.splitlines(), [line for line in result.stderr.splitlines() if " of about " not in line]


def versions(runner: CommandRunner) -> list[int]:
    found: list[int] = []

    async def read(db: Database) -> None:
        for one in await history.maps_of(db, "srv_1"):
            stats = await history.stats_of(db, one.id)
            found.append(stats.stats_version if stats else 0)

    on_database(runner, read)
    return found


def test_difference_is_shown_and_not_written(played: CommandRunner) -> None:
    for _ in range(2):
        out, notes = recompute(played, "srv_1")
        assert out == ["srv_1: 1 difference", "  map 1: team1Score 7 -> 0"]
        assert notes == ["matchpod: Nothing was written. Use --write to store the differences."]
    assert versions(played) == [1, 1, 1]


def test_difference_is_written_once(played: CommandRunner) -> None:
    written = ["srv_1: 1 difference, written as version 2", "  map 1: team1Score 7 -> 0"]
    assert recompute(played, "srv_1", "--write") == (written, [])
    assert recompute(played, "srv_1", "--write") == (["srv_1: no differences."], [])
    assert versions(played) == [2, 1, 1]


def test_runs_that_write_are_recorded_whatever_they_change(played: CommandRunner) -> None:
    recompute(played, "srv_1")
    recompute(played, "--all")
    assert played.acts() == []
    recompute(played, "srv_2", "--write")
    recompute(played, "--all", "--write")
    played.error(create_app("recompute"), "recompute", "srv_0", "--write")
    assert played.acts() == [
        ("org_1", "command line", "recompute_started", "srv_2", ""),
        (None, "command line", "recompute_started", "", "all matches"),
    ]


def test_json_has_one_object_per_line(played: CommandRunner) -> None:
    out, _ = recompute(played, "--all", "--json")
    findings = [json.loads(line) for line in out]
    assert [one["serverId"] for one in findings] == ["srv_1", "srv_2", "srv_3", "srv_4"]
    assert [one["verdict"] for one in findings] == ["changed", "unchanged", "skipped", "skipped"]
    assert findings[0]["isWritten"] is False
    assert findings[0]["differences"] == [
        {"part": "map", "mapNumber": 1, "steamId": None, "name": None, "field": "team1Score", "old": 7, "new": 0}
    ]
    (line,), _ = recompute(played, "srv_2", "--json")
    assert json.loads(line)["statsVersion"] == 1


def test_recomputing_all_matches_ends_with_a_summary(played: CommandRunner) -> None:
    out, notes = recompute(played, "--all")
    assert out == ["srv_1: 1 difference", "  map 1: team1Score 7 -> 0"]
    assert notes == [
        "matchpod: 4 matches: 1 unchanged, 1 changed, 2 skipped.",
        "matchpod: Skipped 1: Its log is no longer stored completely.",
        "matchpod: Skipped 1: It has not ended yet.",
        "matchpod: Nothing was written. Use --write to store the differences.",
    ]
    _, notes = recompute(played, "--all", "--write")
    assert notes[-1] == "matchpod: 1 match was written."
    out, notes = recompute(played, "--all")
    assert (out, notes[0]) == ([], "matchpod: 4 matches: 2 unchanged, 2 skipped.")


def test_empty_database_has_no_matches(runner: CommandRunner) -> None:
    assert recompute(runner, "--all") == ([], ["matchpod: 0 matches: none."])


def test_match_that_cannot_be_recomputed_gives_exit_code_1(played: CommandRunner) -> None:
    sentence = "matchpod: srv_3 was not recomputed. Its log is no longer stored completely."
    assert recompute(played, "srv_3", code=1) == ([], [sentence])
    (line,), _ = recompute(played, "srv_4", "--json", code=1)
    assert json.loads(line)["reason"] == "It has not ended yet."


def test_invalid_arguments_give_exit_code_2(played: CommandRunner) -> None:
    assert played.error(create_app("recompute"), "recompute", "srv_9") == "There is no server srv_9."
    assert played.error(create_app("recompute"), "recompute") == "Give either a SERVER_ID or --all."
    assert (
        played.error(create_app("recompute"), "recompute", "")
        == '"" is not a server id. Expected 1 to 64 letters, digits, _ and -.'
    )
    assert "is not a server id" in played.error(create_app("recompute"), "recompute", "srv 1")
    assert played.error(create_app("recompute"), "recompute", "srv_1", "--all") == "Give either a SERVER_ID or --all."


def test_long_list_of_differences_is_shortened(capsys: pytest.CaptureFixture[str]) -> None:
    differences = [Difference(part=DifferencePart.MAP, map_number=number) for number in range(SHOWN_DIFFERENCES + 2)]
    recomputing._print_text(Finding(server_id="srv_2", verdict=Verdict.CHANGED, differences=differences))
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "srv_2: 22 differences"
    assert out[SHOWN_DIFFERENCES:] == ["  map 19: is new", "  and 2 more; --json shows them all"]


async def test_long_run_reports_its_progress(capsys: pytest.CaptureFixture[str]) -> None:
    async def findings() -> AsyncIterator[Finding]:
        yield Finding(server_id="srv_1", verdict=Verdict.CHANGED)
        yield Finding(server_id="srv_2", verdict=Verdict.UNCHANGED)

    counted = [finding async for finding in recomputing._Tally(progress_s=0.0).count(findings(), 4)]
    assert [finding.server_id for finding in counted] == ["srv_1", "srv_2"]
    assert capsys.readouterr().err.splitlines() == [
        "matchpod: 1 of about 4 matches, 1 different",
        "matchpod: 2 of about 4 matches, 1 different",
    ]


def test_interrupted_run_reports_what_was_written(played: CommandRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: Finding) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(recomputing, "_print_text", interrupt)
    _, notes = recompute(played, "--all", "--write", code=130)
    assert notes == [
        "matchpod: Interrupted. Each match is either unchanged or completely updated.",
        "matchpod: 1 match: 1 changed.",
        "matchpod: 1 match was written.",
    ]


@pytest.mark.parametrize(
    ("difference", "line"),
    [
        (
            Difference(part=DifferencePart.SERIES, field="winnerTeam", old=None, new="Reds"),
            'series: winnerTeam null -> "Reds"',
        ),
        (
            Difference(part=DifferencePart.PLAYERS, map_number=2, steam_id="1", name="\x1b[2J", field="adr", new=1.5),
            r"map 2 players, \x1b[2J (1): adr - -> 1.5",
        ),
        (
            Difference(part=DifferencePart.ANTI_CHEAT, map_number=1, steam_id="1", old={}),
            "map 1 antiCheat, - (1): is gone",
        ),
        (
            Difference(part=DifferencePart.LEADERBOARD, map_number=1, field="order", old=[], new=["x" * 200]),
            f'map 1 leaderboard: order [] -> ["{"x" * 78}…',
        ),
    ],
)
def test_difference_is_formatted_as_one_printable_line(difference: Difference, line: str) -> None:
    assert recomputing._format_difference(difference) == line


def test_help_is_short(runner: CommandRunner) -> None:
    lines: Sequence[str] = runner.output(create_app("recompute"), "recompute", "--help").splitlines()
    assert any("SERVER_ID" in line for line in lines)
    assert len(lines) < 24
