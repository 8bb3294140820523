"""Start options of a simulated server."""

from __future__ import annotations

import msgspec

from cs2_simulator.scenarios import Scenario
from cs2_simulator.setup_faults import SetupFault


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Start options of one server.

    Options of the game default to the game's values, except for address and game mode.
    """

    port: int = 27015
    """Port of the server. 0 means any free port."""
    ip: str = "127.0.0.1"
    map: str = "de_dust2"
    rcon_password: str = ""
    """RCON password. If it is empty, RCON rejects every password, as in the game."""
    game_type: int = 0
    game_mode: int = 1
    max_players: int | None = None
    """Maximum number of players. None means the game's default."""
    speed: float = 1.0
    """Simulated seconds per real second."""
    seed: str = "1"
    scenario: Scenario = Scenario.FULL_MATCH
    setup_fault: SetupFault | None = None
    """The mistake that was made when the server was set up; None if it is set up correctly."""
    players: str = ""
    """Players who will join, as a comma-separated list of account numbers or SteamID64s."""
    has_mirror: bool = True
    """Whether RCON mirrors empty packets; some servers do not."""
    commands: tuple[str, ...] = ()
    """All other `+name value` arguments: console commands, run in order after the first map is loaded."""
