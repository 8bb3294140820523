"""Which errors are faults of the machine, and how long a region waits after one."""

from __future__ import annotations

import errno
import os

import pytest

from matchpod.ports import ConsoleLostError, FleetError
from matchpod.service.runner.machine_faults import (
    FIRST_PAUSE_MS,
    MACHINE_ERRORS,
    MAX_PAUSE_MS,
    MachineFaults,
    is_machine_fault,
)

EU = "eu"


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("number", MACHINE_ERRORS, ids=errno.errorcode.get)
def test_error_is_the_fault_of_the_machine_if_its_cause_is(number: int) -> None:
    cause = OSError(number, os.strerror(number))
    assert is_machine_fault(caused(FleetError("the server cannot be started"), cause))
    assert is_machine_fault(caused(FleetError("not ready"), caused(ConsoleLostError("no connection"), cause)))


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.ECONNREFUSED, errno.ETIMEDOUT])
def test_other_errors_are_the_fault_of_the_server(number: int) -> None:
    assert not is_machine_fault(caused(FleetError("the server cannot be started"), OSError(number, "")))
    assert not is_machine_fault(FleetError("the server exited while it was starting"))
    assert not is_machine_fault(TimeoutError())


def test_one_match_tries_again_after_a_pause_that_doubles() -> None:
    faults, now_ms, pauses_ms = MachineFaults(), 0, list[int]()
    assert faults.may_start(EU, now_ms)
    for _ in range(7):
        until_ms = faults.record(EU, now_ms)
        pauses_ms.append(until_ms - now_ms)
        assert not faults.may_start(EU, until_ms - 1)
        assert faults.is_paused(EU, until_ms - 1)
        assert not faults.is_paused(EU, until_ms)
        assert [faults.may_start(EU, until_ms) for _ in range(3)] == [True, False, False]
        now_ms = until_ms + 500
    assert pauses_ms == [FIRST_PAUSE_MS * factor for factor in (1, 2, 4, 8, 16)] + [MAX_PAUSE_MS] * 2


def test_matches_that_fail_together_make_the_pause_no_longer() -> None:
    faults = MachineFaults()
    assert {faults.record(EU, now_ms) for now_ms in (0, 1, 500)} == {FIRST_PAUSE_MS}


def test_region_is_free_after_a_success_and_other_regions_always_are() -> None:
    faults = MachineFaults()
    faults.record(EU, 0)
    assert faults.may_start("us", 0)
    faults.clear(EU)
    assert faults.may_start(EU, 0)
    assert faults.record(EU, 10) == 10 + FIRST_PAUSE_MS
