"""Judge a round: pure functions from the plan and the observations to violations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tests.chaos.observed import Death, Delivery, MatchSeen, Observations
from tests.chaos.plan import (
    ACCEPTING,
    CANCELED_BY_USER,
    MATCH_OVER,
    SERVER_LOST,
    FaultKind,
    GameSpec,
    Plan,
    PlannedMatch,
)
from tests.contract.same_result import differences, incomplete_mvps

MAX_ATTEMPTS = 2
"""Attempts per callback as documented for callers."""

MAX_OWN_DEATHS = 14
"""How many processes an entry of the service itself may kill: the match fails after ten, and a few may be under way."""

DYING_S = 20.0
"""A callback may be repeated if the replica that sent it died up to this long after the receiver accepted it: until
then the attempt may not have been recorded."""

OVERLOADED = 0.5
"""If the host takes this share of the CPU for ten seconds, any game server may be silent so long that it is lost."""

IDENTITY = ("serverId", "sessionId", "externalMatchId", "timestamp")
"""Fields that differ between two runs of the same game."""


class Violation(msgspec.Struct, frozen=True):
    """A broken promise: `lost`, `second outcome`, `wrong end`, `wrong number`, `incomplete`, `set aside`, `deaths`,
    `repeated`, `leaked`, `refused` or `stuck`.
    """

    kind: str
    match: str
    text: str


class Difference(msgspec.Struct, frozen=True):
    """A field that differs from the undisturbed run, and is marked as unknown or as counted from part of the log."""

    match: str
    field: str
    found: str
    expected: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The judgment of one round."""

    violations: tuple[Violation, ...]
    differences: tuple[Difference, ...] = ()
    repeats: int = 0
    """Callbacks delivered again, with the same id and bytes, after a replica died."""
    ends: Mapping[str, int] = {}
    overload_losses: int = 0
    """Servers that were lost without a fault, because the host took the CPU."""


def judge(plan: Plan, seen: Observations, reference: Mapping[GameSpec, Mapping[str, Any]]) -> Verdict:
    """Return all violations of a round."""
    violations: list[Violation] = []
    marked: list[Difference] = []
    ends: Counter[str] = Counter()
    repeats = overload_losses = 0
    for match in plan.matches:
        one = seen.matches[match.name]
        expected = plan.expected_ends(match)
        if seen.stolen_share >= OVERLOADED and end_of(one) == SERVER_LOST and SERVER_LOST not in expected:
            overload_losses += 1
            expected |= {SERVER_LOST}
        violations += [
            *judge_creation(match, one),
            *judge_deliveries(match, one, seen.deaths),
            *judge_end(match, one, expected),
        ]
        repeats += count_repeats(one)
        ends[end_of(one) or "none"] += 1
        if end_of(one) == MATCH_OVER and match.game in reference:
            unmarked, allowed = compare_numbers(match, one, reference[match.game])
            violations += unmarked
            marked += allowed
            if plan.is_lossless and not plan.loses_lines(match):
                violations += judge_missing(match, allowed, seen.deaths)
    violations += judge_set_aside(plan, seen)
    violations += judge_killers(plan, seen, reference)
    violations += [Violation("stuck", "", "it did not become quiet in time")] if seen.is_stuck else []
    violations += [Violation("leaked", "", item) for item in seen.leftovers.items()]
    violations += [Violation("error", "", text) for text in seen.errors]
    violations += [Violation("second outcome", path, "callback at an unknown path") for path in seen.stray_paths]
    return Verdict(
        violations=tuple(violations),
        differences=tuple(marked),
        repeats=repeats,
        ends=dict(ends),
        overload_losses=overload_losses,
    )


def judge_creation(match: PlannedMatch, seen: MatchSeen) -> Iterator[Violation]:
    """A match is created once, although the request is repeated until it is answered."""
    if seen.server_id is None:
        yield Violation("refused", match.name, f"not created: {[answer.status for answer in seen.creates]}")
    if len(seen.server_ids) > 1:
        yield Violation("second outcome", match.name, f"created more than once: {sorted(seen.server_ids)}")
    for answer in (*seen.creates, *seen.cancels):
        if answer.status not in (0, 200, 201, 409, 502, 503):
            yield Violation("refused", match.name, f"unexpected status {answer.status}: {answer.json}")


