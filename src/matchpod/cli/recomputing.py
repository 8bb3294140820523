"""Recompute the statistics of ended matches from their stored logs and show the differences: `matchpod recompute`.

Differences are stored only with --write. Exit code 1 if the match or, with --all, any match could not be recomputed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from time import monotonic
from typing import Annotated, Final

import msgspec
import typer

from matchpod.adapters.log_output import escape_unprintable
from matchpod.app import Resources
from matchpod.cli.resources import fail, record_act, run_with_resources
from matchpod.cli.terminal import NOTHING, print_note, replace_unencodable
from matchpod.core.requests.history_query import read_server_id
from matchpod.core.requests.text_rules import printable
from matchpod.service.access.audit import Action
from matchpod.service.history.differences import Difference, DifferencePart
from matchpod.service.history.recomputing import Finding, Recompute, RecomputeRegion, Verdict
from matchpod.storage import servers, stored_matches

SHOWN_DIFFERENCES: Final = 20
"""Maximum number of differences to print per match; enough to see the kind of change. `--json` prints all differences.
"""

SHOWN_CHARACTERS: Final = 80
"""Maximum number of characters to print per value. Names and numbers are shorter."""

PROGRESS_S: Final = 5.0
"""Interval in seconds at which a long run reports its progress."""

INTERRUPTED: Final = 130
"""The usual exit code of programs after Ctrl-C."""

_NOT_RECOMPUTED: Final = (Verdict.SKIPPED, Verdict.FAILED)


def recompute(
    server_id: Annotated[str | None, typer.Argument(metavar="SERVER_ID", help="The match on this server.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All matches that have ended.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Store the differences as the next version.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object per match, with all differences.")] = False,
) -> None:
    """Read the stored logs of ended matches again and show what the current rules would change.

    Only --write stores the changes, to maps, series and statistics, one match at a time. Results that were sent in
    callbacks do not change. The service may be running.
    """
    if (server_id is None) != every:
        fail("Give either a SERVER_ID or --all.", code=2)
    if server_id is not None and read_server_id(server_id) is None:
        fail(f'"{printable(server_id)}" is not a server id. Expected 1 to 64 letters, digits, _ and -.', code=2)
    replace_unencodable()
    if server_id is None:
        _recompute_all(write=write, as_json=json)
    else:
        _recompute_one(server_id, write=write, as_json=json)


def _recompute_one(server_id: str, *, write: bool, as_json: bool) -> None:
    async def work(resources: Resources) -> Finding | None:
        if write and (row := await servers.get(resources.db, server_id)) is not None:
            await record_act(resources, Action.RECOMPUTE_STARTED, org_id=row.org_id, target=row.id)
        return await _build_recompute(resources).one(server_id, write=write)

    finding = run_with_resources(work)
    if finding is None:
        fail(f"There is no server {server_id}.", code=2)
    if as_json:
        _print_json(finding)
    elif finding.verdict not in _NOT_RECOMPUTED:
        _print_text(finding)
    if finding.verdict in _NOT_RECOMPUTED:
        fail(f"{server_id} was not recomputed. {escape_unprintable(finding.reason or '')}")
    if finding.differences and not write:
        print_note("Nothing was written. Use --write to store the differences.")


def _recompute_all(*, write: bool, as_json: bool) -> None:
    tally = _Tally()

    async def work(resources: Resources) -> None:
        if write:
            await record_act(resources, Action.RECOMPUTE_STARTED, detail="all matches")
        recompute = _build_recompute(resources)
        async for finding in tally.count(recompute.all(write=write), await stored_matches.count(resources.db)):
            if as_json:
                _print_json(finding)
            elif finding.differences:
                _print_text(finding)
            if finding.verdict is Verdict.FAILED:
                print_note(f"{finding.server_id} was not recomputed. {escape_unprintable(finding.reason or '')}")

    try:
        run_with_resources(work)
    except KeyboardInterrupt:
        print_note("Interrupted. Each match is either unchanged or completely updated.")
        tally.print_summary(write=write)
        raise typer.Exit(INTERRUPTED) from None
    tally.print_summary(write=write)
    if tally.verdicts[Verdict.FAILED]:
        raise typer.Exit(1)


def _build_recompute(resources: Resources) -> Recompute:
    return Recompute(
        db=resources.db,
        regions={region.code: RecomputeRegion(region.name, region.speed) for region in resources.settings.regions},
        events_since_ms=resources.retention.events_from_ms(resources.clock.now_ms()),
    )


class _Tally:
    """Counts the verdicts on all matches of a run."""

    def __init__(self, progress_s: float = PROGRESS_S) -> None:
        self._progress_s = progress_s
        self.verdicts: Counter[Verdict] = Counter()
        self.reasons: Counter[str] = Counter()
        self.written = 0

    async def count(self, findings: AsyncIterator[Finding], total: int) -> AsyncIterator[Finding]:
        """Count findings and yield them unchanged. Print the progress every few seconds."""
        printed_s = monotonic()
        async for finding in findings:
            self.verdicts[finding.verdict] += 1
            self.written += finding.is_written
            if finding.verdict is Verdict.SKIPPED:
                self.reasons[finding.reason or ""] += 1
            yield finding
            if monotonic() - printed_s >= self._progress_s:
                printed_s = monotonic()
                print_note(f"{self.verdicts.total()} of about {total} matches, {self._changed()} different")

    def print_summary(self, *, write: bool) -> None:
        """Print how many matches had each verdict, and why matches were skipped."""
        parts = [f"{self.verdicts[verdict]} {verdict}" for verdict in Verdict if self.verdicts[verdict]]
        print_note(f"{_plural(self.verdicts.total(), 'match', 'matches')}: {', '.join(parts) or 'none'}.")
        for reason, times in self.reasons.most_common():
            print_note(f"Skipped {times}: {escape_unprintable(reason)}")
        if write:
            print_note(f"{_plural(self.written, 'match was', 'matches were')} written.")
        elif self._changed():
            print_note("Nothing was written. Use --write to store the differences.")

    def _changed(self) -> int:
        return self.verdicts[Verdict.CHANGED] + self.verdicts[Verdict.NEW]


# --- findings as text ---------------------------------------------------------------------------------------------


def _print_json(finding: Finding) -> None:
    typer.echo(msgspec.json.encode(finding))


def _print_text(finding: Finding) -> None:
    differences = finding.differences
    if not differences:
        typer.echo(f"{finding.server_id}: no differences.")
        return
    if finding.verdict is Verdict.NEW:
        head = "no stored history"
    else:
        head = _plural(len(differences), "difference", "differences")
    written = f", written as version {finding.stats_version}" if finding.is_written else ""
    typer.echo(f"{finding.server_id}: {head}{written}")
    for difference in differences[:SHOWN_DIFFERENCES]:
        typer.echo(f"  {_format_difference(difference)}")
    if len(differences) > SHOWN_DIFFERENCES:
        typer.echo(f"  and {len(differences) - SHOWN_DIFFERENCES} more; --json shows them all")


def _format_difference(difference: Difference) -> str:
    subject = "series" if difference.map_number is None else f"map {difference.map_number}"
    if difference.part not in (DifferencePart.SERIES, DifferencePart.MAP):
        subject += f" {difference.part}"
    if difference.steam_id is not None:
        subject += f", {difference.name or NOTHING} ({difference.steam_id})"
    if difference.field is None:
        return escape_unprintable(f"{subject}: {'is new' if difference.old is msgspec.UNSET else 'is gone'}")
    return escape_unprintable(
        f"{subject}: {difference.field} {_format_value(difference.old)} -> {_format_value(difference.new)}"
    )


def _format_value(value: object) -> str:
    if value is msgspec.UNSET:
        return NOTHING
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _plural(number: int, singular: str, plural: str) -> str:
    return f"{number} {singular if number == 1 else plural}"
