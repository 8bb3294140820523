"""Limit the size of the answers to console commands: per command, to several times the size of real answers.

A compromised server may answer anything. An answer that exceeds its limit is rejected before it is collected, and no
answer within its limit is expensive to parse.
"""

from __future__ import annotations

from typing import Final

from cs2_protocol.console_commands import LOG_LISTENERS, PLUGIN_STATUS, REMOVE_LOG_LISTENERS, STATUS, STATUS_JSON

_KIB = 1024

CVAR_BYTES: Final = 4 * _KIB
"""Limit for reading a variable: a line of less than 600 bytes, and what the game prints at the same time."""

ACTION_BYTES: Final = 64 * _KIB
"""Limit for commands that do something. The game and its plugins print a few KB while they execute one."""

LOAD_BYTES: Final = 256 * _KIB
"""Limit for commands that load a map, because the game prints most during a load. The answer is not parsed."""

MAX_CALL_BYTES: Final = 512 * _KIB
"""Limit for all answers of one call: 200 variables have less than 20 KB, and `status` has at most 256 KiB."""

_LIMITS: Final = {
    STATUS: 256 * _KIB,  # 2 KB with five players; a map with many spawn groups has a line for each
    STATUS_JSON: 64 * _KIB,  # 4.6 KB with 13 clients
    PLUGIN_STATUS: 32 * _KIB,  # 1 KB
    LOG_LISTENERS: 32 * _KIB,  # 200 bytes per address
    **dict.fromkeys(("changelevel", "host_workshop_map"), LOAD_BYTES),
    **dict.fromkeys(
        ("bot_kick", "css_endmatch", "css_start", "mp_warmup_end", "mp_warmup_start", REMOVE_LOG_LISTENERS),
        ACTION_BYTES,
    ),
}
"""Limits by command name. All other commands read a variable if they are one word, else set one or do something."""


def answer_limit(command: str) -> int:
    """Return the maximum number of bytes in the answer to a command."""
    name, _, arguments = command.partition(" ")
    return _LIMITS.get(name, ACTION_BYTES if arguments else CVAR_BYTES)
