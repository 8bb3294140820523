"""Which values may the simulator's own variables have? The faults of the others, in words that list what is allowed."""

from __future__ import annotations

import math
import re

from matchpod.cs2.steam_id import MAX_ACCOUNT, account_of
from matchpod.simulator.scenarios import Scenario

MAX_SPEED = 1000.0
"""Past this a server could not play its ticks on any machine."""

MAX_WAIT_S = 86400.0
"""A day: nobody waits longer for people or for a map."""

_ACCOUNT = re.compile(r"[1-9][0-9]{0,9}")
_BOOLS = ("0", "1", "false", "true")
_NUMBERS = {
    # Name: the least value, the greatest, and whether the least itself is allowed.
    "sim_speed": (0.0, MAX_SPEED, False),
    "sim_roster_delay": (0.0, MAX_WAIT_S, True),
    "sim_map_load": (0.0, MAX_WAIT_S, True),
    "sim_report_faults": (0.0, 100.0, True),
}


def sim_fault(name: str, value: str) -> str | None:
    """Why a variable of the simulator cannot have this value; None when it can, and for all variables of the game."""
    if name in _NUMBERS:
        return _number_fault(name, value)
    if name == "sim_scenario" and value not in set(Scenario):
        return f"sim_scenario must be one of: {', '.join(Scenario)}"
    if name == "sim_players" and not all(_is_person(entry.strip()) for entry in value.split(",") if entry.strip()):
        return "sim_players must be SteamID64s or account numbers with commas between them"
    if name in ("sim_lockstep", "sim_rcon_drop") and value not in _BOOLS:
        return f"{name} must be one of: {', '.join(_BOOLS)}"
    return None


def _number_fault(name: str, value: str) -> str | None:
    least, greatest, is_least_allowed = _NUMBERS[name]
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if least < number <= greatest or (is_least_allowed and number == least):
        return None
    bounds = f"between {least:g} and {greatest:g}" if is_least_allowed else f"above {least:g}, at most {greatest:g}"
    return f"{name} must be a number {bounds}"


def _is_person(entry: str) -> bool:
    if account_of(entry) is not None:
        return True
    return _ACCOUNT.fullmatch(entry) is not None and int(entry) <= MAX_ACCOUNT
