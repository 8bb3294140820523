"""Create the first organization and API key, and show them with a link to the console and commands to try.

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
from matchpod.service.access.console_sessions import ConsoleSessions, login_url
from matchpod.service.access.organizations import Access, AccessError

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


async def create_first_link(access: Access, sessions: ConsoleSessions, *, base_url: str) -> str:
    """Return a link to the console for the owner of the organization that `create_first_key` created."""
    (org_id,) = [one.id for one in await access.organizations() if one.name == ORGANIZATION]
    return login_url(base_url, await sessions.create_link(org_id))


async def another_key_text(access: Access, *, command: str, has_console: bool) -> str:
    """Return how to get a key, and a link to the console, if the first ones were shown at an earlier start."""
    names = [organization.name for organization in await access.organizations()]
    name = ORGANIZATION if ORGANIZATION in names else names[0]
    option = f"--org {shlex.quote(name)}"
    text = f"""
API keys are shown only once. To create another one:

    {command} keys create {option} --role owner
"""
    if not has_console:
        return text
    return f"""{text}
To open the console in a browser, print a link:

    {command} console{"" if len(names) == 1 else f" {option}"}
"""


def write_key_file(folder: Path, text: str) -> Path:
    """Write the text with the key into a file that only its owner can read, and return its path."""
    path = folder / KEY_FILE
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:
        file.write(text)
    return path


def welcome_text(key: str, *, link: str | None, base_url: str, region: str, command: str) -> str:
    """Return the text to show with the key, and with a link to the console if there is one.

    `command` is how to run this program.
    """
    authorization = f"-H 'Authorization: Bearer {key}'"
    body = json.dumps(_match_body(region))
    return f"""
The organization "{ORGANIZATION}" was created. Its API key is shown only once:

    {key}
{"" if link is None else _link_text(link, command)}
Receive the callback in another terminal:

    {command} listen

Create a match and read its state:

    curl -s {base_url}/api/v1/matches {authorization} -H 'Content-Type: application/json' -d '{body}'

    curl -s {base_url}/api/v1/matches/{EXTERNAL_ID} {authorization}

Poll its live state by serverId:

    SERVER=$(curl -s {base_url}/api/v1/matches/{EXTERNAL_ID} {authorization} | {_FIND_SERVER_ID})

    curl -s {base_url}/api/v1/servers/$SERVER {authorization}
"""


def _link_text(link: str, command: str) -> str:
    return f"""
Open the console in a browser (the link works once, for 5 minutes):

    {link}

Print a new link later:

    {command} console
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
