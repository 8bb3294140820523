"""What was a simulated server started with? The command line of a game server, as values."""

from __future__ import annotations

import msgspec

from matchpod.simulator.scenarios import Scenario


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How one server starts; what is not said is as the game has it, but for the competitive mode."""

    port: int = 27015
    """0: any free port."""
    ip: str = "127.0.0.1"
    map: str = "de_dust2"
    rcon_password: str = ""
    """Empty: the console is closed to everybody, as in the game."""
    game_type: int = 0
    game_mode: int = 1
    max_players: int | None = None
    """None: as many as the game seats."""
    speed: float = 1.0
    """Simulated seconds in a real one."""
    seed: str = "1"
    scenario: Scenario = Scenario.FULL_MATCH
    players: str = ""
    """Account numbers or SteamID64s between commas: who will come."""
    has_mirror: bool = True
    """Whether RCON mirrors empty packets; some servers do not."""
    commands: tuple[str, ...] = ()
    """The other `+name value` words: console commands, run in their order when the first map is loaded."""
