"""Configure a server for its match over RCON, and verify that the configuration took effect.

The configuration took effect if the console answers, the map is correct, the settings are read back with the expected
values, and a log post with the token of the match was stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from cs2_protocol import console_answers as answers
from cs2_protocol import console_commands
from cs2_protocol.rcon import MAX_COMMAND_BYTES
from matchpod.core.failures import Failure
from matchpod.core.model import GameSettings
from matchpod.core.servers.log_addresses import log_tokens_in
from matchpod.cs2 import match_commands
from matchpod.ports import ConsoleLostError, SlotInUseError
from matchpod.service.ingest.posts import TOKEN_HEADER
from matchpod.service.match_log import entries
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import settings_of
from matchpod.service.match_log.replay import replay
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.deps import Deps
from matchpod.service.runner.lease import Lease
from matchpod.storage import raw_log, servers

FIRST_POLL_S: Final = 0.01
POLL_S: Final = 0.2
"""Maximum interval in seconds at which a server is polled until it is ready. The first intervals are shorter."""

PLUGIN_S: Final = 20.0
"""Timeout in seconds for the plugin's answer, and then for its match to be loaded. The plugin fetches the match from
the service, and may load a map."""

_ASK_LOAD: Final = (console_commands.STATUS_JSON, console_commands.STATUS)

MAX_SHOWN_CHARS: Final = 100
"""Maximum number of characters that an error quotes of a console variable's value. Expected values are shorter, but a
server may return anything."""


class ConfigurationError(Exception):
    """The server could not be configured. The message says what is wrong, for operators."""

    def __init__(self, message: str, failure: Failure) -> None:
        super().__init__(message)
        self.failure = failure


def is_map(settings: GameSettings, number: int, name: str | None) -> bool:
    """True if `name` is the map with this number in the match.

    The name that a server reports for a workshop map cannot be predicted, so any name is accepted. Whether the workshop
    map was loaded is checked by other means: for the first map in `_wait_for_load`, for later maps by the log.
    """
    wanted = settings.maps[number - 1]
    return bool(name) and (name == wanted or wanted.startswith("workshop/"))


async def configure(lease: Lease, deps: Deps, line: ConsoleLine, *, is_fresh: bool) -> None:
    """Make the server ready for its players. Raise ConfigurationError or ConsoleError if that fails."""
    settings = deps.settings_of(lease.row)
    if not is_fresh and lease.row.changed_cvars is None:
        await _clear_other_match(line)
        await lease.change(changed_cvars=msgspec.json.encode(await _read_cvars(line, settings)))
    await wait_for_answer(line)
    tokens = deps.tokens_of(lease.row)
    url = deps.urls_of(lease.row).logs(tokens.log)
    if await _is_configured(lease, deps, line):
        await redirect_log(line, url)  # configured by an interrupted attempt; play may have begun
        await _finish(lease, deps, line)
        return
    was_loaded = match_commands.uses_plugin_match(settings) and await _end_plugin_match(lease, deps, line)
    if uploads := demo_commands(lease, deps, settings):
        await line.run_all(uploads)
    await _load_map(line, settings, is_fresh=is_fresh, begins_s=deps.intervals.load_begins_s)
    listeners = await _log_listeners(line)
    if not is_fresh and not all(map(lease.owns_log, log_tokens_in(listeners))):
        raise SlotInUseError("another match began to use the server while its map was loaded")
    if was_loaded or url not in listeners:
        await _begin_log(lease, deps)
        if url not in listeners:
            await add_log_address(line, url)
        await _remove_others(line, listeners, url)
    if match_commands.uses_plugin_match(settings):
        # Append this entry before the plugin gets its match. The match contains the settings, and begins as soon as all
        # players are ready.
        await _mark(lease, deps, EntryKind.CONFIGURED)
        await _load_plugin_match(line, deps, lease, token=tokens.report)
    await apply_settings(line, settings)
    if match_commands.uses_plugin_match(settings):
        await _mark(lease, deps, EntryKind.PREPARED)
    await _prove(line, settings)
    await _finish(lease, deps, line)
    if not match_commands.uses_plugin_match(settings):
        await _mark(lease, deps, EntryKind.CONFIGURED)  # play after the restart counts
    await line.run_all(match_commands.restart_commands(settings))


def demo_commands(lease: Lease, deps: Deps, settings: GameSettings) -> tuple[str, ...]:
    """Return the commands that make a server upload its demos; no commands if no demos are recorded."""
    url = deps.urls_of(lease.row).demos
    if url is None or not settings.record_demo:
        return ()
    token = deps.tokens_of(lease.row).report
    return console_commands.demo_upload_commands(url, header_name=TOKEN_HEADER, header_value=token)


async def _begin_log(lease: Lease, deps: Deps) -> None:
    """Ignore all entries so far, because they are from a replaced server or from an earlier attempt."""
    log_from_seq, log_from_bytes = await raw_log.head(deps.db, lease.row.id)
    await lease.change(log_from_seq=log_from_seq, log_from_bytes=log_from_bytes)
    await _mark(lease, deps, EntryKind.CONFIGURING)


def _pauses() -> Iterator[float]:
    """Yield the intervals between polls in seconds, forever."""
    pause_s = FIRST_POLL_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, POLL_S)


async def _mark(lease: Lease, deps: Deps, kind: EntryKind) -> None:
    """Append an entry without a body, such as CONFIGURED, to the log. LeaseLostError if the lease is lost."""
    row = lease.row
    entry = entries.mark(row.id, kind, deps.clock.now_ms())
    await lease.write([servers.check_fence(row.id, row.fence), *entry])


async def _clear_other_match(line: ConsoleLine) -> None:
    """Clean up the server after an earlier match, or after a failed attempt to start this match."""
    await wait_for_answer(line)
    # On a server without the plugin, the first command is unknown and has no effect.
    for command in (console_commands.end_match_command(), console_commands.REMOVE_LOG_LISTENERS):
        with suppress(ConsoleLostError):  # the plugin may load a map when its match ends
            await line.run(command)
    await wait_for_answer(line)


async def _end_plugin_match(lease: Lease, deps: Deps, line: ConsoleLine) -> bool:
    """End a match that an earlier attempt loaded into the plugin. False if play cannot have begun."""
    status = await line.ask(console_commands.PLUGIN_STATUS, answers.parse_get5_status)
    if status is None or not status.has_match:
        # An earlier attempt may have stopped between the CONFIGURED entry and loading the match into the plugin. Then
        # players may have joined and played without the plugin.
        return await _has_entry(lease, deps, EntryKind.CONFIGURED)
    with suppress(ConsoleLostError):  # the plugin may load a map when its match ends
        await line.run(console_commands.end_match_command())
    return True


async def restore_cvars(lease: Lease, line: ConsoleLine) -> None:
    """Restore the console variables (cvars) that this match changed on a server that other matches will reuse."""
    before = msgspec.json.decode(lease.row.changed_cvars or b"{}", type=dict[str, str])
    for name, value in before.items():
        try:
            command = console_commands.set_command(name, value)
        except ValueError:
            continue  # no command can contain the old value
        await line.run(command)
    if lease.row.changed_cvars is not None and settings_of(lease.row).record_demo:
        await line.run(console_commands.end_demo_uploads_command())


async def _read_cvars(line: ConsoleLine, settings: GameSettings) -> dict[str, str]:
    await wait_for_answer(line)
    names = tuple(cvar.name for cvar in settings.custom_cvars)
    found = await _cvars(line, names + match_commands.TV_CVARS if settings.record_demo else names)
    # Longer values cannot be restored, because they do not fit into a command.
    return {cvar.name: cvar.value for cvar in found if cvar is not None and len(cvar.value) <= MAX_COMMAND_BYTES}


async def _cvars(line: ConsoleLine, names: Sequence[str]) -> list[answers.CvarValue | None]:
    """Read console variables (cvars); None for variables that the server does not know."""
    return _parse_cvars(names, await line.run_all(names))


def _parse_cvars(names: Sequence[str], texts: Sequence[str]) -> list[answers.CvarValue | None]:
    return [answers.parse_cvar(text, name) for name, text in zip(names, texts, strict=True)]


async def current_map(line: ConsoleLine) -> str | None:
    """Return the server's current map; None if the answer of its console contains no map."""
    status = await line.ask(console_commands.STATUS_JSON, answers.parse_status_json)
    return status.map if status else None


