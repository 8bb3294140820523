"""Define the result of a region check: one report per game server, with one finding per check.

A finding is OK, or describes a problem and what to do about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

MAX_TEXT: Final = 500
"""Maximum length of a finding's text that quotes the output of a server or the error of a library."""


class CheckItem(StrEnum):
    """The checks of a game server with their labels, in the order in which they are shown."""

    label: str

    def __new__(cls, value: str, label: str) -> CheckItem:
        item = str.__new__(cls, value)
        item._value_, item.label = value, label
        return item

    START = "start", "start"
    RCON = "rcon", "RCON"
    USERCON = "usercon", "-usercon"
    PASSWORD = "password", "password"
    ROUND_TRIP = "round_trip", "round trip"
    BUILD = "build", "game build"
    GAMEINFO = "gameinfo", "gameinfo.gi"
    PLUGIN = "plugin", "plugin"
    LOGIN_TOKEN = "login_token", "login token"
    IDLE = "idle", "players"
    LOG_ADDRESS = "log_address", "log address"
    LOG_POST = "log_post", "log post"
    CLOCK = "clock", "clock"


class CheckVerdict(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    """Matches can be played, but an operator should look at the finding."""
    FAULT = "fault"
    """All or some matches fail, or players cannot join."""
    UNKNOWN = "unknown"
    """The check could not be completed."""


class CheckState(StrEnum):
    """The overall result of the check of a server."""

    OK = "ok"
    FAULT = "fault"
    IN_USE = "in_use"
    """Not checked, because a match of this or another installation uses the server."""
    NOT_CHECKED = "not_checked"
    CHECKING = "checking"
    """The check is in progress; the report is not complete."""


class CheckFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check of a server."""

    item: Annotated[CheckItem, Meta(description="What was checked.")]
    verdict: Annotated[
        CheckVerdict,
        Meta(
            description="`fault`: matches fail, or players cannot join. `warning`: matches can be played. `unknown`: "
            "it could not be found out."
        ),
    ]
    text: Annotated[str, Meta(description="What was found, as text for people.")]
    advice: Annotated[str | None, Meta(description="What to do; null if nothing is wrong.")] = None


class ServerReport(msgspec.Struct, frozen=True, kw_only=True):
    """The check of one game server."""

    server: Annotated[str, Meta(description="Its address, its port, or the name of its pod.")]
    state: Annotated[
        CheckState,
        Meta(
            description="`ok`: no finding is a fault. `in_use`: a match uses it, so it was left alone. `not_checked`: "
            "`note` says why. `checking`: the report is not complete."
        ),
    ]
    note: Annotated[str | None, Meta(description="Why it was not checked, or who uses it.")] = None
    findings: Annotated[
        tuple[CheckFinding, ...], Meta(description="What was found, in the order of the questions.")
    ] = ()
    build: Annotated[int | None, Meta(description="The build number of its game; null if unknown.")] = None


def server_report(server: str, findings: Iterable[CheckFinding], *, build: int | None = None) -> ServerReport:
    """Return the report of a server that was checked."""
    items = tuple(CheckItem)
    ordered = tuple(sorted(findings, key=lambda finding: items.index(finding.item)))
    is_faulty = any(finding.verdict is CheckVerdict.FAULT for finding in ordered)
    state = CheckState.FAULT if is_faulty else CheckState.OK
    return ServerReport(server=server, state=state, findings=ordered, build=build)


def compare_builds(reports: Sequence[ServerReport]) -> tuple[ServerReport, ...]:
    """Return the reports, with a fault added for each server whose game build is older than another server's build."""
    newest = max(reports, key=lambda report: report.build or 0, default=None)
    if newest is None or newest.build is None:
        return tuple(reports)
    return tuple(
        _with_older_build(report, newest) if report.build is not None and report.build < newest.build else report
        for report in reports
    )


def is_healthy(reports: Iterable[ServerReport]) -> bool:
    """True if no server has a fault; servers that are in use or were not checked do not count."""
    return not any(report.state is CheckState.FAULT for report in reports)


def _with_older_build(report: ServerReport, newest: ServerReport) -> ServerReport:
    older = CheckFinding(
        item=CheckItem.BUILD,
        verdict=CheckVerdict.FAULT,
        text=f"Build {report.build} is older than build {newest.build} of {newest.server}.",
        advice=UPDATE,
    )
    others = (finding for finding in report.findings if finding.item is not CheckItem.BUILD)
    return server_report(report.server, (*others, older), build=report.build)


UPDATE: Final = "Update the server: players whose game is newer cannot join it."
