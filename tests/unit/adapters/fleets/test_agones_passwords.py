"""How many servers may be tried, and when a fleet is stopped because they reject its passwords."""

from __future__ import annotations

import pytest

from matchpod.adapters.fleets.agones_passwords import MAX_MISMATCHES, PROVEN_S, Fit, MismatchCount

OLD, NEW = (b"the old secret of the fleet",), (b"the new secret of the fleet",)


@pytest.fixture
def count() -> MismatchCount:
    count = MismatchCount()
    assert not count.change_secrets(OLD)
    return count


def record(count: MismatchCount, *fits: Fit) -> None:
    for fit in fits:
        count.record(fit, 0.0)


def test_fleet_is_stopped_by_several_mismatches_in_a_row(count: MismatchCount) -> None:
    record(count, *[Fit.NONE] * (MAX_MISMATCHES - 1))
    assert not count.is_stopped
    record(count, Fit.NONE)
    assert count.is_stopped


@pytest.mark.parametrize("fit", [Fit.CURRENT, Fit.PREVIOUS])
def test_server_that_fits_either_secret_ends_the_row(count: MismatchCount, fit: Fit) -> None:
    record(count, Fit.NONE, Fit.NONE, fit, Fit.NONE, Fit.NONE)
    assert not count.is_stopped


def test_only_another_secret_begins_anew(count: MismatchCount) -> None:
    record(count, *[Fit.NONE] * MAX_MISMATCHES)
    assert not count.change_secrets(OLD)
    assert count.is_stopped
    assert count.change_secrets(NEW)
    assert not count.is_stopped


def test_without_a_recent_proof_only_as_many_are_tried_at_once_as_may_fail(count: MismatchCount) -> None:
    for number in range(MAX_MISMATCHES):
        assert count.may_try(0.0), number
        count.in_flight += 1
    assert not count.may_try(0.0)
    record(count, Fit.CURRENT)
    assert count.may_try(PROVEN_S - 0.1)
    assert not count.may_try(PROVEN_S)


def test_mismatch_withdraws_the_proof_and_leaves_fewer_attempts(count: MismatchCount) -> None:
    record(count, Fit.CURRENT, Fit.NONE)
    count.in_flight = MAX_MISMATCHES - 2
    assert count.may_try(0.0)
    count.in_flight += 1
    assert not count.may_try(0.0)


def test_other_secret_withdraws_the_proof(count: MismatchCount) -> None:
    record(count, Fit.CURRENT)
    count.change_secrets(NEW)
    count.in_flight = MAX_MISMATCHES
    assert not count.may_try(0.0)
