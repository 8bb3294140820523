"""What does somebody see who starts the service for the first time? A key, and commands that work as pasted.

Only a database without any organization is new; what is shown is shown once, since only the key's hash is stored.
"""

from __future__ import annotations

import json
from typing import Final

from matchpod.service.access import Access, AccessError

ORGANIZATION: Final = "demo"
EXTERNAL_ID: Final = "demo-1"
LISTENER: Final = "http://127.0.0.1:9000/"
"""Where `matchpod listen` waits for callbacks."""

_FIRST_PLAYER: Final = 76561198000000001
_TEAM_SIZE: Final = 5
_FIND_SERVER_ID: Final = """sed 's/.*"serverId":"\\([^"]*\\)".*/\\1/'"""


async def first_key(access: Access) -> str | None:
    """The key of a new organization when there is none yet; None in every later run."""
    if await access.organizations():
        return None
    try:
        return (await access.found_organization(ORGANIZATION, key_name="first key")).text
    except AccessError:
        return None  # another process started at the same moment and shows its key


def welcome(key: str, *, base_url: str, region: str, command: str) -> str:
    """What is shown with the key; `command` is how this program is called here."""
    authorization = f"-H 'Authorization: Bearer {key}'"
    body = json.dumps(_match(region))
    return f"""
The organization "{ORGANIZATION}" was made for you. Its API key is shown only this once:

    {key}

Wait for the callback in another terminal:

    {command} listen

Create a match, and see how it stands:

    curl -s {base_url}/api/v1/matches {authorization} -H 'Content-Type: application/json' -d '{body}'

    curl -s {base_url}/api/v1/matches/{EXTERNAL_ID} {authorization}

Follow it live by its serverId, again and again:

    SERVER=$(curl -s {base_url}/api/v1/matches/{EXTERNAL_ID} {authorization} | {_FIND_SERVER_ID})

    curl -s {base_url}/api/v1/servers/$SERVER {authorization}
"""


def _match(region: str) -> dict[str, object]:
    players = [str(_FIRST_PLAYER + number) for number in range(2 * _TEAM_SIZE)]
    teams = {
        "team1": {"name": "Reds", "players": players[:_TEAM_SIZE]},
        "team2": {"name": "Blues", "players": players[_TEAM_SIZE:]},
    }
    return {
        "region": region,
        "gameType": "cs2",
        "externalMatchId": EXTERNAL_ID,
        "callbackUrl": LISTENER,
        "gameSettings": {"matchType": "competitive", "map": "de_mirage", "teams": teams},
    }
