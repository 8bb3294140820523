"""Parse a plugin's reports of shots, which the log does not contain: absolute counts per player and round."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from cs2_protocol.game import PlayerId
from cs2_protocol.steam_id import to_id64

MAX_PLAYERS: Final = 64
"""Maximum number of players in a report. A server has at most 64 clients."""

MAX_SHOTS: Final = 100_000
"""Maximum number of shots per player and round. In a deathmatch of 24 hours, this is 69 shots per minute."""

MAX_ROUNDS: Final = 200
"""Maximum number of rounds in a report: as many as the longest map that can be requested."""

MAX_SEQUENCE: Final = 2**53 - 1
"""Highest sequence number: the largest integer that every JSON library can represent."""

MAX_MAPS: Final = 5
"""Highest map number: the last map of the longest series."""


class PlayerShots(msgspec.Struct, frozen=True, rename="camel"):
    """The shots of one player in a round."""

    steam_id: Annotated[str, Meta(max_length=32, description="The player's Steam id, in any format.")]
    shots_fired: Annotated[int, Meta(ge=0, le=MAX_SHOTS, description="Shots fired in the round.")]
    shots_hit: Annotated[int, Meta(ge=0, le=MAX_SHOTS, description="Shots that hit an enemy, at most `shotsFired`.")]


class RoundShots(msgspec.Struct, frozen=True, rename="camel"):
    """The shots of all players in one round. They replace an earlier report about the same round."""

    round_number: Annotated[int, Meta(ge=1, le=MAX_ROUNDS, description="The round, from 1; a deathmatch is one round.")]
    players: Annotated[
        tuple[PlayerShots, ...],
        Meta(max_length=MAX_PLAYERS, description="All players of the round; empty while nothing is counted yet."),
    ]

    def by_player(self) -> dict[PlayerId, tuple[int, int]] | None:
        """Return the shots fired and hit, per player; None if an entry is invalid, because a sum would be wrong."""
        shots = {to_id64(player.steam_id): (player.shots_fired, player.shots_hit) for player in self.players}
        is_possible = all(hit <= fired for fired, hit in shots.values()) and len(shots) == len(self.players)
        return {who: counted for who, counted in shots.items() if who} if is_possible and None not in shots else None


class ShotsReport(msgspec.Struct, frozen=True, rename="camel"):
    """A plugin's counts of shots in some or all rounds of one map."""

    map_number: Annotated[int, Meta(ge=1, le=MAX_MAPS, description="The map of the series, from 1.")]
    rounds: Annotated[tuple[RoundShots, ...], Meta(max_length=MAX_ROUNDS, description="Rounds in any order.")]
    sequence: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_SEQUENCE)] | None,
        Meta(
            description="Higher in each report. The newest one replaces all rounds of the map, older ones are ignored."
        ),
    ] = None
    final: Annotated[
        bool,
        Meta(description="Whether this is the last report of the map, so that the result of the match need not wait."),
    ] = False


class ShotsReportError(ValueError):
    """The body is not a valid report of shots; the message says why."""


_decode = msgspec.json.Decoder(ShotsReport, strict=False).decode  # in JSON, 3.0 is an integer too


def read_shots_report(body: bytes) -> ShotsReport:
    """Return the report; raise ShotsReportError if the body is not a report."""
    try:
        return _decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise ShotsReportError(str(exc)) from exc
