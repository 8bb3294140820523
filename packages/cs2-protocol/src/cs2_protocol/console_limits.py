"""Limit the answers to console commands, each command to several times what a real server answers.

A server that was taken over may answer anything. What exceeds a limit is rejected before it is collected, and no
answer within its limit is expensive to parse.
"""

from __future__ import annotations

from typing import Final

from cs2_protocol.console_commands import LOG_LISTENERS, PLUGIN_STATUS, REMOVE_LOG_LISTENERS, STATUS, STATUS_JSON

_KIB = 1024

CVAR_BYTES: Final = 4 * _KIB
"""Value of a variable: a line of less than 600 bytes, and what the game happens to print at that moment."""

ACTION_BYTES: Final = 64 * _KIB
"""A command that does something: the game and its plugins print a few KB while they execute it."""

LOAD_BYTES: Final = 256 * _KIB
"""A command that loads a map, during which the game prints most. Its answer is not parsed."""

MAX_CALL_BYTES: Final = 512 * _KIB
"""All answers of one call: 200 variables have less than 20 KB, and `status` has 256 KiB at most."""

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
"""By the name of the command. All others set a variable or do something, or read a variable if they are one word."""


def answer_limit(command: str) -> int:
    """Return the most bytes that the answer to a command may have."""
    name, _, arguments = command.partition(" ")
    return _LIMITS.get(name, ACTION_BYTES if arguments else CVAR_BYTES)
