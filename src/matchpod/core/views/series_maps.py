"""Determine which map of a match is loaded or loading, and the state of all its maps.

The loaded map is the first map that is not over, or the last map once all are over. So between two maps, the loaded map
is the next one, which has no score yet. All views of a match use these functions: the live view, the card, lists and
the organization's stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from matchpod.core.match.phases import MatchPhase
from matchpod.core.match.played_map import MapStatus, PlayedMap
from matchpod.core.match.state import MatchState
from matchpod.core.model import GameSettings, Winner
from matchpod.core.views.result_shapes import MapState, Score, SeriesScore
from matchpod.core.views.shown_text import sanitize


def loaded_map(match: MatchState) -> PlayedMap:
    """Return the map that is loaded or loading; for an ended match, the last map."""
    return next((played for played in _maps(match) if not played.is_finished), match.current_map)


def loaded_number(maps: Sequence[MapState]) -> int | None:
    """Return the number of the map that is loaded or loading, from the states of all maps; None if there are none."""
    unfinished = (state.number for state in maps if state.status is not MapStatus.FINISHED)
    return next(unfinished, maps[-1].number if maps else None)


def unplayed_maps(match: MatchState) -> Iterator[PlayedMap]:
    """Yield the maps of the series that have not been started. They are canceled if the match is over."""
    for number in range(match.current_map.number + 1, _length(match.settings) + 1):
        played = PlayedMap.upcoming(match.settings, number)
        if match.phase is MatchPhase.OVER:
            played.cancel()
        yield played


def map_states(match: MatchState) -> tuple[MapState, ...]:
    """Return the maps that were played or may still be played, in order."""
    return tuple(map(_state, _maps(match)))


def state_then(
    match: MatchState, number: int, *, status: MapStatus, score: Score | None, winner: Winner | None = None
) -> MapState:
    return replace(_state(match.maps[number - 1]), status=status, score=score, winner=winner)


def map_states_at(match: MatchState, current: MapState) -> tuple[MapState, ...]:
    """Return what `map_states` returned at the time when the map `current` had this state."""
    known = (*map(_state, match.maps[: current.number - 1]), current)
    is_last = _is_final(match, current)
    if is_last or match.reported.rules.is_decided(_winners(known)):
        return known
    later = range(current.number + 1, _length(match.settings) + 1)
    return (*known, *(_state(PlayedMap.upcoming(match.settings, number)) for number in later))


def series_score_of(match: MatchState) -> SeriesScore | None:
    """Return the maps won by each team; None if the match is not a series."""
    return SeriesScore(*match.series_score) if match.settings.match_type.has_series else None


def series_score_at(match: MatchState, current: MapState) -> SeriesScore | None:
    """Return what `series_score_of` returned at the time when the map `current` had this state."""
    if _is_final(match, current) or not match.settings.match_type.has_series:
        return series_score_of(match)
    before = map(_state, match.maps[: current.number - 1])
    return SeriesScore(*match.reported.rules.score(_winners((*before, current))))


def _is_final(match: MatchState, current: MapState) -> bool:
    """True if a finished match ended with this map."""
    is_end = current.status is MapStatus.FINISHED and current.number == match.current_map.number
    return is_end and match.outcome is not None and match.outcome.is_finished


def _maps(match: MatchState) -> Iterator[PlayedMap]:
    if match.outcome is None or not match.outcome.is_finished:
        yield from match.maps
        yield from unplayed_maps(match)
        return
    # Unplayed maps are left out. The current map is unplayed if a team forfeited before it began.
    yield from (played for played in match.maps if played.status is not MapStatus.CANCELLED)


def _state(played: PlayedMap) -> MapState:
    return MapState(
        name=sanitize(played.name),
        number=played.number,
        status=played.status,
        score=Score(played.team1_score, played.team2_score) if played.is_scored else None,
        winner=played.winner,
    )


def _winners(maps: Iterable[MapState]) -> list[Winner]:
    return [state.winner for state in maps if state.winner is not None]


def _length(settings: GameSettings) -> int:
    return settings.map_count if settings.match_type.has_series else 1
