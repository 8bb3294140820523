"""The winner of a deathmatch is in its result."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core.model import DmSubMode, GameSettings, MatchType, Winner
from matchpod.service.reading.deathmatch_winners import DeathmatchWinner, read_winner

ALONE = GameSettings(match_type=MatchType.DEATHMATCH, maps=("de_dust2",))
TEAMS = msgspec.structs.replace(ALONE, dm_sub_mode=DmSubMode.TEAM)
SERIES = GameSettings(match_type=MatchType.COMPETITIVE, maps=("de_dust2",))


def result(team: str | None = None, winner: str | None = "2") -> bytes:
    players = [{"steamId": "1", "name": "Ann"}, {"steamId": "2", "name": "Ben"}, {"steamId": "3", "name": ""}]
    return msgspec.json.encode({"winnerSteamId": winner, "winnerTeam": team, "players": players})


@pytest.mark.parametrize(
    ("stored", "settings", "winner"),
    [
        (result(), ALONE, DeathmatchWinner(steam_id="2", name="Ben")),
        (result(winner="3"), ALONE, DeathmatchWinner(steam_id="3", name="3")),
        (result(winner="4"), ALONE, DeathmatchWinner(steam_id="4", name="4")),
        (result(winner=None), ALONE, DeathmatchWinner()),
        (b"{}", ALONE, DeathmatchWinner()),
        (b"no JSON", ALONE, DeathmatchWinner()),
        (result("team2"), TEAMS, DeathmatchWinner(team=Winner.TEAM2)),
        (result("tie"), TEAMS, DeathmatchWinner(team=Winner.TIE)),
        (result(), TEAMS, DeathmatchWinner()),  # log lines are missing
        (result("of a later version"), TEAMS, DeathmatchWinner()),
        (None, ALONE, None),
        (b"{}", SERIES, None),
    ],
)
def test_winner_is_a_player_or_a_team(
    stored: bytes | None, settings: GameSettings, winner: DeathmatchWinner | None
) -> None:
    assert read_winner(stored, settings) == winner
