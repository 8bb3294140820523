"""Tests of the report of a check of a region."""

from __future__ import annotations

from matchpod.core.servers.check_report import (
    CheckFinding,
    CheckItem,
    CheckState,
    CheckVerdict,
    ServerReport,
    compare_builds,
    is_healthy,
    server_report,
)


def finding(item: CheckItem, verdict: CheckVerdict = CheckVerdict.OK) -> CheckFinding:
    return CheckFinding(
        item=item, verdict=verdict, text="found", advice=None if verdict is CheckVerdict.OK else "do it"
    )


def test_findings_are_in_the_order_of_the_items() -> None:
    report = server_report("a", [finding(CheckItem.CLOCK), finding(CheckItem.RCON)])
    assert [one.item for one in report.findings] == [CheckItem.RCON, CheckItem.CLOCK]


def test_warning_and_unknown_leave_a_server_ok() -> None:
    report = server_report(
        "a", [finding(CheckItem.CLOCK, CheckVerdict.WARNING), finding(CheckItem.BUILD, CheckVerdict.UNKNOWN)]
    )
    assert report.state is CheckState.OK
    assert is_healthy([report])


def test_one_fault_is_enough() -> None:
    report = server_report("a", [finding(CheckItem.RCON), finding(CheckItem.PLUGIN, CheckVerdict.FAULT)])
    assert report.state is CheckState.FAULT
    assert not is_healthy([report])


def test_server_in_use_is_no_fault() -> None:
    assert is_healthy([ServerReport(server="a", state=CheckState.IN_USE)])


def test_older_build_than_that_of_another_server_is_a_fault() -> None:
    new = server_report("new", [finding(CheckItem.BUILD)], build=10700)
    old = server_report("old", [finding(CheckItem.RCON), finding(CheckItem.BUILD)], build=10650)
    unknown = server_report("unknown", [finding(CheckItem.BUILD, CheckVerdict.UNKNOWN)])
    kept, changed, silent = compare_builds([new, old, unknown])
    assert (kept, silent) == (new, unknown)
    assert changed.state is CheckState.FAULT
    assert [one.item for one in changed.findings] == [CheckItem.RCON, CheckItem.BUILD]
    assert changed.findings[-1].text == "Build 10650 is older than build 10700 of new."
    assert changed.findings[-1].advice


def test_builds_that_nobody_knows_are_not_compared() -> None:
    unknown = server_report("unknown", [])
    assert compare_builds([unknown]) == (unknown,)
    assert compare_builds([]) == ()
