"""Divide the life of a match into stages: creation, server, maps and callback."""

from __future__ import annotations

import msgspec

from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import MatchType
from matchpod.service.reading.match_details import MatchDetail


class LifeStage(msgspec.Struct, frozen=True, kw_only=True):
    """A stage in a match's life; `end_ms` is None until the stage ends."""

    name: str
    start_ms: int
    end_ms: int | None
    note: str = ""
    is_bad: bool = False


def spans_of(match: MatchDetail) -> list[LifeStage]:
    ended_ms = match.ended_at_ms
    spans = [_server_span(match)]
    started = [played for played in match.maps if played.started_at_ms is not None]
    first_ms = started[0].started_at_ms if started else None
    is_deathmatch = match.settings.match_type is MatchType.DEATHMATCH
    if match.running_at_ms is not None:
        spans.append(LifeStage(name="warmup", start_ms=match.running_at_ms, end_ms=first_ms or ended_ms))
    for played in started:
        if played.started_at_ms is not None:
            is_canceled = played.status is MapStatus.CANCELLED
            score = "" if is_deathmatch else f"{played.team1_score}:{played.team2_score}"
            note = ", ".join(filter(None, (score, "canceled" if is_canceled else "")))
            end_ms = played.finished_at_ms or ended_ms
            name = f"map {played.map_number}, {played.name}"
            spans.append(
                LifeStage(name=name, start_ms=played.started_at_ms, end_ms=end_ms, note=note, is_bad=is_canceled)
            )
    if ended_ms is not None:
        note, is_bad = _outcome(match), match.reason is not None
        spans.append(LifeStage(name="outcome", start_ms=ended_ms, end_ms=ended_ms, note=note, is_bad=is_bad))
        spans += _callback_spans(match)
    if match.acknowledged is not None and match.acknowledged.who:
        at_ms = match.acknowledged.at_ms
        spans.append(LifeStage(name="acknowledged", start_ms=at_ms, end_ms=at_ms, note=f"by {match.acknowledged.who}"))
    return spans


def placed(spans: list[LifeStage], now_ms: int) -> list[tuple[LifeStage, float, float]]:
    """Return each stage with its start and width on a scale from 0 to 100; an open stage ends at `now_ms`."""
    first = min(span.start_ms for span in spans)
    ends_ms = [now_ms if span.end_ms is None else span.end_ms for span in spans]
    scale = 100 / max(1, max(ends_ms) - first)
    return [
        (span, round((span.start_ms - first) * scale, 2), round(max(0.6, (end_ms - span.start_ms) * scale), 2))
        for span, end_ms in zip(spans, ends_ms, strict=True)
    ]


def _server_span(match: MatchDetail) -> LifeStage:
    note = "" if not match.tries else f"try {match.tries + 1}"
    failed = match.running_at_ms is None and match.ended_at_ms is not None
    if failed and match.error:
        note = ", ".join(filter(None, (note, match.error)))
    end_ms = match.running_at_ms or match.ended_at_ms
    return LifeStage(name="getting a server", start_ms=match.created_at_ms, end_ms=end_ms, note=note, is_bad=failed)


def _callback_spans(match: MatchDetail) -> list[LifeStage]:
    spans = []
    for callback in match.callbacks:
        times = "1 attempt" if callback.attempt_count == 1 else f"{callback.attempt_count} attempts"
        problem = (
            ""
            if callback.state == "delivered"
            else (callback.last_error or (callback.last_status and str(callback.last_status)) or "")
        )
        note = ", ".join(filter(None, (callback.state.replace("_", " "), times, problem)))
        start_ms = match.ended_at_ms or match.created_at_ms
        is_waiting = callback.state == "waiting"
        spans.append(
            LifeStage(
                name="callback",
                start_ms=start_ms,
                end_ms=None if is_waiting else start_ms,
                note=note,
                is_bad=callback.state == "given_up",
            )
        )
    return spans


def _outcome(match: MatchDetail) -> str:
    return "finished" if match.reason is None else match.reason.replace("_", " ")
