"""`matchpod listen`: invalid arguments, and how a callback is printed."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from matchpod.callback_receiver import Callback, ReceivedCallback, Signature
from matchpod.cli import create_app, listen

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "example-result.json"
SUBJECT = {"serverId": "srv_1", "externalMatchId": "mine-7"}


def run(*args: str) -> Result:
    return CliRunner().invoke(create_app("listen"), ["listen", *args])


def received(callback: dict[str, object], **fields: object) -> ReceivedCallback:
    encoded = json.dumps(callback | SUBJECT).encode()
    default = ReceivedCallback(
        callback=msgspec.json.decode(encoded, type=Callback),
        body=encoded,
        attempt="1",
        has_authorization=True,
        signature=Signature.OK,
    )
    return msgspec.structs.replace(default, **fields)


def printed(callback: ReceivedCallback, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> str:
    listen._print(callback, as_json=as_json)
    return capsys.readouterr().out


def test_finished_match_shows_winner_and_score(capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(GOLDEN.read_text("utf-8"))
    line = printed(received({"eventType": "match_over", "result": result}), capsys)
    assert line.count("\n") == 1
    first = result["maps"][0]
    for part in (
        "match_over  srv_1  external id: mine-7",
        f"winner: {result['winner']}",
        f"({first['team1Score']}:{first['team2Score']}",
        "attempt 1  Authorization: yes  signature: ok",
    ):
        assert part in line


def test_deathmatch_shows_the_winner(capsys: pytest.CaptureFixture[str]) -> None:
    result = {"gameMode": "deathmatch", "map": "de_dust2", "winnerSteamId": "76561198000000001", "players": []}
    line = printed(received({"eventType": "match_over", "result": result}), capsys)
    assert "winner: 76561198000000001 on de_dust2" in line


def test_canceled_match_shows_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    callback = received(
        {"eventType": "match_canceled", "reason": "no_players_joined"},
        attempt=None,
        has_authorization=False,
        signature=Signature.NOT_CHECKED,
    )
    line = printed(callback, capsys)
    assert "reason: no_players_joined  attempt ?  Authorization: no  signature: not checked" in line


def test_control_characters_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    line = printed(received({"eventType": "\x1b[2Jmatch", "reason": "a\nb" + "x" * 9999}), capsys)
    assert "\x1b" not in line
    assert line.count("\n") == 1
    assert len(line) < 1000


def test_json_is_the_unchanged_body(capsys: pytest.CaptureFixture[str]) -> None:
    callback = received({"eventType": "match_canceled", "reason": "x"})
    assert printed(callback, capsys, as_json=True) == callback.body.decode() + "\n"


def test_json_is_printed_in_one_line_even_if_the_body_has_several(capsys: pytest.CaptureFixture[str]) -> None:
    callback = received({"eventType": "x"}, body=b'{\n "eventType": "x"\r\n}')
    assert printed(callback, capsys, as_json=True) == '{"eventType":"x"}\n'


@pytest.mark.parametrize(
    "args",
    [
        ("--secret", "nonsense"),
        ("--secret", "whsec_c2VjcmV0"),
        ("--secret", "whsec_" + "A" * 44, "--org", "demo"),
        ("--org", "unknown"),
        ("--status", "99"),
        ("--port", "65536"),
        ("--host", "a..b", "--port", "0"),
    ],
)
def test_invalid_arguments_give_exit_code_2_and_no_secret_is_printed(
    args: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MATCHPOD_DATA_DIR", str(tmp_path))
    done = run(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr
    assert "c2VjcmV0" not in done.stderr
