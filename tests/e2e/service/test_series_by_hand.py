"""A series in which people act all the time is played to its end, driven by the API only, and its numbers are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.contract.same_numbers import check_map_result, check_series_result
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.read_history import read_history
from tests.e2e.service.running_service import RunningService, cvars, players, teams
from tests.e2e.service.test_match_actions import ActedMatch

SPEED = 20
ANN, BEN, CAT, DAN = players(4)
SUBSTITUTE, CASTER, COACH = players(3, first=50)
COUNTED = ("kills", "deaths", "assists", "damageDealt", "roundsPlayed")
pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def receiver() -> Iterator[CallbackReceiver]:
    with CallbackReceiver() as found:
        yield found


@pytest.fixture(scope="module")
def service(database_url: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with RunningService(tmp_path_factory.mktemp("series"), database_url=database_url) as found:
        yield found


@pytest.mark.parametrize("seed", [1, 2])
def test_series_with_a_substitute_a_caster_a_coach_pauses_and_a_restore(
    service: RunningService, receiver: CallbackReceiver, seed: int
) -> None:
    listed = teams(2)
    listed["team1"]["coaches"] = [COACH]
    people = cvars(
        SPEED,
        sim_seed=seed,
        sim_substitutes=SUBSTITUTE,
        sim_casters=CASTER,
        sim_coaches=COACH,
        sim_unpause=0,
        sim_absent=DAN,
    )
    series = {"seriesFormat": "bo3", "map": "de_nuke", "maps": ["de_inferno", "de_mirage"], "maxRounds": 12}
    match = ActedMatch(service, receiver, f"series-{seed}", customCvars=people, teams=listed, joinSeconds=900, **series)
    match.wait_for_player(ANN)
    match.act("extendJoin", seconds=120)
    match.act("start", reason="Dan comes later")
    match.wait_for_phase("live")
    match.wait_for_round(2)
    match.act("pause", reason="a cable")
    match.wait_for_phase("paused")
    match.act("unpause")
    match.wait_for_round(3)
    match.act("restore", round=2)
    match.wait_for_phase("paused")
    match.act("unpause")

    def is_second_map(server: dict[str, object]) -> bool:
        view = server["match"]
        return server["phase"] == "live" and isinstance(view, dict) and view["mapNumber"] == 2

    service.wait_for(match.server_id, lambda one: one["phase"] == "between_maps" or is_second_map(one))
    match.act("replacePlayer", out=DAN, **{"in": SUBSTITUTE})
    service.wait_for(match.server_id, is_second_map)
    match.wait_for_player(SUBSTITUTE)
    match.act("addPlayer", **{"steamId": CASTER, "as": "spectator"})
    match.wait_for_round(2)
    match.act("pause")
    match.act("unpause")

    result = match.callback()["result"]
    history = read_history(service, match.server_id)
    assert history.series is not None
    check_series_result(history.series, result)
    for detail in history.maps[: len(result["maps"])]:
        check_map_result(detail, result)
        assert detail["complete"], detail["missingRounds"]
    played = [{player["steamId"] for player in entry["players"]} for entry in result["maps"]]
    assert SUBSTITUTE not in played[0]
    assert all(SUBSTITUTE in people_of for people_of in played[1:])
    assert not {CASTER, COACH, DAN} & set().union(*played)
    totals: dict[str, Counter[str]] = {}
    for entry in result["maps"]:
        for player in entry["players"]:
            numbers = {name: player[name] for name in COUNTED}
            totals.setdefault(player["steamId"], Counter()).update(numbers)
    overall = {player["steamId"]: {name: player[name] for name in COUNTED} for player in result["overall"]}
    assert overall == {steam_id: dict(numbers) for steam_id, numbers in totals.items()}
    for number, entry in enumerate(result["maps"]):
        rounds = entry["team1Score"] + entry["team2Score"]
        assert all(player["roundsPlayed"] <= rounds for player in entry["players"])
        regulars = [player["roundsPlayed"] for player in entry["players"] if player["steamId"] in (ANN, BEN, CAT)]
        # The first map was started while players may still have been loading.
        assert len(regulars) == 3
        assert set(regulars) <= ({rounds - 1, rounds} if number == 0 else {rounds})
    assert [one["state"] for one in match.actions()["items"]] == ["done"] * 10
