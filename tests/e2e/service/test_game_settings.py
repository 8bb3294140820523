"""What a caller asks for at creation decides how a match starts, how long it is, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.same_numbers import check_series_result
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.read_history import read_history, read_page
from tests.e2e.service.running_service import Json, RunningService, cvars, default_regions, players, short_match
from tests.effort import IS_SOAK

ABSENT = players(4)[-1]
SPEED = 10
"""Of the region: players have six seconds to join a match that waits for a minute."""
BO3 = {"seriesFormat": "bo3", "maps": ["de_nuke", "de_inferno"], "maxRounds": 2}


MATCHES: dict[str, Json] = {
    "no-show": short_match(onNoShow="forfeit", joinSeconds=60, **BO3, customCvars=cvars(sim_absent=ABSENT)),
    "ready": short_match(autoStart=False, **BO3),
    "given": short_match(mapsWon={"team1": 1}, **BO3, customCvars=cvars(100, sim_seed=14)),
    "overtime": short_match(overtime={"maxRounds": 2, "startMoney": 5000}, customCvars=cvars(scenario="overtime")),
    "no-overtime": short_match(overtime={"enabled": False}, customCvars=cvars(scenario="tie")),
}
if not IS_SOAK:
    # One of each way to begin; the rules are tested in tests/unit/core/match and in the tests of the simulator's plugin.
    MATCHES = {name: MATCHES[name] for name in ("no-show", "ready", "given")}


class Ended:
    """The matches of one service, all created at once, and how they end."""

    def __init__(self, service: RunningService, receiver: CallbackReceiver) -> None:
        self.service = service
        self.receiver = receiver
        self.ids: dict[str, str] = {}
        for name, settings in MATCHES.items():
            created = service.create(settings, externalMatchId=name, callbackUrl=receiver.url(f"/{name}"))
            self.ids[name] = created["serverId"]

    def callback(self, name: str) -> Json:
        """Wait for the end of a match and return the body of its callback."""
        body: Json = self.receiver.wait_for(f"/{name}")[0].json
        return body

    def result(self, name: str) -> Any:
        """Return the result of a match that was not canceled, which is the same wherever it can be read."""
        body = self.callback(name)
        assert body["eventType"] == "match_over", body
        assert self.service.match(name)["result"] == body["result"]
        return body["result"]

    def released(self, name: str) -> str:
        """Wait until nothing changes any more; return the id of the server."""
        self.service.wait_until_released(self.ids[name])
        return self.ids[name]

    def series(self, name: str) -> Json:
        (listed,) = read_page(self.service, f"/api/v1/cs2/servers/{self.ids[name]}/series")
        return listed

    def log(self, name: str) -> str:
        return self.service.call("GET", f"/api/v1/servers/{self.ids[name]}/log").raw.decode()


@pytest.fixture(scope="module")
def ended(database_url: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    folder = tmp_path_factory.mktemp("settings")
    with (
        CallbackReceiver() as receiver,
        RunningService(folder, database_url=database_url, regions=default_regions(speed=SPEED)) as service,
    ):
        yield Ended(service, receiver)


def test_no_show_becomes_a_win_of_the_team_that_is_complete(ended: Ended) -> None:
    body, result = ended.callback("no-show"), ended.result("no-show")
    assert (body["forfeit"], result["forfeit"], result["winner"], result["format"]) == (True, True, "team1", "bo3")
    assert (result["maps"], result["overall"]) == ([], [])
    for team, name in (("team1", "Reds"), ("team2", "Blues")):
        assert result[team] == {"name": name, "seriesScore": 0, "totalRounds": 0}
    server_id = ended.released("no-show")
    assert len(ended.receiver.at("/no-show")) == 1
    server = ended.service.get(server_id)
    assert (server["status"], server["phase"], server["reason"]) == ("stopped", "ended", None)
    assert (server["forfeit"], ended.service.match("no-show")["forfeit"]) == (True, True)
    series = ended.series("no-show")
    assert (series["status"], series["winnerTeam"], series["forfeit"]) == ("finished", "Reds", True)
    assert {(played["status"], played["needed"]) for played in series["maps"]} == {("cancelled", False)}
    assert (series["team1MapsWon"], series["team2MapsWon"], series["startedAt"]) == (0, 0, None)
    (listed,) = read_page(ended.service, "/api/v1/servers?externalMatchId=no-show")
    assert (listed["seriesScore"], listed["maps"], listed["forfeit"]) == ({"team1": 0, "team2": 0}, [], True)
    assert read_history(ended.service, server_id).statuses == ["cancelled"] * 3
    assert "Round_Start" not in ended.log("no-show")


def test_players_who_are_ready_start_every_map(ended: Ended) -> None:
    result, log = ended.result("ready"), ended.log("ready")
    assert len(result["maps"]) >= 2
    assert "css_start" not in log
    assert log.count('say ".ready"') >= 4 * len(result["maps"])
    assert "forfeit" not in result
    assert "forfeit" not in ended.service.get(ended.ids["ready"])
    history = read_history(ended.service, ended.released("ready"))
    assert history.series is not None
    check_series_result(history.series, result)


def test_given_map_counts_and_is_not_played(ended: Ended) -> None:
    result = ended.result("given")
    won = [played["winner"] for played in result["maps"]]
    assert [played["mapNumber"] for played in result["maps"]] == list(range(1, len(won) + 1))
    assert [played["mapName"] for played in result["maps"]] == ["de_mirage", "de_nuke"][: len(won)]
    score = (1 + won.count("team1"), won.count("team2"))
    assert max(score) == 2
    assert (result["team1"]["seriesScore"], result["team2"]["seriesScore"]) == score
    assert result["winner"] == ("team1" if score[0] == 2 else "team2")
    series = ended.series("given")
    assert (series["team1MapsWon"], series["team2MapsWon"]) == score
    history = read_history(ended.service, ended.released("given"))
    assert history.statuses[: len(won)] == ["finished"] * len(won)
    assert history.series is not None
    check_series_result(history.series, result)


@pytest.mark.soak
def test_overtime_has_the_requested_rounds(ended: Ended) -> None:
    (played,) = ended.result("overtime")["maps"]
    high, low = sorted((played["team1Score"], played["team2Score"]), reverse=True)
    assert (high - low, low >= 2) == (2, True), "overtimes of two rounds are won 2:0"
    assert played["winner"] in ("team1", "team2")


@pytest.mark.soak
def test_map_without_overtime_is_a_tie(ended: Ended) -> None:
    result = ended.result("no-overtime")
    (played,) = result["maps"]
    assert (played["team1Score"], played["team2Score"], played["winner"]) == (2, 2, "tie")
    assert result["winner"] == "tie"