async def tv_port(line: ConsoleLine) -> int | None:
    """Return the server's GOTV port; None if the server does not report a port."""
    (found,) = await _cvars(line, (match_commands.TV_PORT,))
    return int(found.value) if found is not None and found.value.isascii() and found.value.isdecimal() else None


async def redirect_log(line: ConsoleLine, url: str) -> None:
    """Make the server send its log to this process: add the log address, and remove those of earlier processes."""
    listeners = await _log_listeners(line)
    if url not in listeners:
        await add_log_address(line, url)
    await _remove_others(line, listeners, url)


async def add_log_address(line: ConsoleLine, url: str) -> None:
    """Switch the log on and register the log address. ConfigurationError if the server rejects the address."""
    # Switch the log on because the server may have been restarted. The next post then shows the restart.
    _, _, listeners = await line.run_all(
        (console_commands.LOG_ON, console_commands.log_address_command(url), console_commands.LOG_LISTENERS)
    )
    if url not in answers.parse_log_listeners(listeners):
        raise ConfigurationError("the server rejected the log address", Failure.LOG_MISSING)


async def _remove_others(line: ConsoleLine, listeners: Sequence[str], url: str) -> None:
    _, _, token = url.rpartition("/")
    for listener in listeners:
        if listener != url and listener.endswith(f"/{token}"):
            await line.run(console_commands.remove_log_address_command(listener))