def judge_deliveries(match: PlannedMatch, seen: MatchSeen, deaths: list[Death]) -> Iterator[Violation]:
    """A callback has one id and one body, and is repeated only after a failure or after the death of a replica."""
    got = seen.deliveries
    if not got:
        yield Violation("lost", match.name, "no callback arrived")
        return
    if match.receiver in ACCEPTING and not any(one.is_accepted for one in got):
        yield Violation("lost", match.name, f"no callback was accepted, in {len(got)} attempts")
    if len({(one.id, one.body) for one in got}) > 1:
        yield Violation("second outcome", match.name, f"callbacks differ: {[(one.id, one.body) for one in got]}")
    if not all(one.is_signed for one in got):
        yield Violation("second outcome", match.name, "a callback has no valid signature")
    for first, later in _repeats(got):
        if not _has_death(deaths, first.at_s, later.at_s):
            text = f"accepted at {first.at_s:.1f} s and sent again at {later.at_s:.1f} s although no replica died"
            yield Violation("repeated", match.name, text)
    died = sum(1 for death in deaths if death.until_s >= got[0].at_s)
    if len(got) > MAX_ATTEMPTS + died:
        yield Violation("repeated", match.name, f"{len(got)} attempts, with {died} deaths")


def count_repeats(seen: MatchSeen) -> int:
    """Return how many callbacks were sent again after they were accepted."""
    return sum(1 for _ in _repeats(seen.deliveries))


def _repeats(got: list[Delivery]) -> Iterator[tuple[Delivery, Delivery]]:
    for index, first in enumerate(got):
        if first.is_accepted:
            for later in got[index + 1 :]:
                yield first, later
            return


def _has_death(deaths: list[Death], from_s: float, until_s: float) -> bool:
    return any(death.from_s <= until_s and death.from_s >= from_s - DYING_S for death in deaths)


def end_of(seen: MatchSeen) -> str | None:
    """Return how a match ended according to its callback: `match_over` or the reason; None without a callback."""
    if not seen.deliveries:
        return None
    body = json.loads(seen.deliveries[0].body)
    return str(body.get("reason") or body["eventType"])


def judge_end(match: PlannedMatch, seen: MatchSeen, expected: frozenset[str]) -> Iterator[Violation]:
    """The match ended as planned, and the API and the callback tell the same."""
    end = end_of(seen)
    if end is None:
        return
    if end not in expected:
        yield Violation("wrong end", match.name, f"{end}, expected {sorted(expected)}")
    confirmed = [answer.status for answer in seen.cancels if answer.status]
    if 200 in confirmed and end != CANCELED_BY_USER:
        yield Violation("wrong end", match.name, f"its cancellation was confirmed, but it ended with {end}")
    if 409 in confirmed and end == CANCELED_BY_USER and 200 not in confirmed:
        yield Violation("wrong end", match.name, "its cancellation was rejected, but it was canceled")
    callback = json.loads(seen.deliveries[0].body)
    if seen.final is None or seen.final.status != 200:
        yield Violation("lost", match.name, f"not found by its external id: {seen.final}")
        return
    if seen.final.json["result"] != callback.get("result"):
        yield Violation("second outcome", match.name, "the API returns another result than the callback")
    if callback["serverId"] != seen.server_id or callback["externalMatchId"] != match.name:
        yield Violation("second outcome", match.name, "the callback names another match")
    if seen.server is None or seen.server.json.get("status") not in ("stopped", "failed"):
        yield Violation("leaked", match.name, f"its server has not ended: {seen.server}")


