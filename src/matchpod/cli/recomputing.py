"""What would the statistics of ended matches be today? `matchpod recompute`: stored logs are read again and compared.

Nothing is written unless that is asked for. Exit code 1: the match could not be read again, or one of all failed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator
from io import TextIOWrapper
from time import monotonic
from typing import Annotated, Final

import msgspec
import typer

from matchpod.app import Ground
from matchpod.cli.opening import fail, run_on_ground
from matchpod.cli.pruning import retention_of
from matchpod.cli.terminal import NOTHING, harmless, say
from matchpod.core.history_query import read_server_id
from matchpod.core.text_rules import shown
from matchpod.service.history.differences import Difference, Part
from matchpod.service.history.recomputing import Finding, Place, Recompute, Verdict

SHOWN_DIFFERENCES: Final = 20
"""Of one match: enough to see what kind of change it is. `--json` has them all."""

SHOWN_CHARACTERS: Final = 80
"""Of one value; names and numbers are shorter."""

PROGRESS_S: Final = 5.0
"""How often a long run says how far it is."""

INTERRUPTED: Final = 130
"""The exit code of a program that Ctrl-C ended, by custom."""

_NOT_DONE: Final = (Verdict.SKIPPED, Verdict.FAILED)


def recompute(
    server_id: Annotated[str | None, typer.Argument(metavar="SERVER_ID", help="The match on this server.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All matches that have ended.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Store what differs, as the next version.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a match, with all differences.")] = False,
) -> None:
    """Read the stored log of ended matches again and show what today's rules would change.

    Only --write changes anything: maps, series and statistics, one match at a time. What callers were told in a
    callback stays as it was. Works while the service runs.
    """
    if (server_id is None) != every:
        fail("Name one server, or give --all.", code=2)
    if server_id is not None and read_server_id(server_id) is None:
        fail(f'"{shown(server_id)}" is not the id of a server: 1 to 64 letters, digits, _ and -.', code=2)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # names hold what a terminal may not be able to show
    if server_id is None:
        _recompute_all(write=write, as_json=json)
    else:
        _recompute_one(server_id, write=write, as_json=json)


def _recompute_one(server_id: str, *, write: bool, as_json: bool) -> None:
    async def work(ground: Ground) -> Finding | None:
        return await _recompute_on(ground).one(server_id, write=write)

    finding = run_on_ground(work)
    if finding is None:
        fail(f"There is no server {server_id}.", code=2)
    if as_json:
        _print_json(finding)
    elif finding.verdict not in _NOT_DONE:
        _print_text(finding)
    if finding.verdict in _NOT_DONE:
        fail(f"{server_id} was not recomputed. {harmless(finding.reason or '')}")
    if finding.differences and not write:
        say("Nothing was written; --write does that.")


def _recompute_all(*, write: bool, as_json: bool) -> None:
    tally = _Tally()

    async def work(ground: Ground) -> None:
        again = _recompute_on(ground)
        async for finding in tally.counted(again.all(write=write), await again.count()):
            if as_json:
                _print_json(finding)
            elif finding.differences:
                _print_text(finding)
            if finding.verdict is Verdict.FAILED:
                say(f"{finding.server_id} was not recomputed. {harmless(finding.reason or '')}")

    try:
        run_on_ground(work)
    except KeyboardInterrupt:
        say("Interrupted. Every match is as it was, or changed as a whole.")
        tally.tell(write=write)
        raise typer.Exit(INTERRUPTED) from None
    tally.tell(write=write)
    if tally.verdicts[Verdict.FAILED]:
        raise typer.Exit(1)


def _recompute_on(ground: Ground) -> Recompute:
    return Recompute(
        db=ground.db,
        places={region.code: Place(region.name, region.speed) for region in ground.settings.regions},
        events_since_ms=retention_of(ground.settings).events_from_ms(ground.clock.now_ms()),
    )


class _Tally:
    """What came of all matches so far."""

    def __init__(self) -> None:
        self.verdicts: Counter[Verdict] = Counter()
        self.reasons: Counter[str] = Counter()
        self.written = 0

    async def counted(self, findings: AsyncIterator[Finding], total: int) -> AsyncIterator[Finding]:
        """The same findings, counted; now and then a line says how many."""
        told_s = monotonic()
        async for finding in findings:
            self.verdicts[finding.verdict] += 1
            self.written += finding.is_written
            if finding.verdict is Verdict.SKIPPED:
                self.reasons[finding.reason or ""] += 1
            yield finding
            if monotonic() - told_s >= PROGRESS_S:
                told_s = monotonic()
                say(f"{self.verdicts.total()} of about {total} matches, {self._changed()} different")

    def tell(self, *, write: bool) -> None:
        """The sum at the end, and why matches were skipped."""
        parts = [f"{self.verdicts[verdict]} {verdict}" for verdict in Verdict if self.verdicts[verdict]]
        say(f"{_many(self.verdicts.total(), 'match', 'matches')}: {', '.join(parts) or 'none'}.")
        for reason, times in self.reasons.most_common():
            say(f"Skipped {times}: {harmless(reason)}")
        if write:
            say(f"{_many(self.written, 'match was', 'matches were')} written.")
        elif self._changed():
            say("Nothing was written; --write does that.")

    def _changed(self) -> int:
        return self.verdicts[Verdict.CHANGED] + self.verdicts[Verdict.NEW]


# --- findings as text ---------------------------------------------------------------------------------------------


def _print_json(finding: Finding) -> None:
    typer.echo(msgspec.json.encode(finding))


def _print_text(finding: Finding) -> None:
    differences = finding.differences
    if not differences:
        typer.echo(f"{finding.server_id}: nothing differs.")
        return
    if finding.verdict is Verdict.NEW:
        head = "nothing was stored of it"
    else:
        head = _many(len(differences), "difference", "differences")
    written = f", written as version {finding.stats_version}" if finding.is_written else ""
    typer.echo(f"{finding.server_id}: {head}{written}")
    for one in differences[:SHOWN_DIFFERENCES]:
        typer.echo(f"  {_line(one)}")
    if len(differences) > SHOWN_DIFFERENCES:
        typer.echo(f"  and {len(differences) - SHOWN_DIFFERENCES} more; --json shows them all")


def _line(one: Difference) -> str:
    place = "series" if one.map_number is None else f"map {one.map_number}"
    if one.part not in (Part.SERIES, Part.MAP):
        place += f" {one.part}"
    if one.steam_id is not None:
        place += f", {one.name or NOTHING} ({one.steam_id})"
    if one.field is None:
        return harmless(f"{place}: {'is new' if one.old is msgspec.UNSET else 'is gone'}")
    return harmless(f"{place}: {one.field} {_value(one.old)} -> {_value(one.new)}")


def _value(value: object) -> str:
    if value is msgspec.UNSET:
        return NOTHING
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _many(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
