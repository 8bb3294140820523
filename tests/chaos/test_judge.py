"""The judge finds each kind of violation, and accepts what callers were promised."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.chaos.judge import Verdict, comparable, judge
from tests.chaos.observed import Answer, Death, Delivery, Leftovers, MatchSeen, Observations
from tests.chaos.plan import FaultKind, GameSpec, Moment, Plan, PlannedFault, PlannedMatch, Receiver

GAME = GameSpec("duel", 1)
MATCH = PlannedMatch(name="m1", at_s=0, game=GAME, speed=60, is_lockstep=True)
RESULT: dict[str, Any] = {
    "winner": "team1",
    "maps": [{"complete": True, "winner": "team1", "players": [{"kills": 7, "mvps": 2}]}],
}
BODY: dict[str, Any] = {
    "eventType": "match_over",
    "serverId": "srv_1",
    "sessionId": "s",
    "externalMatchId": "m1",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "result": RESULT,
}


def delivery(at_s: float = 10.0, *, id: str = "msg_1", is_accepted: bool = True, **fields: Any) -> Delivery:
    body = json.dumps({**BODY, **fields}).encode()
    return Delivery(at_s=at_s, id=id, body=body, is_accepted=is_accepted, is_signed=True)


def canceled(reason: str) -> Delivery:
    body = {name: value for name, value in BODY.items() if name != "result"}
    text = json.dumps({**body, "eventType": "match_canceled", "reason": reason}).encode()
    return msgspec.structs.replace(delivery(), body=text)


def seen_match(*deliveries: Delivery, **fields: Any) -> MatchSeen:
    result = json.loads(deliveries[0].body).get("result") if deliveries else None
    defaults: dict[str, Any] = {
        "server_id": "srv_1",
        "server_ids": {"srv_1"},
        "creates": [Answer(0, 201)],
        "deliveries": list(deliveries),
        "final": Answer(20, 200, {"result": result}),
        "server": Answer(20, 200, {"status": "stopped"}),
    }
    return MatchSeen(**{**defaults, **fields})


def verdict(
    seen: MatchSeen,
    match: PlannedMatch = MATCH,
    *,
    faults: tuple[PlannedFault, ...] = (),
    is_lossless: bool = False,
    **observed: Any,
) -> Verdict:
    plan = Plan(seed=1, matches=(match,), faults=faults, is_lossless=is_lossless)
    return judge(plan, Observations(matches={match.name: seen}, **observed), {GAME: comparable(BODY)})


def kinds(found: Verdict) -> list[str]:
    return [violation.kind for violation in found.violations]


def replaced(**changes: Any) -> PlannedMatch:
    return msgspec.structs.replace(MATCH, **changes)


def test_undisturbed_match_has_no_violation() -> None:
    found = verdict(seen_match(delivery()))
    assert found.violations == ()
    assert found.ends == {"match_over": 1}


UNSIGNED = msgspec.structs.replace(delivery(), is_signed=False)
OTHER_RESULT = Answer(20, 200, {"result": {**RESULT, "winner": "team2"}})
UNAVAILABLE = [Answer(0, 0), Answer(0, 502), Answer(0, 503), Answer(0, 201)]
RUNNING = Answer(20, 200, {"status": "running"})
CHANGED = delivery(12, result=None)
DIED = {"deaths": [Death(11, 12)]}
LONG = {"deaths": [Death(5, 60)]}
CANCELED = replaced(cancel_on=Moment.SCORE)
BY_USER = canceled("canceled_by_user")
CONFIRMED, REJECTED = [Answer(5, 200, {"ok": True})], [Answer(5, 409)]
OTHERS = {"set_aside": {"m2": [4]}, "bugs": {"m1": 4}}
LEFT = Leftovers(processes=("srv_1 pid 7",), slots=("sandbox 1 srv_1",), exit_codes=("replica 0: 1",))
FAILING = replaced(receiver=Receiver.FAIL)
FAILED = [delivery(at_s, is_accepted=False) for at_s in (10, 15, 20)]
KILLED = {"faults": (PlannedFault(kind=FaultKind.SERVER_KILL, at_s=0, match="m1", on=Moment.SCORE),)}


def set_aside(entries: list[int], *, bug: int) -> dict[str, Any]:
    return {"set_aside": {"m1": entries}, "bugs": {"m1": bug}}


@pytest.mark.parametrize(
    ("seen", "match", "observed", "found"),
    [
        pytest.param(seen_match(), MATCH, {}, ["lost"], id="no callback"),
        pytest.param(seen_match(FAILED[0]), MATCH, {}, ["lost"], id="never accepted by a good receiver"),
        pytest.param(seen_match(*FAILED[:2]), FAILING, {}, [], id="never accepted by a receiver that always fails"),
        pytest.param(seen_match(*FAILED), FAILING, {}, ["repeated"], id="a third attempt without a death"),
        pytest.param(seen_match(UNSIGNED), MATCH, {}, ["second outcome"], id="no valid signature"),
        pytest.param(
            seen_match(delivery(), final=OTHER_RESULT), MATCH, {}, ["second outcome"], id="other result in API"
        ),
        pytest.param(seen_match(delivery(), final=Answer(20, 404)), MATCH, {}, ["lost"], id="no result in the API"),
        pytest.param(seen_match(canceled("server_lost")), MATCH, {}, ["wrong end"], id="server lost without a fault"),
        pytest.param(seen_match(canceled("server_lost")), MATCH, KILLED, [], id="server lost after it was killed"),
        pytest.param(seen_match(delivery(), server_ids={"a", "b"}), MATCH, {}, ["second outcome"], id="created twice"),
        pytest.param(seen_match(delivery(), creates=UNAVAILABLE), MATCH, {}, [], id="unavailable while it is created"),
        pytest.param(seen_match(delivery(), creates=[Answer(0, 500)]), MATCH, {}, ["refused"], id="server error"),
        pytest.param(seen_match(delivery(), delivery(12, id="b")), MATCH, DIED, ["second outcome"], id="two ids"),
        pytest.param(seen_match(delivery(), CHANGED), MATCH, DIED, ["second outcome"], id="two bodies"),
        pytest.param(seen_match(delivery(), delivery(14)), MATCH, {}, ["repeated"], id="again without a death"),
        pytest.param(seen_match(delivery(50), delivery(54)), MATCH, LONG, ["repeated"], id="again long after a death"),
        pytest.param(seen_match(delivery(), cancels=CONFIRMED), CANCELED, {}, ["wrong end"], id="cancel confirmed"),
        pytest.param(seen_match(BY_USER, cancels=REJECTED), CANCELED, {}, ["wrong end"], id="cancel rejected"),
        pytest.param(seen_match(BY_USER, cancels=CONFIRMED), CANCELED, {}, [], id="cancel confirmed, and canceled"),
        pytest.param(seen_match(delivery(), cancels=REJECTED), CANCELED, {}, [], id="cancel rejected, and finished"),
        pytest.param(seen_match(delivery()), MATCH, set_aside([4], bug=0), ["set aside"], id="entry set aside"),
        pytest.param(seen_match(delivery()), MATCH, set_aside([4], bug=4), [], id="faulty entry set aside"),
        pytest.param(seen_match(delivery()), MATCH, set_aside([3, 4], bug=4), ["set aside"], id="and another one"),
        pytest.param(seen_match(delivery()), MATCH, OTHERS, ["set aside"], id="entry of another match set aside"),
        pytest.param(seen_match(delivery()), MATCH, {"leftovers": LEFT}, ["leaked"] * 3, id="left behind"),
        pytest.param(seen_match(delivery(), server=RUNNING), MATCH, {}, ["leaked"], id="server still running"),
        pytest.param(seen_match(delivery()), MATCH, {"is_stuck": True}, ["stuck"], id="not quiet"),
        pytest.param(seen_match(delivery()), MATCH, {"stray_paths": ["/x"]}, ["second outcome"], id="unknown path"),
    ],
)
def test_each_violation_is_found_and_what_is_promised_is_none(
    seen: MatchSeen, match: PlannedMatch, observed: dict[str, Any], found: list[str]
) -> None:
    assert kinds(verdict(seen, match, **observed)) == found


def test_same_callback_again_after_a_death_is_counted() -> None:
    found = verdict(seen_match(delivery(10), delivery(14)), deaths=[Death(11, 12)])
    assert (kinds(found), found.repeats) == ([], 1)


def test_any_server_may_be_lost_while_the_host_takes_the_cpu() -> None:
    found = verdict(seen_match(canceled("server_lost")), stolen_share=0.6)
    assert (kinds(found), found.overload_losses) == ([], 1)
    assert kinds(verdict(seen_match(canceled("server_lost")), stolen_share=0.4)) == ["wrong end"]
    assert kinds(verdict(seen_match(canceled("no_players_joined")), stolen_share=0.6)) == ["wrong end"]


def with_players(*players: dict[str, Any], complete: bool = True, winner: str = "team1") -> Delivery:
    return delivery(result={**RESULT, "maps": [{"complete": complete, "winner": winner, "players": list(players)}]})


def test_other_number_than_in_the_undisturbed_run_is_a_violation() -> None:
    found = verdict(seen_match(with_players({"kills": 6, "mvps": 1})))
    assert [(one.kind, one.text) for one in found.violations] == [
        ("wrong number", ".result.maps[0].players[0].kills is 6, but 7 in the undisturbed run"),
        ("wrong number", ".result.maps[0].players[0].mvps is 1, but 2 in the undisturbed run"),
    ]


def test_number_that_is_null_is_a_marked_difference() -> None:
    found = verdict(seen_match(with_players({"kills": None, "mvps": 2})))
    assert found.violations == ()
    assert [(one.field, one.found, one.expected) for one in found.differences] == [
        (".result.maps[0].players[0].kills", "None", "7")
    ]


def test_number_of_a_map_that_says_it_is_incomplete_is_a_marked_difference_but_its_winner_is_not() -> None:
    found = verdict(seen_match(with_players({"kills": 6, "mvps": 2}, complete=False, winner="team2")))
    assert [one.text for one in found.violations] == [
        ".result.maps[0].winner is team2, but team1 in the undisturbed run"
    ]
    assert [one.field for one in found.differences] == [
        ".result.maps[0].complete",
        ".result.maps[0].players[0].kills",
    ]


def test_without_a_fault_that_loses_lines_no_number_may_be_missing() -> None:
    missing = seen_match(with_players({"kills": None, "mvps": 2}))
    assert kinds(verdict(missing, is_lossless=True)) == ["incomplete"]
    died = [Death(1, 2)]
    assert kinds(verdict(missing, is_lossless=True, deaths=died)) == [], "a report that no process received"
    incomplete = seen_match(with_players({"kills": 6, "mvps": 2}, complete=False))
    assert kinds(verdict(incomplete, is_lossless=True, deaths=died)) == ["incomplete"]
    fault = PlannedFault(kind=FaultKind.LOG_LOSE, at_s=0, match="m1", on=Moment.SCORE)
    assert kinds(verdict(incomplete, is_lossless=True, deaths=died, faults=(fault,))) == []


def with_scores(complete: bool, team1: int = 8) -> Delivery:
    return delivery(result={"maps": [{"complete": complete, "winner": "team1", "team1Score": team1, "team2Score": 5}]})


def killed(*deliveries: Delivery, kind: FaultKind = FaultKind.ENTRY_DIE, **observed: Any) -> list[str]:
    """Judge a match of which entry 4 kills each process."""
    plan = Plan(seed=1, matches=(MATCH,), faults=(PlannedFault(kind=kind, at_s=0, match="m1", on=Moment.SCORE),))
    seen = Observations(matches={"m1": seen_match(*deliveries)}, **{"bugs": {"m1": 4}, **observed})
    reference = comparable(json.loads(with_scores(complete=True).body))
    return [violation.kind for violation in judge(plan, seen, {GAME: reference}).violations]


def test_entry_that_kills_costs_its_match_only_that_entry() -> None:
    aside: dict[str, Any] = {"set_aside": {"m1": [4]}}
    assert killed(with_scores(complete=False), **aside) == []
    assert killed(with_scores(complete=False), set_aside={}) == ["set aside"]
    assert killed(with_scores(complete=False), set_aside={"m1": [3, 4]}) == ["set aside", "set aside"]
    assert killed(with_scores(complete=True), **aside) == ["wrong number"], "it does not say so"
    assert killed(with_scores(complete=False, team1=7), **aside) == ["wrong number"]
    assert killed(canceled("all_players_left"), **aside) == ["wrong end"]


def test_match_fails_after_some_deaths_by_an_entry_of_the_service() -> None:
    failed, kind = canceled("server_failed"), FaultKind.RESUMED_DIE
    assert killed(failed, kind=kind, bug_deaths=11) == []
    assert killed(failed, kind=kind, bug_deaths=30) == ["deaths"]
    assert killed(failed, kind=kind, bug_deaths=0) == ["deaths"], "nothing was tried"
    assert killed(with_scores(complete=True), kind=kind, bug_deaths=11) == ["wrong end"]
    assert killed(bug_deaths=11, kind=kind) == ["lost"]
