"""The words of `matchpod listen`: what it refuses, and how a callback reads on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from matchpod.cli import app, listening
from matchpod.listener import Arrival, Callback, Signature

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "example-result.json"
SUBJECT = {"serverId": "srv_1", "externalMatchId": "mine-7"}


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["listen", *words])


def arrival(said: dict[str, object], **fields: object) -> Arrival:
    encoded = json.dumps(said | SUBJECT).encode()
    came = Arrival(
        callback=msgspec.json.decode(encoded, type=Callback),
        body=encoded,
        attempt="1",
        has_authorization=True,
        signature=Signature.OK,
    )
    return msgspec.structs.replace(came, **fields)


def printed(came: Arrival, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> str:
    listening._print(came, as_json=as_json)
    return capsys.readouterr().out


def test_a_finished_match_shows_winner_and_score(capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(GOLDEN.read_text("utf-8"))
    line = printed(arrival({"eventType": "match_over", "result": result}), capsys)
    assert line.count("\n") == 1
    first = result["maps"][0]
    for part in (
        "match_over  srv_1  external id: mine-7",
        f"winner: {result['winner']}",
        f"({first['team1Score']}:{first['team2Score']}",
        "attempt 1  Authorization: yes  signature: ok",
    ):
        assert part in line


def test_a_deathmatch_shows_who_won(capsys: pytest.CaptureFixture[str]) -> None:
    result = {"gameMode": "deathmatch", "map": "de_dust2", "winnerSteamId": "76561198000000001", "players": []}
    line = printed(arrival({"eventType": "match_over", "result": result}), capsys)
    assert "winner: 76561198000000001 on de_dust2" in line


def test_a_canceled_match_shows_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    came = arrival(
        {"eventType": "match_canceled", "reason": "no_players_joined"},
        attempt=None,
        has_authorization=False,
        signature=Signature.NOT_CHECKED,
    )
    line = printed(came, capsys)
    assert "reason: no_players_joined  attempt ?  Authorization: no  signature: not checked" in line


def test_names_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    line = printed(arrival({"eventType": "\x1b[2Jmatch", "reason": "a\nb" + "x" * 9999}), capsys)
    assert "\x1b" not in line
    assert line.count("\n") == 1
    assert len(line) < 1000


def test_json_is_the_body_to_the_letter(capsys: pytest.CaptureFixture[str]) -> None:
    came = arrival({"eventType": "match_canceled", "reason": "x"})
    assert printed(came, capsys, as_json=True) == came.body.decode() + "\n"


def test_json_is_one_line_whatever_the_body_looks_like(capsys: pytest.CaptureFixture[str]) -> None:
    came = arrival({"eventType": "x"}, body=b'{\n "eventType": "x"\r\n}')
    assert printed(came, capsys, as_json=True) == '{"eventType":"x"}\n'


@pytest.mark.parametrize(
    "words",
    [
        ("--secret", "nonsense"),
        ("--secret", "whsec_" + "A" * 8),
        ("--secret", "whsec_" + "A" * 44, "--org", "demo"),
        ("--org", "nobody"),
        ("--status", "99"),
        ("--port", "65536"),
        ("--host", "a..b", "--port", "0"),
    ],
)
def test_wrong_words_are_exit_code_2(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATCHPOD_DATA_DIR", str(tmp_path))
    done = run(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr


def test_a_secret_is_not_shown_when_it_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MATCHPOD_DATA_DIR", str(tmp_path))
    assert "c2VjcmV0" not in run("--secret", "whsec_c2VjcmV0").stderr
