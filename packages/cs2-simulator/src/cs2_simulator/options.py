"""Start options of a simulated server."""

from __future__ import annotations

import msgspec

from cs2_simulator.scenarios import Scenario
from cs2_simulator.setup_faults import SetupFault


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Start options of one server. Options of the game have its defaults, except for address and game mode."""

    port: int = 27015
    """0 means any free port."""
    ip: str = "127.0.0.1"
    map: str = "de_dust2"
    rcon_password: str = ""
    """If empty, RCON rejects every password, as in the game."""
    game_type: int = 0
    game_mode: int = 1
    max_players: int | None = None
    """None means the game's default."""
    speed: float = 1.0
    """Simulated seconds per real second."""
    seed: str = "1"
    scenario: Scenario = Scenario.FULL_MATCH
    setup_fault: SetupFault | None = None
    """What is wrong with how the server was set up; None if nothing is."""
    players: str = ""
    """Players who will join: comma-separated account numbers or SteamID64s."""
    has_mirror: bool = True
    """Whether RCON mirrors empty packets; some servers do not."""
    commands: tuple[str, ...] = ()
    """All other `+name value` arguments: console commands, run in order after the first map is loaded."""
