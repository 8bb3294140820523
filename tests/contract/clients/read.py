"""Use a client that is generated from the description, without casts; run by the test, and checked by mypy in soak."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import httpx
from generated import AuthenticatedClient
from generated.api.api import get_match_by_external_id
from generated.models.deathmatch_result import DeathmatchResult
from generated.models.error import Error
from generated.models.series_result import SeriesResult


def describe_result(result: SeriesResult | DeathmatchResult) -> str:
    if isinstance(result, DeathmatchResult):
        best = result.players[0]
        return f"deathmatch on {result.map_}: {best.name} {best.kpm} kills per minute, won by {result.winner_steam_id}"
    player = result.maps[0].players[0]
    score = f"{result.team1.series_score}:{result.team2.series_score}"
    return f"{result.game_mode.value} {result.format_.value}: {score}, {player.name} {player.kast_percent}"


def read(client: AuthenticatedClient) -> str:
    match = get_match_by_external_id.sync(client=client, external_match_id="cup-17")
    if match is None or isinstance(match, Error):
        return "none" if match is None else f"{match.status_code} {match.error}"
    if match.result is None:
        return "in progress"
    if match.ended_at is None or match.ended_at <= match.created_at:  # both are datetimes
        return "not ended"
    return describe_result(match.result)


def main(responses: Path) -> None:
    for response in json.loads(responses.read_text("utf-8")):
        answer = httpx.Response(response["status"], json=response["body"])
        transport = httpx.MockTransport(lambda _, answer=answer: answer)
        client = AuthenticatedClient(base_url="http://service.example", token="key")
        client.set_httpx_client(httpx.Client(transport=transport, base_url="http://service.example"))
        sys.stdout.write(f"{read(client)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
