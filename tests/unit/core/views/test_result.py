"""Results and the live view of a match."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.match.match import Match
from matchpod.core.model import DmSubMode, GameSettings, MatchType, SeriesFormat, Winner
from matchpod.core.views.result import (
    build_result,
    live_match,
    player_name,
    players_of_map,
    published_lines,
    team_kills,
    team_name,
)
from matchpod.core.views.result_shapes import Score, SeriesResult, SeriesScore, TeamEntry
from tests.unit.core.match_driver import ANN, BEN, EVE, MAPS, START_MS, deathmatch, duel, live_duel, open_match

BOT = "BOT:Rex"


def as_json(value: object) -> dict[str, object]:
    return msgspec.json.decode(msgspec.json.encode(value), type=dict[str, object])


class PlayedGame:
    def __init__(self, settings: GameSettings) -> None:
        self.match = Match.create(settings, START_MS)
        self.at_ms = START_MS
        self.rounds = 0

    def apply(self, *events: ev.GameEvent) -> PlayedGame:
        for event in events:
            self.match.apply(event, self.at_ms)
        return self

    def live(self, map_name: str = MAPS[0], names: tuple[str | None, str | None] = (None, None)) -> PlayedGame:
        self.rounds = 0
        for number, player in enumerate((ANN, BEN)):
            self.apply(ev.PlayerEntered(self.at_ms, player, ("Ann", "Ben")[number], number))
        return self.apply(ev.MapLive(self.at_ms, map_name, self.at_ms, Side.CT, *names))

    def round(self, winner: Team, *events: ev.GameEvent) -> PlayedGame:
        self.rounds += 1
        self.at_ms += 60_000
        self.apply(ev.RoundStarted(self.at_ms, self.rounds, (ANN,), (BEN, BOT), Side.CT), *events)
        current = self.match.current_map
        scores = (current.team1_score + (winner is Team.TEAM1), current.team2_score + (winner is Team.TEAM2))
        return self.apply(ev.RoundDecided(self.at_ms, self.rounds, winner, None, RoundEndReason.UNKNOWN, *scores))

    def kill(self, killer: str, victim: str, weapon: str = "ak47", *, is_headshot: bool = False) -> ev.Kill:
        return ev.Kill(self.at_ms, killer, victim, weapon, True, is_headshot)

    def end(self) -> PlayedGame:
        current = self.match.current_map
        self.at_ms += 1000
        return self.apply(ev.MapEnded(self.at_ms, current.name, current.team1_score, current.team2_score))

    def result(self) -> dict[str, object]:
        return as_json(build_result(self.match))


def play(settings: GameSettings | None = None) -> PlayedGame:
    return PlayedGame(settings or duel()).live()


EXTRA = {
    "pistolKills", "sniperKills", "knifeKills", "chickenKills", "entryKills", "entryDeaths", "tradeKills", "clutch1v1",
    "clutch1v2", "clutch1v3", "clutch1v4", "clutch1v5", "doubleKills", "tripleKills", "quadKills", "aces",
    "flashAssists", "enemiesFlashed", "bombPlants", "bombDefuses",
}  # fmt: skip
IN_ROUNDS = EXTRA | {"mvps"}
COUNTED = {"shotsFired", "shotsHit", "accuracyPercent"}
OVERALL = {
    "steamId", "name", "team", "kills", "deaths", "assists", "headshots", "hsPercent", "kdRatio", "adr", "damageDealt",
    "utilityDamage", "pistolKills", "sniperKills", "roundsPlayed", "mvps", "mvpsComplete", "extraStats",
}  # fmt: skip
ON_A_MAP = OVERALL | {
    "flashAssists", "firstKills", "firstDeaths", "entryKills", "tradeKills", "bombPlants", "bombDefuses", "clutchWins",
    "kastPercent", "impactRating",
}  # fmt: skip
IN_DEATHMATCH = {
    "steamId", "name", "kills", "deaths", "assists", "headshots", "hsPercent", "kdRatio", "damageDealt",
    "utilityDamage", "kpm", "pistolKills", "sniperKills", "extraStats",
}  # fmt: skip


def test_competitive_result_has_exactly_the_documented_fields() -> None:
    result = play().round(Team.TEAM1).end().result()
    assert set(result) == {"gameMode", "format", "winner", "team1", "team2", "overall", "maps", "antiCheat"}
    assert (result["gameMode"], result["format"], result["winner"]) == ("competitive", "bo1", "team1")
    assert result["team1"] == {"name": "Reds", "seriesScore": 1, "totalRounds": 1}
    (entry,) = msgspec.convert(result["maps"], list[dict[str, object]])
    documented = {"mapName", "mapNumber", "team1Score", "team2Score", "winner", "duration", "players"}
    assert set(entry) == documented | {"playedMapName", "complete", "missingRounds", "team1StartSide", "sidesBy"}
    assert (entry["complete"], entry["missingRounds"]) == (True, [])
    assert (entry["mapName"], entry["mapNumber"], entry["duration"]) == (MAPS[0], 1, 61)
    for player in msgspec.convert(entry["players"], list[dict[str, object]]):
        assert set(player) == ON_A_MAP
        assert set(msgspec.convert(player["extraStats"], dict[str, object])) == IN_ROUNDS
    for player in msgspec.convert(result["overall"], list[dict[str, object]]):
        assert set(player) == OVERALL


def test_numbers_that_were_not_counted_are_null_or_omitted() -> None:
    game = play().round(Team.TEAM1)
    game.apply(ev.MvpNamed(START_MS, 1, ANN, 1), ev.ShotsCounted(START_MS, 1, 1, {ANN: (30, 12)}))
    players = build_result(game.end().match).maps[0].players  # type: ignore[union-attr]
    ann = next(player for player in players if player.steam_id == ANN)
    extra = msgspec.to_builtins(ann.extra_stats)
    assert set(extra) == IN_ROUNDS | COUNTED
    assert (extra["shotsFired"], extra["accuracyPercent"]) == (30, 40.0)
    assert (ann.mvps, ann.mvps_complete) == (1, True)
    bare = build_result(play().round(Team.TEAM1).end().match).maps[0].players[0]  # type: ignore[union-attr]
    assert (bare.mvps, bare.mvps_complete) == (0, False)


@pytest.mark.parametrize("kind", [MatchType.CASUAL, MatchType.RETAKES, MatchType.CUSTOM])
def test_other_modes_have_the_competitive_shape_with_their_own_name(kind: MatchType) -> None:
    result = play(open_match(kind)).round(Team.TEAM2).end().result()
    assert (result["gameMode"], result["format"], result["winner"]) == (kind.value, "bo1", "team2")


def test_deathmatch_result_is_flat_and_won_by_the_player_with_the_most_kills() -> None:
    game = PlayedGame(deathmatch(ANN, BEN)).live()
    game.apply(game.kill(ANN, BEN), game.kill(BEN, ANN, is_headshot=True), game.kill(BEN, ANN))
    game.at_ms += 120_000
    result = game.end().result()
    documented = {"gameMode", "map", "duration", "winnerSteamId", "players", "antiCheat"}
    assert set(result) == documented | {"playedMapName", "complete", "winnerTeam"}
    assert result["winnerTeam"] is None
    assert (result["winnerSteamId"], result["duration"], result["map"]) == (BEN, 121, MAPS[0])
    players = msgspec.convert(result["players"], list[dict[str, object]])
    assert all(set(player) == IN_DEATHMATCH for player in players)
    assert (players[0]["kpm"], players[0]["hsPercent"]) == (0.99, 50.0)


def test_team_deathmatch_is_won_by_the_team_with_more_kills() -> None:
    settings = msgspec.structs.replace(deathmatch(ANN, BEN), dm_sub_mode=DmSubMode.TEAM)
    game = PlayedGame(settings).live()
    game.apply(ev.PlayerJoinedSide(game.at_ms, ANN, "Ann", Side.CT, Team.TEAM1))
    game.apply(ev.PlayerJoinedSide(game.at_ms, BEN, "Ben", Side.T, Team.TEAM2))
    game.apply(game.kill(ANN, BEN), game.kill(BEN, ANN), game.kill(BEN, ANN))
    assert team_kills(game.match, game.match.current_map) == (1, 2)
    assert game.end().result()["winnerTeam"] == "team2"


def test_deathmatch_without_players_has_no_winner() -> None:
    result = PlayedGame(deathmatch()).apply(ev.MapLive(START_MS, MAPS[0], START_MS, Side.CT)).end().result()
    assert (result["winnerSteamId"], result["players"]) == (None, [])


def test_detections_have_map_and_round() -> None:
    game = play().round(Team.TEAM1, ev.CheatSuspected(START_MS, ANN, "Aimbot", "why", "ak47")).end()
    assert game.result()["antiCheat"] == [
        {
            "steamId": ANN,
            "name": "Ann",
            "team": "team1",
            "type": "Aimbot",
            "reason": "why",
            "weapon": "ak47",
            "mapNumber": 1,
            "roundNumber": 1,
            "detectedAt": "2023-11-14T22:13:20.000Z",
        }
    ]


def test_live_view_has_score_and_players() -> None:
    game = play()
    game.round(Team.TEAM1, game.kill(ANN, BEN))
    assert as_json(live_match(game.match)) == {
        "game": "cs2",
        "matchType": "competitive",
        "map": MAPS[0],
        "mapNumber": 1,
        "score": {"team1": 1, "team2": 0},
        "seriesScore": {"team1": 0, "team2": 0},
        "maps": [{"name": MAPS[0], "number": 1, "status": "live", "score": {"team1": 1, "team2": 0}, "winner": None}],
        "players": [
            {"steamId": ANN, "name": "Ann", "kills": 1, "deaths": 0, "assists": 0},
            {"steamId": BEN, "name": "Ben", "kills": 0, "deaths": 1, "assists": 0},
        ],
    }


def test_live_view_has_connected_players_without_statistics_and_omits_unknown_names() -> None:
    match = Match.create(open_match(), START_MS)
    match.apply(ev.PlayerConnected(START_MS, ANN, "", 1), START_MS)
    assert as_json(live_match(match))["players"] == [{"steamId": ANN, "kills": 0, "deaths": 0, "assists": 0}]


def test_live_view_of_a_deathmatch_has_no_score() -> None:
    view = as_json(live_match(PlayedGame(deathmatch()).match))
    assert "score" not in view
    assert (view["mapNumber"], view["seriesScore"]) == (1, None)
    assert view["maps"] == [{"name": MAPS[0], "number": 1, "status": "upcoming", "score": None, "winner": None}]


def test_live_view_between_maps_is_that_of_the_next_map() -> None:
    driver = live_duel(SeriesFormat.BO3)
    driver.apply(ev.RoundStarted(driver.now_ms, 1, (ANN,), (BEN,), Side.CT))
    driver.apply(ev.Kill(driver.now_ms, ANN, BEN, "ak47", is_enemy=True))
    assert [player.kills for player in live_match(driver.match).players] == [1, 0]
    driver.end_map(13, 5).change_map(MAPS[1], ANN)
    view = live_match(driver.match)
    assert (view.map, view.map_number, view.score, view.series_score) == (MAPS[1], 2, Score(0, 0), SeriesScore(1, 0))
    assert [(one.status, one.score, one.winner) for one in view.maps] == [
        ("finished", Score(13, 5), "team1"),
        ("upcoming", Score(0, 0), None),
        ("upcoming", Score(0, 0), None),
    ]
    assert [(player.steam_id, player.kills) for player in view.players] == [(ANN, 0)]


def test_names_of_teams_and_players_have_a_fallback() -> None:
    game = PlayedGame(open_match(MatchType.COMPETITIVE)).live(names=("Cats", None))
    assert (team_name(game.match, Team.TEAM1), team_name(game.match, Team.TEAM2)) == ("Cats", "Team 2")
    game.live(names=("Dogs", "Owls"))
    assert (team_name(game.match, Team.TEAM1), team_name(game.match, Team.TEAM2)) == ("Dogs", "Owls")
    named = PlayedGame(duel()).live(names=("Cats", "Dogs"))
    assert (team_name(named.match, Team.TEAM1), team_name(named.match, Team.TEAM2)) == ("Reds", "Blues")
    game.apply(ev.PlayerDisconnected(game.at_ms, ANN, "Ann", "x", False))
    assert (player_name(game.match, ANN), player_name(game.match, EVE)) == ("Ann", "")


@pytest.mark.parametrize("settings", [duel(), deathmatch(ANN, BEN)], ids=["teams", "deathmatch"])
def test_players_of_a_map_equal_those_of_the_result(settings: GameSettings) -> None:
    play = PlayedGame(settings).live()
    play.apply(ev.RoundStarted(play.at_ms, 1, (ANN,), (BEN,), Side.CT), play.kill(ANN, BEN)).end()
    played = play.match.current_map
    found = players_of_map(play.match, played, published_lines(play.match, played))
    result = play.result()
    maps = result.get("maps") or [result]
    assert isinstance(maps, list)
    assert [as_json(player) for player in found] == maps[0]["players"]
    assert [player.kills for player in found] == [1, 0]


def test_forfeited_match_has_the_score_so_far_and_says_so() -> None:
    game = play(duel(SeriesFormat.BO3)).round(Team.TEAM1).round(Team.TEAM1)
    assert "forfeit" not in game.result()
    game.match.forfeit(Team.TEAM2, game.at_ms)
    result = build_result(game.match)
    assert isinstance(result, SeriesResult)
    assert (result.winner, result.forfeit, result.team1) == (
        Winner.TEAM2,
        True,
        TeamEntry(name="Reds", series_score=0, total_rounds=2),
    )
    assert [(one.team1_score, one.winner, one.complete) for one in result.maps] == [(2, None, True)]