async def apply_settings(line: ConsoleLine, settings: GameSettings, *, map_number: int = 1) -> None:
    """Apply all settings that were reset when this map was loaded."""
    await line.run_all(match_commands.match_commands(settings, map_number=map_number))


async def wrong_settings(line: ConsoleLine, settings: GameSettings) -> list[str]:
    """Return a description of each console variable whose value differs from the settings."""
    expected = match_commands.expected_cvars(settings)
    wrong = []
    for (name, wanted), found in zip(expected.items(), await _cvars(line, tuple(expected)), strict=True):
        if found is None or not found.equals(wanted):
            wrong.append(f"{name} is {found.value[:MAX_SHOWN_CHARS] if found else 'unknown'}, not {wanted}")
    return wrong


class _Load(msgspec.Struct, frozen=True):
    """Identifies a map load, to find out whether the map was loaded again."""

    map: str | None
    spawn_count: int | None
    """The server's spawn count, which changes with each map load; None if the server does not report it."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Load:
        """Parse the answers to `_ASK_LOAD`."""
        status_json, status = texts
        found = answers.parse_status_json(status_json)
        return cls(found.map if found else None, answers.parse_spawn_count(status))

    def differs(self, before: _Load) -> bool:
        """True if this is certainly a different map load than `before`, possibly of the same map."""
        counts = (before.spawn_count, self.spawn_count)
        is_other_map = before.map is not None and self.map != before.map
        return is_other_map or (None not in counts and counts[0] != counts[1])


async def _load_map(line: ConsoleLine, settings: GameSettings, *, is_fresh: bool, begins_s: float) -> None:
    *before, load = match_commands.setup_commands(settings, map_name=settings.maps[0])
    mode: tuple[str, ...] = console_commands.MODE_CVARS
    if settings.record_demo:
        mode = (*mode, match_commands.BROADCAST)
    found = await line.run_all((*mode, *before, *mode, *_ASK_LOAD))
    had_mode, has_mode = (_parse_cvars(mode, part) for part in (found[: len(mode)], found[-len(mode) - 2 : -2]))
    previous = _Load.of(found[-2:])
    if is_fresh and had_mode == has_mode and is_map(settings, 1, previous.map):
        return  # started with the right map, mode and GOTV setting
    with suppress(ConsoleLostError):
        await line.run(load)
    await _wait_for_load(line, settings, previous, begins_s=begins_s)


async def _wait_for_load(line: ConsoleLine, settings: GameSettings, previous: _Load, *, begins_s: float) -> None:
    """Wait until the first map was loaded after `previous`. Lost connections are reopened; the caller sets the timeout.

    The console answers as soon as the map is loaded; in real logs, the first post follows more than a second later. If
    neither map nor spawn count has changed, the load counts as begun after `begins_s`. This does not apply to workshop
    maps, because a server stays on the old map while it downloads one. There, only a lost connection shows the
    beginning.
    """
    loop, is_workshop, was_lost = asyncio.get_running_loop(), settings.maps[0].startswith("workshop/"), False
    begun_s = loop.time() + begins_s
    for pause_s in _pauses():
        try:
            found = await line.ask_all(_ASK_LOAD, _Load.of)
        except ConsoleLostError:
            was_lost = True
        else:
            has_begun = found.differs(previous) or (was_lost if is_workshop else loop.time() >= begun_s)
            if has_begun and is_map(settings, 1, found.map):
                return
        await asyncio.sleep(pause_s)


async def _wait_for_map(line: ConsoleLine, settings: GameSettings, number: int) -> None:
    """Wait until the server reports the match's map with this number. The caller sets the timeout."""
    for pause_s in _pauses():
        with suppress(ConsoleLostError):
            if is_map(settings, number, await current_map(line)):
                return
        await asyncio.sleep(pause_s)


