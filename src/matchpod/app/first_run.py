"""Create the first organization and API key, and show the key with a link to the console and commands to try.

This is done only if the database has no organization. The key is shown once, because only its hash is stored. It is
printed on the terminal. Without a terminal, it is written into a file that only the owner can read, because the output
often goes to a log that more people can read. A program that sets up an installation can generate the key itself and
pass it in a file.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
from pathlib import Path
from typing import Final

from matchpod.adapters.private_files import open_private
from matchpod.service.access.console_sessions import ConsoleSessions, login_url
from matchpod.service.access.organizations import KEY_PREFIX, Access, AccessError, is_key_text

ORGANIZATION: Final = "demo"
KEY_FILE: Final = "first-key.txt"
"""Name of the file in the data folder to which the first key is written."""
EXTERNAL_ID: Final = "demo-1"
LISTENER: Final = "http://127.0.0.1:9000/"
"""The URL at which `matchpod listen` receives callbacks by default."""

MIN_DIFFERENT_CHARACTERS: Final = 12
"""Minimum number of different characters in a key. A random key has about 30; a key with fewer than 12 was typed by a
person, and could be guessed."""

_MAX_FILE_BYTES: Final = 1_000
"""Maximum number of bytes to read from the file with the first key; more than a key needs."""
_FIRST_PLAYER: Final = 76561198000000001
_TEAM_SIZE: Final = 5
_FIND_SERVER_ID: Final = """sed 's/.*"serverId":"\\([^"]*\\)".*/\\1/'"""


_log = logging.getLogger(__name__)


class FirstKeyError(Exception):
    """The file with the first key cannot be used. The message is a sentence for the operator."""


async def create_first_key(access: Access) -> str | None:
    """Create the first organization and return its key; return None if an organization exists."""
    if await access.organizations():
        return None
    try:
        return (await access.create_organization_with_key(ORGANIZATION, key_name="first key")).text
    except AccessError:
        return None  # another process has started at the same moment, and shows its key


async def create_key_from_file(access: Access, path: Path) -> None:
    """Create the first organization with the key in this file; do nothing if an organization exists.

    Raise FirstKeyError if the file cannot be used at the first start. At later starts, the file may be missing, or have
    an old key.
    """
    is_first = not await access.organizations()
    try:
        text = _read_key(path)
    except FirstKeyError as exc:
        if is_first:
            raise
        _log.warning("file with the first API key ignored: no longer needed", extra={"reason": str(exc)})
        return
    if is_first:
        try:
            await access.create_organization_with_key(ORGANIZATION, key_name="first key", text=text)
        except AccessError:
            pass  # another process has started at the same moment
        else:
            _log.info("first API key created from a file", extra={"file": path, "organization": ORGANIZATION})
    if not await access.is_active_key(text):
        hint = "it is used at the first start only; create keys with: matchpod keys create, or matchpod keys rotate"
        _log.warning("key in the file with the first API key does not work", extra={"file": path, "hint": hint})


async def create_first_link(access: Access, sessions: ConsoleSessions, *, base_url: str) -> str:
    """Return a link with which the owner of the first organization opens the console."""
    (org_id,) = [organization.id for organization in await access.organizations() if organization.name == ORGANIZATION]
    return login_url(base_url, await sessions.create_link(org_id))


async def another_key_text(access: Access, *, command: str, has_console: bool) -> str:
    """Return the commands for another key and another link to the console, to be shown at all starts but the first."""
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
    """Write the text, which contains the key, into a file that only its owner can read; return the path of the file."""
    path = folder / KEY_FILE
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:
        file.write(text)
    return path


def welcome_text(
    key: str, *, link: str | None, base_url: str, region: str, command: str, has_callback: bool = True
) -> str:
    """Return the text that shows the key, the link to the console (if there is one), and commands to try.

    `command` is how to run this program. `has_callback` is False if callbacks must not be sent to this machine.
    """
    authorization = f"-H 'Authorization: Bearer {key}'"
    body = json.dumps(_match_body(region, has_callback=has_callback))
    return f"""
The organization "{ORGANIZATION}" was created. Its API key is shown only once:

    {key}
{"" if link is None else _link_text(link, command)}{_listen_text(command) if has_callback else ""}
Create a match and read its state:

    curl -s {base_url}/api/v1/matches {authorization} -H 'Content-Type: application/json' -d '{body}'

    curl -s {base_url}/api/v1/matches/{EXTERNAL_ID} {authorization}

Poll its live state by serverId:

    SERVER=$(curl -s {base_url}/api/v1/matches/{EXTERNAL_ID} {authorization} | {_FIND_SERVER_ID})

    curl -s {base_url}/api/v1/servers/$SERVER {authorization}
"""


def _read_key(path: Path) -> str:
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_FILE_BYTES).decode("ascii", errors="replace").strip()
    except OSError as exc:
        raise FirstKeyError(f"The first API key cannot be read from the file {path}: {exc.strerror or exc}.") from exc
    if not is_key_text(text):
        raise FirstKeyError(
            f"The file {path} has no API key: it must contain {KEY_PREFIX} and 43 letters, digits, - and _, and nothing"
            " else."
        )
    if len(set(text.removeprefix(KEY_PREFIX))) < MIN_DIFFERENT_CHARACTERS:
        raise FirstKeyError(f"The API key in the file {path} is not random: others could guess it. Make a new one.")
    return text


def _link_text(link: str, command: str) -> str:
    return f"""
Open the console in a browser (the link works once, for 5 minutes):

    {link}

Print a new link later:

    {command} console
"""


def _listen_text(command: str) -> str:
    return f"""
Receive the callback in another terminal:

    {command} listen
"""


def _match_body(region: str, *, has_callback: bool) -> dict[str, object]:
    players = [str(_FIRST_PLAYER + number) for number in range(2 * _TEAM_SIZE)]
    teams = {
        "team1": {"name": "Reds", "players": players[:_TEAM_SIZE]},
        "team2": {"name": "Blues", "players": players[_TEAM_SIZE:]},
    }
    return {
        "region": region,
        "gameType": "cs2",
        "externalMatchId": EXTERNAL_ID,
        **({"callbackUrl": LISTENER} if has_callback else {}),
        "gameSettings": {"matchType": "competitive", "map": "de_mirage", "teams": teams},
    }
