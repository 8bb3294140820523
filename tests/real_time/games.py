"""What is played at the speed of real games, how it must end, and what may go wrong on purpose."""

from __future__ import annotations

from typing import Final

import msgspec

from tests.e2e.service.running_service import Json, cvars, teams

REGION: Final = "sandbox-real-time"
REFERENCE_SPEED: Final = 200

MATCH_OVER: Final = "match_over"
ROUND_S: Final = 110.0
"""About how long a quiet round takes, with freeze time and the pause after it."""
JOIN_S: Final = 300.0
"""Time for all players to join, as documented for callers."""
STALL_S: Final = 27.0
"""How long a game server is stopped: people must be warned, and it must not be lost, whenever that begins."""


class Game(msgspec.Struct, frozen=True, kw_only=True):
    """A match to play, which its seed repeats."""

    name: str
    seed: int
    scenario: str = "full_match"
    size: int = 2
    rounds: int = 8
    """Rounds of a map; fewer in a short run."""
    arrival_s: int = 25
    """All players connect within this time."""
    client_load_s: int = 0
    """How long the last player's client loads."""
    map_load_s: int = 6
    """How long a map takes to load on the server, which does not answer meanwhile."""
    lost: str = ""
    """The log posts that are lost."""
    has_reports: bool = True
    """False if the plugin's reports are lost."""
    stall_after_s: float | None = None
    """When its server is stopped for STALL_S, after it was running."""
    end: str = MATCH_OVER
    more: dict[str, object] = {}
    """Other settings of the match."""

    @property
    def players(self) -> list[str]:
        return [player for team in teams(self.size, self.seed * 20).values() for player in team["players"]]

    def settings(self, *, minutes: float, is_reference: bool = False) -> Json:
        """Return its `gameSettings`; `minutes` is how long the whole run takes."""
        fits = max(2, int((minutes * 60 - 120) / ROUND_S) // 2 * 2)
        simulated = cvars(
            REFERENCE_SPEED if is_reference else 1,
            self.scenario,
            sim_seed=self.seed,
            sim_quiet=1,
            sim_lockstep=int(is_reference),
            sim_arrival=self.arrival_s,
            sim_client_load=self.client_load_s,
            sim_map_load=self.map_load_s,
            sim_report_faults=0 if self.has_reports else 100,
            **({"sim_lost_posts": self.lost} if self.lost and not is_reference else {}),
        )
        return {
            "matchType": "competitive",
            "map": "de_mirage",
            "maxRounds": min(self.rounds, fits),
            "freezeTime": 15,
            "teams": teams(self.size, self.seed * 20),
            "customCvars": simulated,
            **self.more,
        }


SERIES: Final[dict[str, object]] = {
    "matchType": "wingman",
    "map": "de_nuke",
    "maps": ["de_inferno", "de_vertigo"],
    "seriesFormat": "bo3",
}

LANES: Final[tuple[tuple[Game, ...], ...]] = (
    (Game(name="whole", seed=1, size=5, rounds=24, arrival_s=200),),
    (
        Game(name="slow client", seed=2, scenario="late_join", client_load_s=50, rounds=12),
        Game(name="stalled in play", seed=12, rounds=8, stall_after_s=300),
    ),
    (
        Game(name="lost restore", seed=3, scenario="round_restore", rounds=12, lost="restore"),
        Game(name="pauses", seed=13, scenario="pauses", rounds=10),
    ),
    (
        Game(name="lost disconnect", seed=4, size=3, scenario="leaver", rounds=12, lost="disconnect"),
        Game(name="leaver", seed=14, size=3, scenario="leaver", rounds=8),
    ),
    (Game(name="series", seed=5, rounds=8, arrival_s=120, client_load_s=50, map_load_s=26, more=SERIES),),
    (
        Game(name="lost end", seed=6, rounds=8, arrival_s=60, lost="end"),
        Game(name="lost end, no reports", seed=16, rounds=6, arrival_s=60, lost="end", has_reports=False),
        Game(name="no reports", seed=26, rounds=8, arrival_s=60, has_reports=False),
    ),
    (
        Game(name="no show", seed=7, scenario="no_show", end="no_players_joined"),
        Game(name="incomplete", seed=17, scenario="incomplete_roster", arrival_s=200, end="incomplete_roster"),
        Game(name="stalled while waiting", seed=27, scenario="no_show", stall_after_s=120, end="no_players_joined"),
        Game(name="restores", seed=37, scenario="round_restore", rounds=12),
    ),
    (
        Game(name="rejoin", seed=8, size=3, scenario="rage_quit_rejoin", rounds=10, client_load_s=50),
        Game(name="overtime", seed=18, scenario="overtime", rounds=6, arrival_s=120),
    ),
)
"""Eight lanes; in each, the next match begins when one has ended, and the last one is not repeated."""
