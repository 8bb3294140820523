"""Write and read a database of an earlier commit, which today's code must be able to show.

`PYTHONPATH=. .venv/bin/python FILE FOLDER`, run in a checkout of that commit with FILE the path of this module, writes
`earlier-database.sqlite.xz`. It plays matches on a real service: some ended, some canceled, some still live. The stored
one was written by commit ed9b0d9, before the sides of a series could be chosen.
"""

from __future__ import annotations

import lzma
import sqlite3
import sys
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "golden"
DATABASE = "earlier-database.sqlite.xz"
ORGANIZATION = "demo"
SECRET_KEY = "A" * 43 + "="
"""That of `tests.vaults`, which the checkout of an earlier commit may not have."""

SERVERS = 30
"""More than there are matches at a time: the first port may be that of the service."""

PLAYERS = [str(76561198000000001 + number) for number in range(4)]
TEAMS = {"team1": {"name": "Reds", "players": PLAYERS[:2]}, "team2": {"name": "Blues", "players": PLAYERS[2:]}}
COMPETITIVE = {"matchType": "competitive", "map": "de_mirage", "maxRounds": 4, "freezeTime": 5, "teams": TEAMS}
SERIES = {**COMPETITIVE, "seriesFormat": "bo3", "maps": ["de_mirage", "de_nuke", "de_inferno"]}
DEATHMATCH = {"matchType": "deathmatch", "map": "de_dust2", "dmRoundMinutes": 1, "players": PLAYERS}

ENDED = {
    "series": {**SERIES, "customCvars": "sim_scenario cheater"},
    "restored": {**COMPETITIVE, "maxRounds": 8, "customCvars": "sim_scenario round_restore"},
    "paused": {**COMPETITIVE, "customCvars": "sim_scenario pauses"},
    "lossy": {**COMPETITIVE, "customCvars": "sim_scenario log_loss"},
    "wingman": {**COMPETITIVE, "matchType": "wingman", "map": "de_vertigo"},
    "deathmatch": {**DEATHMATCH, "dmSubMode": "ffa"},
    "teams": {**DEATHMATCH, "dmSubMode": "team"},
    "casual": {"matchType": "casual", "map": "de_dust2", "maxRounds": 4},
}
CANCELED = {
    "no-show": {**COMPETITIVE, "customCvars": "sim_scenario no_show"},
    "incomplete": {**COMPETITIVE, "customCvars": "sim_scenario incomplete_roster"},
    "crashed": {**COMPETITIVE, "maxRounds": 8, "customCvars": "sim_scenario server_crash"},
    "by-user": {**SERIES, "maxRounds": 24},
}
DETECTION = (
    "```\nServer IP: 127.0.0.1:27015\nPlayer: undertow\nSteamID: 76561198000000001\nCheat Type: Aimbot\n"
    "Details: snapped 87 degrees in one tick\n```"
)
LIVE = {
    "live": {**SERIES, "maxRounds": 24},
    "live-deathmatch": {**DEATHMATCH, "dmSubMode": "ffa", "dmRoundMinutes": 30},
}


@cache
def _unpacked() -> bytes:
    return lzma.decompress((FOLDER / DATABASE).read_bytes())


def unpack(path: Path) -> None:
    path.write_bytes(_unpacked())


def main(folder: Path) -> None:
    """Play the matches and write the database into a folder."""
    from scripts import recorded_service
    from scripts.recorded_service import RecordedService, wait_until

    recorded_service.SERVERS = SERVERS
    with tempfile.TemporaryDirectory() as scratch:
        service = RecordedService(Path(scratch), secret_key=SECRET_KEY)
        try:
            ended = {name: _create(service, name, settings) for name, settings in ENDED.items()}
            wait_until(lambda: _report_cheater(service), "a detection is reported")
            wait_until(lambda: all(_server(service, one)["endedAt"] for one in ended.values()), "matches have ended")
            if failed := [name for name, one in ended.items() if _server(service, one)["reason"]]:
                raise RuntimeError(f"not finished: {', '.join(failed)}")
            canceled = {name: _create(service, name, settings) for name, settings in CANCELED.items()}
            by_user = canceled["by-user"]
            wait_until(lambda: _is_played(_server(service, by_user)), "the match is played")
            service.call("POST", f"/api/v1/servers/{by_user}/cancel")
            wait_until(lambda: all(_server(service, one)["endedAt"] for one in canceled.values()), "all are canceled")
            live = [_create(service, name, settings) for name, settings in LIVE.items()]
            wait_until(lambda: all(_is_played(_server(service, one)) for one in live), "the last matches are live")
            _copy(Path(scratch) / "data", folder / DATABASE)
        finally:
            service.close()


def _create(service: Any, name: str, settings: object) -> str:
    body = {"region": "sandbox", "gameType": "cs2", "externalMatchId": name, "gameSettings": settings}
    answer = service.call("POST", "/api/v1/matches", {**body, "callbackUrl": f"{service.proxy.url}/callback"})
    if answer.status != 201:
        raise RuntimeError(answer.text)
    server_id: str = answer.json["serverId"]
    return server_id


def _server(service: Any, server_id: str) -> dict[str, Any]:
    found: dict[str, Any] = service.call("GET", f"/api/v1/servers/{server_id}").json
    return found


def _is_played(server: dict[str, Any]) -> bool:
    match = server["match"]
    return bool(match and sum(player["kills"] for player in match["players"]) >= 5)


def _report_cheater(service: Any) -> bool:
    """Report a detection as an anti-cheat plugin does; False until the token of a match with another map is known."""
    shots = {one.path for one in service.proxy.received if one.path.startswith("/ingest/shots/")}
    paths = [path.replace("/shots/", "/anticheat/") for path in shots]
    return any(service.call("POST", path, {"content": DETECTION}, key="").status == 200 for path in paths)


def _copy(data: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(sqlite3.connect(data / "matchpod.sqlite3")) as connection:
        copied = Path(folder) / "copy.sqlite"
        connection.execute("VACUUM INTO ?", (str(copied),))
        _shorten(copied)
        target.write_bytes(lzma.compress(copied.read_bytes(), preset=9))


def _shorten(path: Path) -> None:
    """Delete the logs of most ended matches, as after their retention: they are most of the file."""
    with closing(sqlite3.connect(path)) as connection:
        with connection:
            connection.execute(
                "DELETE FROM raw_log WHERE server_id IN ("
                " SELECT id FROM servers WHERE ended_at_ms IS NOT NULL AND external_match_id NOT IN ('wingman', 'teams'))"
            )
        connection.execute("VACUUM")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
