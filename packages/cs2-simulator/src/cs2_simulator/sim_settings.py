"""Validate the values of the simulator's own variables (`sim_…`). Error texts list the allowed values."""

from __future__ import annotations

import math
import re

from cs2_protocol.steam_id import MAX_ACCOUNT, account_of
from cs2_simulator.scenarios import LOSABLE_POSTS, DemoFault, Scenario

MAX_SPEED = 1000.0
"""Maximum value of `sim_speed`. No machine can simulate a server faster than this."""

MAX_WAIT_S = 86400.0
"""Maximum time in seconds until players connect or a map is loaded: one day, longer than any test needs."""

MAX_DEMO_MB = 10_000.0
"""Maximum size of a demo in MB, and maximum upload rate in MB per second. Real demos are smaller."""

_PEOPLE = ("sim_absent", "sim_casters", "sim_coaches", "sim_players", "sim_substitutes", "sim_unready")
_ACCOUNT = re.compile(r"[1-9][0-9]{0,9}")
_BOOLS = ("0", "1", "false", "true")
_NUMBERS = {
    # Name, minimum, maximum, and whether the minimum itself is allowed.
    "sim_speed": (0.0, MAX_SPEED, False),
    "sim_roster_delay": (0.0, MAX_WAIT_S, True),
    "sim_arrival": (0.0, MAX_WAIT_S, True),
    "sim_client_load": (0.0, MAX_WAIT_S, True),
    "sim_map_load": (0.0, MAX_WAIT_S, True),
    "sim_unpause": (0.0, MAX_WAIT_S, True),
    "sim_report_faults": (0.0, 100.0, True),
    "sim_demo_mb": (0.0, MAX_DEMO_MB, True),
    "sim_demo_rate": (0.0, MAX_DEMO_MB, False),
}


def sim_fault(name: str, value: str) -> str | None:
    """Return the error text if a `sim_` variable cannot have this value, else None.

    Other variables always return None.
    """
    if name in _NUMBERS:
        return _number_fault(name, value)
    if name == "sim_scenario" and value not in set(Scenario):
        return f"sim_scenario must be one of: {', '.join(Scenario)}"
    if name in _PEOPLE and None in _accounts(value):
        return f"{name} must be a comma-separated list of SteamID64s or account numbers"
    if name == "sim_lost_posts" and not set(words_in(value)) <= LOSABLE_POSTS.keys():
        return f"sim_lost_posts must be a comma-separated list of: {', '.join(LOSABLE_POSTS)}"
    if name == "sim_demo_faults" and not set(words_in(value)) <= set(DemoFault):
        return f"sim_demo_faults must be a comma-separated list of: {', '.join(DemoFault)}"
    if name in ("sim_console_chat", "sim_lockstep", "sim_quiet", "sim_rcon_drop") and value not in _BOOLS:
        return f"{name} must be one of: {', '.join(_BOOLS)}"
    return None


def accounts_in(players: str) -> list[int]:
    """Return the accounts in a valid value of `sim_players`, or of another list of people, without duplicates."""
    return list(dict.fromkeys(account for account in _accounts(players) if account is not None))


def words_in(listed: str) -> list[str]:
    """Return the names in a valid value of `sim_lost_posts` or `sim_demo_faults`."""
    return [name.strip() for name in listed.split(",") if name.strip()]


def _number_fault(name: str, value: str) -> str | None:
    minimum, maximum, is_minimum_allowed = _NUMBERS[name]
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if minimum < number <= maximum or (is_minimum_allowed and number == minimum):
        return None
    bounds = f"between {minimum:g} and {maximum:g}" if is_minimum_allowed else f"above {minimum:g}, at most {maximum:g}"
    return f"{name} must be a number {bounds}"


def _accounts(players: str) -> list[int | None]:
    """Return the account of each entry, or None for an entry that is neither a SteamID64 nor an account number."""
    return [_account(entry.strip()) for entry in players.split(",") if entry.strip()]


def _account(entry: str) -> int | None:
    is_account = _ACCOUNT.fullmatch(entry) is not None and int(entry) <= MAX_ACCOUNT
    return int(entry) if is_account else account_of(entry)
