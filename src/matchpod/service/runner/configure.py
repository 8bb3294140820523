"""How does a server that just started become the server of its match? Commands first, then the proof that they hold.

The proof: the console answers, the map is the one asked for, our settings are read back, and a post of the server's
log with the match's own token is stored.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import msgspec

from matchpod.core.model import GameSettings
from matchpod.cs2 import console_answers as answers
from matchpod.cs2 import console_commands as commands
from matchpod.cs2.console_answers import Get5State, LogListener
from matchpod.ports import ConsoleLostError
from matchpod.service.entries import NO_HEADERS
from matchpod.service.folding import CONFIGURED, CONFIGURING, LOG
from matchpod.service.ingest import TOKEN_HEADER
from matchpod.service.runner.claim import Claim
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.surroundings import Surroundings
from matchpod.storage import raw_log, servers

POLL_S: Final = 0.2
"""How often a server is asked whether it is ready."""

LOAD_BEGINS_S: Final = 1.0
"""A map load begins in the frame after its command; until then the old map would answer."""

PLUGIN_S: Final = 20.0
"""The plugin fetches its match from us and may load the map for it."""

LOG_S: Final = 15.0
"""A server posts its log within a second; it may first have to look up our name."""


class ConfigurationError(Exception):
    """The server does not do what it was told; the message says what."""


def is_map(settings: GameSettings, number: int, name: str | None) -> bool:
    """True when the server's map is the map of this number.

    A workshop map goes by a name there that we do not know, so any name will do: whether it is the right one cannot
    be told. That a load took place is made sure of elsewhere: here for the first map, by the match's log for others.
    """
    wanted = settings.maps[number - 1]
    return bool(name) and (name == wanted or wanted.startswith("workshop/"))


async def configure(claim: Claim, around: Surroundings, line: ConsoleLine, *, is_fresh: bool) -> None:
    """Make the server ready for its players; ConfigurationError, ConsoleError when it does not get there."""
    settings = around.settings_of(claim.row)
    if not is_fresh and claim.row.changed_cvars is None:
        await _forget_other_match(line)
        await claim.change(changed_cvars=msgspec.json.encode(await _read_cvars(line, settings)))
    await _load_map(line, settings, is_fresh=is_fresh)
    url = around.log_url(claim.row.log_token)
    if not await _is_registered(line, url):
        # What was stored until now was said by a server that was given up.
        await claim.change(log_from_seq=await raw_log.newest_seq(around.db, claim.row.id))
        await _note(claim, around, CONFIGURING)
        await register_log(line, url)
    if commands.uses_plugin_match(settings):
        # Before the plugin knows of the match: with it, it has our settings, and starts when all are ready.
        await _note(claim, around, CONFIGURED)
        await _load_plugin_match(line, around, claim)
    await apply_settings(line, settings)
    await _prove(claim, around, line, settings)
    if not commands.uses_plugin_match(settings):
        await _note(claim, around, CONFIGURED)  # before the start, which counts
    for command in commands.begin_anew_commands(settings):
        await line.run(command)


async def _note(claim: Claim, around: Surroundings, kind: str) -> None:
    """Mark a point of the set-up in the match's log; ClaimLostError when the match is no longer ours."""
    row, now_ms = claim.row, around.clock.now_ms()
    entry = raw_log.append(row.id, kind, received_ms=now_ms, headers=NO_HEADERS, body=b"")
    await claim.write([servers.hold(row.id, row.fence), *entry])


async def _forget_other_match(line: ConsoleLine) -> None:
    """Take off what somebody else's match, or a try of ours that was given up, may have left on the server."""
    await wait_for_answer(line)
    # Without the plugin the first is an unknown command, which is fine.
    for command in (commands.end_match_command(), commands.FORGET_LOGS):
        with suppress(ConsoleLostError):  # the plugin may load a map at the end of its match
            await line.run(command)
    await wait_for_answer(line)


async def restore_cvars(claim: Claim, line: ConsoleLine) -> None:
    """Give a server that is used again the values back that this match changed."""
    before = msgspec.json.decode(claim.row.changed_cvars or b"{}", type=dict[str, str])
    for name, value in before.items():
        try:
            command = commands.set_command(name, value)
        except ValueError:
            continue  # what was there cannot be said in quotes; nothing we set could
        await line.run(command)


async def _read_cvars(line: ConsoleLine, settings: GameSettings) -> dict[str, str]:
    await wait_for_answer(line)
    found = [answers.parse_cvar(await line.run(cvar.name), cvar.name) for cvar in settings.custom_cvars]
    return {one.name: one.value for one in found if one is not None}


async def current_map(line: ConsoleLine) -> str | None:
    """The map the server is on; None when its answer does not tell."""
    status = answers.parse_status_json(await line.run(commands.STATUS_JSON))
    return status.map if status else None


async def register_log(line: ConsoleLine, url: str) -> bool:
    """Have the log sent to us; True when the server did not do so before."""
    if await _is_registered(line, url):
        return False
    await line.run(commands.log_address_command(url))
    if not await _is_registered(line, url):
        raise ConfigurationError("the server does not take our log address")
    return True