def compare_numbers(
    match: PlannedMatch, seen: MatchSeen, reference: Mapping[str, Any]
) -> tuple[list[Violation], list[Difference]]:
    """Compare a result with that of the undisturbed run: return unmarked differences and marked ones."""
    callback = comparable(json.loads(seen.deliveries[0].body))
    incomplete, mvps = paths_of_incomplete_maps(callback), incomplete_mvps(callback)
    unmarked, marked = [], []
    for path, (found, expected) in differences(callback, dict(reference)).items():
        # Unknown is null or left out. An end is never wrong, whatever is missing of the log.
        is_partial = path.startswith(incomplete) and not path.rpartition(".")[2].startswith("winner")
        if found is None or is_partial or path in mvps:
            marked.append(Difference(match.name, path, str(found)[:200], str(expected)[:200]))
        else:
            text = f"{path} is {str(found)[:200]}, but {str(expected)[:200]} in the undisturbed run"
            unmarked.append(Violation("wrong number", match.name, text))
    return unmarked, marked


def judge_missing(match: PlannedMatch, marked: list[Difference], deaths: list[Death]) -> Iterator[Violation]:
    """Nothing is missing; if a replica died, only lines of the log count: plugins send their reports only once."""
    for one in marked:
        if not deaths or one.field.endswith(".complete"):
            text = f"{one.field} is {one.found}, but {one.expected} in the undisturbed run"
            yield Violation("incomplete", match.name, text)


def judge_set_aside(plan: Plan, seen: Observations) -> Iterator[Violation]:
    """Only an entry that cannot be applied is set aside."""
    for name, entries in seen.set_aside.items():
        others = [seq for seq in entries if seq != seen.bugs.get(name)]
        if others and name != plan.hit_by(FaultKind.RESUMED_DIE):
            yield Violation("set aside", name, f"nothing is wrong with its entries {others}")


def judge_killers(
    plan: Plan, seen: Observations, reference: Mapping[GameSpec, Mapping[str, Any]]
) -> Iterator[Violation]:
    """An entry that kills each process is set aside, and costs the match nothing but its lines. If the service appended
    it, the match fails soon.
    """
    if plan.hit_by(FaultKind.RESUMED_DIE) is not None and not 1 < seen.bug_deaths <= MAX_OWN_DEATHS:
        yield Violation("deaths", plan.hit_by(FaultKind.RESUMED_DIE) or "", f"{seen.bug_deaths} processes died")
    for match in plan.matches:
        one = seen.matches[match.name]
        if plan.hit_by(FaultKind.ENTRY_DIE) != match.name or end_of(one) is None:
            continue
        if seen.set_aside.get(match.name) != [seen.bugs.get(match.name)]:
            text = f"entries {seen.set_aside.get(match.name)} were set aside, not {seen.bugs.get(match.name)}"
            yield Violation("set aside", match.name, text)
        if end_of(one) != MATCH_OVER:
            yield Violation("wrong end", match.name, f"{end_of(one)} because of one entry")
            continue
        found, expected = (callback["result"]["maps"] for callback in (_callback(one), reference[match.game]))
        if all(played["complete"] for played in found):
            yield Violation("wrong number", match.name, "its result does not say that an entry is missing")
        scores = [[(played["team1Score"], played["team2Score"]) for played in maps] for maps in (found, expected)]
        if scores[0] != scores[1]:
            yield Violation("wrong number", match.name, f"its scores are {scores[0]}, not {scores[1]}")


def _callback(seen: MatchSeen) -> Any:
    return json.loads(seen.deliveries[0].body)


def paths_of_incomplete_maps(callback: Mapping[str, Any]) -> tuple[str, ...]:
    """Return where the numbers of maps are that say that parts of their log are missing, and sums over them."""
    result = callback.get("result") or {}
    if result.get("complete") is False:  # a deathmatch
        return (".result",)
    maps = [f".result.maps[{index}]" for index, one in enumerate(result.get("maps", ())) if not one["complete"]]
    sums = (".result.overall", ".result.antiCheat", ".result.team1.totalRounds", ".result.team2.totalRounds")
    return (*maps, *sums) if maps else ()


def comparable(callback: Mapping[str, Any]) -> dict[str, Any]:
    """Return a callback without the fields that differ between two runs of the same game."""
    return {name: value for name, value in callback.items() if name not in IDENTITY}
