"""Create the first organization and API key, and show commands to try the service with.

Runs only if the database has no organization. The key is shown once, since only its hash is stored: on the terminal, or
in a file for its owner only. Without a terminal, output often goes to a log that more people can read.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Final

from matchpod.adapters.private_files import open_private
from matchpod.service.access import Access, AccessError

ORGANIZATION: Final = "demo"
KEY_FILE: Final = "first-key.txt"
"""The file in the data folder with the first key."""
EXTERNAL_ID: Final = "demo-1"
LISTENER: Final = "http://127.0.0.1:9000/"
"""The default address of `matchpod listen`."""

_FIRST_PLAYER: Final = 76561198000000001
_TEAM_SIZE: Final = 5
_FIND_SERVER_ID: Final = """sed 's/.*"serverId":"\\([^"]*\\)".*/\\1/'"""


async def create_first_key(access: Access) -> str | None:
    """Create an organization and return its key; None if there already is an organization."""
    if await access.organizations():
        return None
    try:
        return (await access.create_organization_with_key(ORGANIZATION, key_name="first key")).text
    except AccessError:
        return None  # another process started at the same moment and shows its key


async def another_key_text(access: Access, *, command: str) -> str:
    """Return how to get a key if the first one was shown at an earlier start."""
    names = [organization.name for organization in await access.organizations()]
    name = ORGANIZATION if ORGANIZATION in names else names[0]
    return f"""
API keys are shown only once. To create another one:

    {command} keys create --org {shlex.quote(name)} --role owner
"""


def write_key_file(folder: Path, text: str) -> Path:
    """Write the text with the key into a file that only its owner can read, and return its path."""
    path = folder / KEY_FILE
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:
        file.write(text)
    return path


def welcome_text(key: str, *, base_url: str, region: str, command: str) -> str:
    """Return the text to show with the key; `command` is how to run this program."""
    authorization = f"-H 'Authorization: Bearer {key}'"
    body = json.dumps(_match_body(region))
    return f"""
The organization "{ORGANIZATION}" was created. Its API key is shown only once:

    {key}

Receive the callback in another terminal:

    {command} listen

Create a match and read its state:

    curl -s {base_url}/api/v1/matches {authorization} -H 'Content-Type: application/json' -d '{body}'

    curl -s {base_url}/api/v1/matches/{EXTERNAL_ID} {authorization}

Poll its live state by serverId:

    SERVER=$(curl -s {base_url}/api/v1/matches/{EXTERNAL_ID} {authorization} | {_FIND_SERVER_ID})

    curl -s {base_url}/api/v1/servers/$SERVER {authorization}
"""


def _match_body(region: str) -> dict[str, object]:
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