async def forget_other_logs(line: ConsoleLine, url: str) -> None:
    """Stop the server from sending the log of this match to a process that is gone; ours must be registered before."""
    _, _, token = url.rpartition("/")
    for listener in await _log_listeners(line):
        if listener.uri != url and listener.uri.endswith(f"/{token}"):
            await line.run(commands.forget_log_address_command(listener.uri))


async def apply_settings(line: ConsoleLine, settings: GameSettings) -> None:
    """Set everything that a map load overwrites."""
    for command in commands.match_commands(settings):
        await line.run(command)


async def wrong_settings(line: ConsoleLine, settings: GameSettings) -> list[str]:
    """Our settings that do not hold, in words."""
    wrong = []
    for name, wanted in commands.expected_cvars(settings).items():
        found = answers.parse_cvar(await line.run(name), name)
        if found is None or not found.means(wanted):
            wrong.append(f"{name} is {found.value if found else 'unknown'}, not {wanted}")
    return wrong


async def wait_for_map(line: ConsoleLine, settings: GameSettings, number: int) -> None:
    """Return when the server answers with the map of this number; whoever calls sets the limit."""
    while True:
        with suppress(ConsoleLostError):
            if is_map(settings, number, await current_map(line)):
                return
        await asyncio.sleep(POLL_S)


async def _load_map(line: ConsoleLine, settings: GameSettings, *, is_fresh: bool) -> None:
    await wait_for_answer(line)
    *before, load = commands.setup_commands(settings, map_name=settings.maps[0])
    had_mode = await _mode(line)
    for command in before:
        await line.run(command)
    if is_fresh and had_mode == await _mode(line) and is_map(settings, 1, await current_map(line)):
        return  # it was started for this match, with this map and mode
    previous = await current_map(line)
    with suppress(ConsoleLostError):
        await line.run(load)
    if settings.maps[0].startswith("workshop/"):
        await _wait_for_other_map(line, previous)
    else:
        await asyncio.sleep(LOAD_BEGINS_S)
    await wait_for_map(line, settings, 1)


async def _wait_for_other_map(line: ConsoleLine, previous: str | None) -> None:
    """Return when a load has begun: a server that downloads first, or never gets the item, stays as it is.

    The same map loaded again has the same name; then the console that is cut off meanwhile is the sign.
    """
    with suppress(ConsoleLostError):
        while await current_map(line) == previous:
            await asyncio.sleep(POLL_S)


async def wait_for_answer(line: ConsoleLine) -> None:
    """Return when the server answers with a map, however often it cuts us off; whoever calls sets the limit."""
    while True:
        with suppress(ConsoleLostError):
            if await current_map(line):
                return
        await asyncio.sleep(POLL_S)


async def _mode(line: ConsoleLine) -> tuple[str, ...]:
    found = [answers.parse_cvar(await line.run(name), name) for name in commands.MODE_CVARS]
    return tuple(one.value if one else "" for one in found)


async def _is_registered(line: ConsoleLine, url: str) -> bool:
    return any(listener.uri == url for listener in await _log_listeners(line))


async def _log_listeners(line: ConsoleLine) -> tuple[LogListener, ...]:
    return answers.parse_log_listeners(await line.run(commands.LOG_LISTENERS))


async def _load_plugin_match(line: ConsoleLine, around: Surroundings, claim: Claim) -> None:
    load = commands.load_match_command(around.match_url, header_name=TOKEN_HEADER, header_value=claim.row.report_token)
    answer = ""
    with suppress(ConsoleLostError):  # it may load the map at once
        answer = await line.run(load, timeout_s=PLUGIN_S)
    if answers.unknown_commands(answer):
        raise ConfigurationError("the server does not know the match plugin's commands: MatchZy is not installed")
    try:
        async with asyncio.timeout(PLUGIN_S):
            while not await _has_plugin_match(line, claim.row.plugin_match_id):
                await asyncio.sleep(POLL_S)
    except TimeoutError as exc:
        raise ConfigurationError("the match plugin did not load the match") from exc


async def _has_plugin_match(line: ConsoleLine, match_id: int) -> bool:
    try:
        status = answers.parse_get5_status(await line.run(commands.PLUGIN_STATUS))
    except ConsoleLostError:
        return False
    return status is not None and status.state is not Get5State.NONE and status.match_id == str(match_id)


async def _prove(claim: Claim, around: Surroundings, line: ConsoleLine, settings: GameSettings) -> None:
    await wait_for_map(line, settings, 1)  # the plugin may have loaded it again
    wrong = await wrong_settings(line, settings)
    if wrong:
        await apply_settings(line, settings)
        wrong = await wrong_settings(line, settings)
    if wrong:
        raise ConfigurationError("settings do not hold: " + "; ".join(wrong))
    try:
        async with asyncio.timeout(LOG_S):
            while not await raw_log.has_kind(around.db, claim.row.id, LOG, after_seq=claim.row.log_from_seq):
                await asyncio.sleep(POLL_S)
    except TimeoutError as exc:
        raise ConfigurationError("no log came from the server; can it reach us at our public address?") from exc
