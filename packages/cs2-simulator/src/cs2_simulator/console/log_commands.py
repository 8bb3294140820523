"""Console commands that control the log: `log` and `logaddress_*_http`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cs2_protocol.log_lines.world_lines import LogFileClosed, LogFileStarted
from cs2_simulator.console.parts import Command, ServerParts, lines
from cs2_simulator.console.statements import ConsoleStatement
from cs2_simulator.console.status import BUILD
from cs2_simulator.setup_faults import SetupFault

MAX_DELAY_S = 3600.0
"""Maximum delay of a log listener in seconds: one hour, longer than usual broadcast delays."""


def _log(parts: ServerParts, statement: ConsoleStatement) -> str:
    argument = statement.args[0].lower() if statement.args else ""
    if argument in ("on", "1"):
        parts.stream.is_on = True
        parts.visitors.restart_countdown()
        if parts.arena.variables.is_on("sv_logfile"):
            # Every `log on` opens a new file, even if the log is already on.
            parts.arena.log.write(LogFileStarted(_file_name(parts), "csgo", str(BUILD)))
        return lines("Server logging enabled.")
    if argument in ("off", "0"):
        if parts.arena.variables.is_on("sv_logfile"):
            parts.arena.log.write(LogFileClosed())
        parts.stream.is_on = False
        parts.visitors.restart_countdown()
        return lines("Server logging disabled.")
    state = "currently logging" if parts.stream.is_on else "not currently logging"
    return lines("Usage:  log < on | off >", state)


def _file_name(parts: ServerParts) -> str:
    return f"{parts.arena.variables.text('sv_logsdir')}/{parts.arena.agenda.now_ms // 1000}.log"


def _add(parts: ServerParts, statement: ConsoleStatement) -> str:
    # A URL without quotes is split at its colon, and its slashes start a comment.
    if len(statement.args) != 1:
        return lines(
            f'{statement.name}: Invalid parameters, must be URI of a listener wrapped in quotes, eg "http://…"'
        )
    return _add_listener(parts, statement.args[0], 0)


def _add_delayed(parts: ServerParts, statement: ConsoleStatement) -> str:
    delay_s = _seconds(statement.args[0]) if len(statement.args) == 2 else None
    if delay_s is None:
        return lines(f"{statement.name}: Invalid parameters, must be a delay in seconds and a URI wrapped in quotes")
    return _add_listener(parts, statement.args[1], int(delay_s * 1000))


def _add_listener(parts: ServerParts, url: str, delay_ms: int) -> str:
    if parts.arena.setup_fault is SetupFault.LOG_NOT_KEPT:
        return ""
    parts.stream.add(url, delay_ms)
    if not parts.has_plugin_match():
        parts.visitors.expect_anyone()
    return ""


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds <= MAX_DELAY_S else None


def _remove(parts: ServerParts, statement: ConsoleStatement) -> str:
    if len(statement.args) != 1:
        return lines(f"{statement.name}: Invalid parameters, must be URI of a listener wrapped in quotes")
    if not parts.stream.remove(statement.args[0]):
        return lines(f"{statement.name}: no listener {statement.args[0]}")
    return ""


def _remove_all(parts: ServerParts, _statement: ConsoleStatement) -> str:
    parts.stream.remove_all()
    return ""


def _list(parts: ServerParts, _statement: ConsoleStatement) -> str:
    return "".join(
        lines(
            f"{listener.url} - {'no' if listener.requested_to is None else 'has'} pending request",
            f"\tlast acknowledged tick {listener.acknowledged_tick}",
        )
        for listener in parts.stream.listeners
    )


LOG_COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        "log": Command(_log, configures=False),
        "logaddress_add_http": Command(_add),
        "logaddress_add_http_delayed": Command(_add_delayed),
        "logaddress_del_http": Command(_remove),
        "logaddress_delall_http": Command(_remove_all),
        "logaddress_list_http": Command(_list, configures=False),
    }
)
"""Commands by name."""