async def wait_for_answer(line: ConsoleLine) -> None:
    """Wait until the console reports a map. Lost connections are reopened; the caller sets the timeout."""
    for pause_s in _pauses():
        with suppress(ConsoleLostError):
            if await current_map(line):
                return
        await asyncio.sleep(pause_s)


async def _is_log_stored(lease: Lease, deps: Deps, line: ConsoleLine, *, has_begun: bool) -> bool:
    """True if the server posts its log to this process, or if play has begun and another process stores its posts.

    A post that is stored within the timeout proves that another process stores them.
    """
    seq, _ = await raw_log.head(deps.db, lease.row.id)
    listeners = await _log_listeners(line)
    if deps.urls_of(lease.row).logs(deps.tokens_of(lease.row).log) in listeners:
        return True
    if not (has_begun and any(map(lease.owns_log, log_tokens_in(listeners)))):
        return False
    try:
        async with asyncio.timeout(deps.intervals.first_log_s):
            await _wait_for_post(lease, deps, after_seq=seq)
    except TimeoutError:
        return False
    return True


async def _log_listeners(line: ConsoleLine) -> tuple[str, ...]:
    return await line.ask(console_commands.LOG_LISTENERS, answers.parse_log_listeners)


async def _load_plugin_match(line: ConsoleLine, deps: Deps, lease: Lease, *, token: str) -> None:
    load = console_commands.load_match_command(
        deps.urls_of(lease.row).match, header_name=TOKEN_HEADER, header_value=token
    )
    answer = ""
    with suppress(ConsoleLostError):  # the plugin may load the map right away
        answer = await line.run(load, timeout_s=PLUGIN_S)
    if answers.unknown_commands(answer):
        unknown = "the server does not know the commands of the match plugin; is MatchZy installed?"
        raise ConfigurationError(unknown, Failure.PLUGIN_FAILED)
    try:
        async with asyncio.timeout(PLUGIN_S):
            for pause_s in _pauses():
                if await _plugin_match(line, lease.row.plugin_match_id):
                    break
                await asyncio.sleep(pause_s)
    except TimeoutError as exc:
        raise ConfigurationError("the match plugin did not load the match", Failure.PLUGIN_FAILED) from exc


async def _plugin_match(line: ConsoleLine, match_id: int) -> answers.Get5Status | None:
    """Return the plugin's status; None if the plugin has not loaded this match, or the console was lost."""
    try:
        status = await line.ask(console_commands.PLUGIN_STATUS, answers.parse_get5_status)
    except ConsoleLostError:
        return None
    return status if status is not None and status.has_match and status.match_id == str(match_id) else None


