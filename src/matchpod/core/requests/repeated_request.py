"""Format the settings of a match as a create request, to show them or to create the same match again."""

from __future__ import annotations

from collections.abc import Mapping

from matchpod.core.model import CvarSetting, GameSettings, MapsWon, OnNoShow, Overtime, TeamRoster
from matchpod.core.requests import request_table as table
from matchpod.core.requests.json_fields import AnyField


def settings_body(settings: GameSettings, labels: Mapping[str, str]) -> dict[str, object]:
    """Return the `gameSettings` that create the same match, except for its password, which is stored separately."""
    first, *others = dict.fromkeys(settings.maps)
    has_listed_team = any(team is not None and team.players for team in (settings.team1, settings.team2))
    values: tuple[tuple[AnyField, object], ...] = (
        (table.MATCH_TYPE, settings.match_type.value),
        (table.MAP, first),
        (table.MAPS, others),
        (table.SERIES_FORMAT, settings.series_format.value),
        (table.MAPS_WON, _maps_won(settings.maps_won)),
        (table.SIDES, [sides.value for sides in settings.sides]),
        (table.TEAMS, _teams(settings)),
        (table.SPECTATORS, settings.spectators),
        (table.ON_NO_SHOW, None if settings.on_no_show is OnNoShow.CANCEL else settings.on_no_show.value),
        (table.AUTO_START, None if settings.auto_start else False),
        (table.RECORD_DEMO, settings.record_demo if has_listed_team else None),
        (table.PLAYERS, settings.players),
        (table.DM_SUB_MODE, settings.dm_sub_mode and settings.dm_sub_mode.value),
        (table.DM_ROUND_MINUTES, settings.dm_round_minutes),
        (table.JOIN_SECONDS, settings.join_seconds),
        (table.FREEZE_TIME, settings.freeze_time),
        (table.MAX_ROUNDS, settings.max_rounds),
        (table.OVERTIME, None if settings.overtime is None else _overtime(settings.overtime)),
        (table.CUSTOM_CVARS, "\n".join(map(_line, settings.custom_cvars))),
        (table.LABELS, dict(labels)),
    )
    return {
        field.name: value
        for field, value in values
        if field.is_for(settings.match_type) and value not in (None, "", [], (), {})
    }


def _maps_won(given: MapsWon) -> dict[str, int]:
    return {} if given == MapsWon() else {"team1": given.team1, "team2": given.team2}


def _teams(settings: GameSettings) -> dict[str, object]:
    if settings.team1 is None or settings.team2 is None:
        return {}
    return {"team1": _team(settings.team1), "team2": _team(settings.team2)}


def _team(team: TeamRoster) -> dict[str, object]:
    listed = {table.TEAM_PLAYERS.name: team.players, table.TEAM_COACHES.name: team.coaches}
    return {table.TEAM_NAME.name: team.name, **{name: people for name, people in listed.items() if people}}


def _overtime(overtime: Overtime) -> dict[str, object]:
    values = zip(table.OVERTIME_RULES, (overtime.enabled, overtime.max_rounds, overtime.start_money), strict=True)
    return {field.name: value for field, value in values if value is not None}


def _line(cvar: CvarSetting) -> str:
    """Return a line of `customCvars`. Values are quoted only if necessary, to keep the text within its limit."""
    is_plain = cvar.value != "" and cvar.value == cvar.value.strip(" ")
    return f"{cvar.name} {cvar.value}" if is_plain else f'{cvar.name} "{cvar.value}"'
