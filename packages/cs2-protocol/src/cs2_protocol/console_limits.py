"""Limit the size of the answer to each console command, to several times the size of real answers.

A compromised server may answer anything. An answer is rejected as soon as it exceeds its limit, and an answer within
the limit is cheap to parse.
"""

from __future__ import annotations

from typing import Final

from cs2_protocol.console_commands import LOG_LISTENERS, PLUGIN_STATUS, REMOVE_LOG_LISTENERS, STATUS, STATUS_JSON

_KIB = 1024

CVAR_BYTES: Final = 4 * _KIB
"""Limit in bytes for reading a variable. The answer is a line of less than 600 bytes; unrelated output may surround
it."""

ACTION_BYTES: Final = 64 * _KIB
"""Limit in bytes for commands that change something. The game and its plugins print a few KB during such a command."""

LOAD_BYTES: Final = 256 * _KIB
"""Limit in bytes for commands that load a map. The game prints most during a map load; this output is not parsed."""

MAX_CALL_BYTES: Final = 512 * _KIB
"""Limit in bytes for the answers to all commands sent in one call. The answers for 200 variables have less than 20 KB
in total; `status` has at most 256 KiB."""

_LIMITS: Final = {
    STATUS: 256 * _KIB,  # 2 KB with five players, but one line per spawn group on maps with many of them
    STATUS_JSON: 64 * _KIB,  # 4.6 KB with 13 clients
    PLUGIN_STATUS: 32 * _KIB,  # 1 KB
    LOG_LISTENERS: 32 * _KIB,  # 200 bytes per address
    **dict.fromkeys(("changelevel", "host_workshop_map"), LOAD_BYTES),
    **dict.fromkeys(
        ("bot_kick", "css_endmatch", "css_start", "mp_warmup_end", "mp_warmup_start", REMOVE_LOG_LISTENERS),
        ACTION_BYTES,
    ),
}
"""Limits by command name. Any other command gets `CVAR_BYTES` if it has no arguments (it reads a variable), else
`ACTION_BYTES`."""


def answer_limit(command: str) -> int:
    """Return the maximum number of bytes in the answer to a command."""
    name, _, arguments = command.partition(" ")
    return _LIMITS.get(name, ACTION_BYTES if arguments else CVAR_BYTES)