async def was_played(lease: Lease, deps: Deps) -> bool:
    """True if the match is already over, because it was played after an attempt to start it was interrupted.

    This call may take minutes, because it waits while another match's entries are tried (`suspects.py`).
    """
    row = lease.row
    if not await _may_have_begun(lease, deps):
        return False
    region = deps.regions.get(row.region)
    speed = region.speed if region else 1.0
    async with deps.suspects.resuming(row, speed, from_start=True):
        fold = await replay(deps.db, row, speed, turns=deps.turns)
    return fold.is_over


async def _may_have_begun(lease: Lease, deps: Deps) -> bool:
    """True if the server has certainly received the settings of the match, so that a game on it may be this match.

    With the plugin, the CONFIGURED entry precedes the load of the match, so it is not enough. A PREPARED entry or a
    report of the plugin must have followed: the plugin gets the address for reports with the match.
    """
    if not await _has_entry(lease, deps, EntryKind.CONFIGURED):
        return False
    return (
        not match_commands.uses_plugin_match(settings_of(lease.row))
        or await _has_entry(lease, deps, EntryKind.PREPARED)
        or await _has_entry(lease, deps, EntryKind.REPORT)
    )


async def _has_entry(lease: Lease, deps: Deps, kind: EntryKind) -> bool:
    """True if the log has an entry of this kind from the current attempt (from its server or from the service)."""
    row = lease.row
    return await raw_log.has_kind(deps.db, row.id, kind, after_seq=row.log_from_seq, attempt=row.attempt)


async def _is_configured(lease: Lease, deps: Deps, line: ConsoleLine) -> bool:
    """True if the match is loaded in the plugin, the server has all settings, and its log is being stored."""
    row, settings = lease.row, deps.settings_of(lease.row)
    if not match_commands.uses_plugin_match(settings) or not await _has_entry(lease, deps, EntryKind.CONFIGURED):
        return False
    status = await _plugin_match(line, row.plugin_match_id)
    if status is None or not await _is_log_stored(lease, deps, line, has_begun=status.has_begun):
        return False
    # Variables that hold the warmup have other values during play.
    is_prepared = status.has_begun or await _has_entry(lease, deps, EntryKind.PREPARED)
    return is_prepared or not await wrong_settings(line, settings)


async def _finish(lease: Lease, deps: Deps, line: ConsoleLine) -> None:
    """Wait for the first log post, and set the URL to which the server reports shots."""
    row = lease.row
    try:
        async with asyncio.timeout(deps.intervals.first_log_s):
            await _wait_for_post(lease, deps, after_seq=row.log_from_seq)
    except TimeoutError as exc:
        missing = "no log post arrived; can the server reach our log URL?"
        raise ConfigurationError(missing, Failure.LOG_MISSING) from exc
    shots_url = deps.urls_of(row).shots(deps.tokens_of(row).report)
    await line.run(console_commands.set_command(match_commands.SHOTS_ADDRESS, shots_url))


async def _wait_for_post(lease: Lease, deps: Deps, *, after_seq: int) -> None:
    """Wait until the log has a post of this attempt after `after_seq`. The caller sets the timeout."""
    row = lease.row
    for pause_s in _pauses():
        if await raw_log.has_kind(deps.db, row.id, EntryKind.LOG, after_seq=after_seq, attempt=row.attempt):
            return
        await asyncio.sleep(pause_s)


async def _prove(line: ConsoleLine, settings: GameSettings) -> None:
    await _wait_for_map(line, settings, 1)  # in case the plugin has reloaded the map
    wrong = await wrong_settings(line, settings)
    if wrong:
        await apply_settings(line, settings)
        wrong = await wrong_settings(line, settings)
    if wrong:
        rejected = "settings rejected by the server: " + "; ".join(wrong)
        raise ConfigurationError(rejected, Failure.SETTINGS_REJECTED)
