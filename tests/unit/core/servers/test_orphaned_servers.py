"""Which servers without a match are released, and which are left to an operator."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.servers.orphaned_servers import (
    MAX_UNKNOWN,
    UNKNOWN_MS,
    KnownMatches,
    OrphanWatch,
    RunningServer,
    SweepPlan,
)

NEWEST = "srv_9"
OLD_MS = 10 * UNKNOWN_MS


def running(*server_ids: str, is_own: bool | None = True, age_ms: int = OLD_MS) -> list[RunningServer]:
    return [RunningServer(server_id=one, is_own=is_own, age_ms=age_ms) for one in server_ids]


def known(
    *open_ids: str, ended: tuple[str, ...] = (), withheld: dict[str, bool] | None = None, newest: str = NEWEST
) -> KnownMatches:
    return KnownMatches(open=open_ids, ended=ended, newest=newest, withheld=withheld or {})


def plan_later(servers: list[RunningServer], matches: KnownMatches, *, after_ms: int = UNKNOWN_MS) -> SweepPlan:
    """Plan the second of two sweeps."""
    watch = OrphanWatch()
    first = watch.plan(servers, matches, 0)
    assert not first.withhold
    return watch.plan(servers, matches, after_ms)


def test_leftover_is_released_once_it_was_unknown_for_minutes() -> None:
    servers = running("srv_1", "srv_2")
    assert plan_later(servers, known("srv_2"), after_ms=UNKNOWN_MS - 1) == SweepPlan()
    assert plan_later(servers, known("srv_2")) == SweepPlan(release=("srv_1",))


def test_first_sweep_releases_no_unknown_server_however_old() -> None:
    assert OrphanWatch().plan(running("srv_1", "srv_2"), known("srv_2"), 10**12) == SweepPlan()


def test_server_that_was_known_in_between_is_unknown_from_then_on() -> None:
    watch, servers = OrphanWatch(), running("srv_1", "srv_2")
    watch.plan(servers, known("srv_2"), 0)
    watch.plan(servers, known("srv_1", "srv_2"), 1)
    assert watch.plan(servers, known("srv_2"), UNKNOWN_MS) == SweepPlan()


def test_young_server_is_not_released() -> None:
    servers = [*running("srv_1", age_ms=UNKNOWN_MS - 1), *running("srv_2")]
    assert plan_later(servers, known("srv_2")) == SweepPlan()


def test_server_of_a_match_that_ended_here_is_released_at_once() -> None:
    """Also if an early version started it, and if it is the only one: only this database can know its match."""
    for is_own in (True, None):
        plan = OrphanWatch().plan(running("srv_1", is_own=is_own), known(ended=("srv_1",)), 0)
        assert plan == SweepPlan(release=("srv_1",))


def test_server_of_another_installation_is_never_released() -> None:
    for is_own in (False, None):
        servers = [*running("srv_1", is_own=is_own), *running("srv_2", "srv_3")]
        matches = known("srv_2", "srv_3", withheld={"srv_1": True})
        assert plan_later(servers, matches) == SweepPlan(foreign=("srv_1",), settled=("srv_1",))
    assert not OrphanWatch().plan(running("srv_1", is_own=False), known(ended=("srv_1",)), 0).release


def test_all_servers_of_a_region_are_withheld() -> None:
    assert plan_later(running("srv_1", "srv_2"), known()) == SweepPlan(withhold=("srv_1", "srv_2"))


def test_servers_of_others_do_not_make_all_of_ours_look_few() -> None:
    servers = [*running("srv_1"), *running("srv_2", "srv_3", is_own=False)]
    assert plan_later(servers, known()).withhold == ("srv_1",)


def test_more_than_a_few_servers_are_withheld() -> None:
    few = [f"srv_1{number}" for number in range(MAX_UNKNOWN)]
    assert plan_later(running(*few, "srv_5", "srv_6"), known("srv_5", "srv_6")).release == tuple(few)
    many = [*few, "srv_2"]
    plan = plan_later(running(*many, "srv_5", "srv_6"), known("srv_5", "srv_6"))
    assert plan == SweepPlan(withhold=tuple(many))


def test_many_that_become_old_one_after_the_other_are_not_released_one_by_one() -> None:
    young = running("srv_2", "srv_3", "srv_4", age_ms=0)
    plan = plan_later([*running("srv_1", "srv_5"), *young], known("srv_5"))
    assert plan == SweepPlan(withhold=("srv_1",))


def test_server_that_is_newer_than_all_matches_is_withheld() -> None:
    """As with a restored database: its match was created after the backup."""
    servers = running("srv_1", "srv_2", "srv_3")
    assert plan_later(servers, known("srv_1", "srv_2", newest="srv_2")) == SweepPlan(withhold=("srv_3",))


def test_withheld_server_stays_withheld_until_it_is_confirmed() -> None:
    """Also when the database has newer matches, and when the other servers are gone."""
    servers = running("srv_1", "srv_2")
    assert plan_later(servers, known("srv_2", withheld={"srv_1": False})).withhold == ("srv_1",)
    confirmed = OrphanWatch().plan(servers, known("srv_2", withheld={"srv_1": True}), 0)
    assert confirmed == SweepPlan(release=("srv_1",))


def test_withheld_server_that_is_gone_or_known_is_settled() -> None:
    withheld = {"srv_1": False, "srv_2": True}
    plan = plan_later(running("srv_2"), known("srv_2", withheld=withheld))
    assert plan == SweepPlan(settled=("srv_1", "srv_2"))


@given(
    own=st.sets(st.integers(1, 8)),
    foreign=st.sets(st.integers(11, 14)),
    open_ids=st.sets(st.integers(1, 14)),
    newest=st.integers(1, 14),
)
def test_no_open_match_and_no_server_of_others_is_ever_released(
    own: set[int], foreign: set[int], open_ids: set[int], newest: int
) -> None:
    servers = [*running(*(f"srv_{n:02}" for n in own)), *running(*(f"srv_{n:02}" for n in foreign), is_own=False)]
    matches = known(*(f"srv_{n:02}" for n in open_ids), newest=f"srv_{newest:02}")
    released = {int(one.removeprefix("srv_")) for one in plan_later(servers, matches).release}
    assert released <= own - open_ids
    assert len(released) <= MAX_UNKNOWN
    assert not released or released < own
