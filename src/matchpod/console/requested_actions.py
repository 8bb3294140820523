"""Show the actions on a match: a form per action, built from the table `ACTIONS`, and the actions that were requested.

A form builds the body that a caller of the API would send. The service validates the body, and decides whether the
action is possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from cs2_protocol.game import Team
from matchpod.console.filters import storable
from matchpod.console.match_form import FormField, form_field, read_number
from matchpod.console.roster_text import FORMATS, read_roster
from matchpod.core.errors import ActionNotPossibleError, InvalidParamsError
from matchpod.core.match.actions import ACTIONS, ActionField, ActionState, ActionType, label_of
from matchpod.core.match.roster import RosterRole
from matchpod.core.model import GameSettings
from matchpod.core.requests import action_request as request
from matchpod.service.actions.views import ActionView, MatchActionsView, PossibleAction

MAX_LINES: Final = 100
"""Maximum number of requested actions shown on a page: the newest."""
OTHER: Final = "other"
"""Choice for a person who is not listed. The person's SteamID is entered in a separate field."""

OF_A_ROW: Final = (ActionType.REPLACE_PLAYER, ActionType.REMOVE_PLAYER, ActionType.KICK, ActionType.ADD_PLAYER)
"""Actions that users choose in the table of players. The last of them adds a person who is not in the table."""
TYPE: Final = "action-type"
"""Name of the form field with the action type. If it were `type`, scripts would get this field as `form.type`."""

_FIELDS: Final = {field.name: field for field in request.FIELDS}
_COMMON: Final = (request.REASON.name, request.BY.name)
_PEOPLE: Final = (request.STEAM_ID.name, request.OUT.name, request.IN.name)
_NAMES: Final = (*_FIELDS, *(name + OTHER.capitalize() for name in _PEOPLE))

Choices = tuple[tuple[str, str], ...]
"""Pairs of a choice's value and the text that is shown for it."""
Rejection = InvalidParamsError | ActionNotPossibleError
"""The error with which a requested action was not accepted."""


class ActionForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form of an action: its fields, the values that were entered, and why they were rejected."""

    type: ActionType
    label: str
    text: str
    obstacle: str
    """Why the action is not possible now; empty if it is possible."""
    inputs: tuple[FormField, ...]
    given: Mapping[str, str] = MappingProxyType({})
    faults: Mapping[str, str] = MappingProxyType({})
    """Faults by input name, in the order of the form."""
    general: tuple[str, ...] = ()

    @property
    def is_danger(self) -> bool:
        """True if the action ends the match."""
        return self.type is ActionType.FORFEIT

    @property
    def is_rejected(self) -> bool:
        """True if the form was submitted, but not accepted."""
        return bool(self.faults or self.general)

    @property
    def first_fault(self) -> str:
        """Name of the first invalid input; empty if all are valid."""
        return next(iter(self.faults), "")

    def summary(self, prefix: str) -> list[tuple[str, str, str]]:
        """Id, label and fault of each invalid input."""
        labels = {one.name: one.label for one in self.inputs}
        return [
            (prefix + name, labels[name.removesuffix(OTHER.capitalize())], fault) for name, fault in self.faults.items()
        ]


class ActionLine(msgspec.Struct, frozen=True, kw_only=True):
    """A requested action as a line of the list: its type and fields, its state, who requested it, and when."""

    id: str
    label: str
    values: tuple[str, ...]
    state: ActionState
    detail: str
    at: str
    who: str
    """Name of the API key, or `a link`; empty if the viewer may not see who requested the action."""
    by: str
    reason: str


# --- forms --------------------------------------------------------------------------------------------------------


def action_forms(
    actions: MatchActionsView, settings: GameSettings, names: tuple[str, str], people: Choices
) -> tuple[ActionForm, ...]:
    """Return the form of each action; `people` are choices for persons of the match, `names` are the team names."""
    return tuple(_form(one, actions, settings, names, people=people) for one in actions.possible)


def _form(
    possible: PossibleAction,
    actions: MatchActionsView,
    settings: GameSettings,
    names: tuple[str, str],
    *,
    people: Choices,
) -> ActionForm:
    rule = ACTIONS[possible.type]
    choices: dict[str, Choices] = {
        request.ROUND.name: tuple((str(point.round), point.text) for point in reversed(actions.restorable)),
        request.AS.name: tuple(
            (role.value, role_words(role, names)) for role in RosterRole.of_match(settings.match_type)
        ),
        request.WINNER.name: tuple(zip(Team, names, strict=True)),
    }
    return ActionForm(
        type=rule.type,
        label=rule.label,
        text=rule.text,
        obstacle=possible.reason or "",
        inputs=(
            *(_input(one, people if one.is_of_match else choices.get(one.name, ())) for one in rule.fields),
            *(_input(ActionField(name=name, text=""), (), is_optional=True) for name in _COMMON),
        ),
    )


def _input(field: ActionField, choices: Choices, *, is_optional: bool = False) -> FormField:
    known = _FIELDS[field.name]
    is_person = field.name in _PEOPLE
    return msgspec.structs.replace(
        form_field(known, help_text="" if choices else f"{FORMATS}." if is_person else field.text),
        choices=choices,
        is_number=known.rule.schema.get("type") == "integer",
        is_optional=is_optional,
        has_other=is_person and bool(choices),
    )


def read_given(form: Mapping[str, str]) -> dict[str, str]:
    """Return the values that were entered, without whitespace at their ends."""
    return {name: storable(form.get(TYPE if name == request.TYPE.name else name, "").strip()) for name in _NAMES}


def read_body(given: Mapping[str, str]) -> dict[str, object]:
    """Return the body that a caller of the API would send, without empty fields."""
    wanted = _wanted(given["type"])
    values = {name: _value(name, given[_place(name, given)]) for name in wanted}
    return {"type": given["type"], **{name: value for name, value in values.items() if value not in ("", None)}}


def prefilled(form: ActionForm, player: str, role: str) -> ActionForm:
    """Return the form, filled in for a player of the table, or for a new person with this role."""
    given = {request.STEAM_ID.name: player, request.OUT.name: player, request.AS.name: role}
    known = {one.name: {value for value, _ in one.choices} for one in form.inputs}
    return msgspec.structs.replace(
        form, given={name: value for name, value in given.items() if value in known.get(name, ())}
    )


def with_faults(form: ActionForm, given: Mapping[str, str], error: Rejection) -> ActionForm:
    """Return the form with the values that were entered and why they were rejected, so that they can be corrected."""
    form = msgspec.structs.replace(form, given=given, obstacle="")
    if isinstance(error, ActionNotPossibleError):
        return msgspec.structs.replace(form, general=(str(error),))
    faults = {str(fault.path): f"{fault.message}." for fault in error.faults}
    names = [one.name for one in form.inputs]
    return msgspec.structs.replace(
        form,
        faults={_place(name, given): faults[name] for name in names if name in faults},
        general=tuple(f"{path} {text}".strip() for path, text in faults.items() if path not in names),
    )


def _wanted(action_type: str) -> tuple[str, ...]:
    """Return the names of an action's fields; for an unknown action type, those that all actions have."""
    known = next((rule for rule in ACTIONS.values() if rule.type == action_type), None)
    return (*(field.name for field in known.fields), *_COMMON) if known else _COMMON


def _place(name: str, given: Mapping[str, str]) -> str:
    """Return the name of the input that contains the value of a field."""
    return name + OTHER.capitalize() if name in _PEOPLE and given[name] == OTHER else name


def _value(name: str, text: str) -> object:
    if name in _PEOPLE:
        return next((listed.player for listed in read_roster(text)), "")
    return read_number(text) if _FIELDS[name].rule.schema.get("type") == "integer" else text


# --- requested actions --------------------------------------------------------------------------------------------


def action_lines(
    items: Iterable[ActionView], names: tuple[str, str], *, people: Mapping[str, str], who: Mapping[str, str]
) -> tuple[ActionLine, ...]:
    """Return requested actions as lines; `people` has player names, `who` the names of keys and sessions, by id."""
    return tuple(
        ActionLine(
            id=one.action_id,
            label=label_of(one.type),
            values=tuple(field_words(_given_fields(one), names, people)),
            state=one.state,
            detail=one.detail or "",
            at=one.requested_at,
            who=who.get(one.requested_by or "", one.requested_by or ""),
            by=one.by or "",
            reason=one.reason or "",
        )
        for one in items
    )


def role_words(role: RosterRole, names: tuple[str, str]) -> str:
    return {
        RosterRole.TEAM1: f"player of {names[0]}",
        RosterRole.TEAM2: f"player of {names[1]}",
        RosterRole.COACH1: f"coach of {names[0]}",
        RosterRole.COACH2: f"coach of {names[1]}",
    }.get(role, role.value)


def field_words(fields: Mapping[str, str | int], names: tuple[str, str], people: Mapping[str, str]) -> Iterator[str]:
    """Yield the fields of an action in words. The fields are given by their names in the API."""
    for name, value in fields.items():
        person = people.get(str(value), str(value))
        match name:
            case request.ROUND.name:
                yield f"round {value}"
            case request.TEXT.name:
                yield str(value)
            case request.STEAM_ID.name:
                yield person
            case request.AS.name if value in set(RosterRole):
                yield role_words(RosterRole(str(value)), names)
            case request.OUT.name | request.IN.name:
                yield f"{name}: {person}"
            case request.SECONDS.name:
                yield f"{value} s"
            case request.WINNER.name:
                yield names[0] if value == Team.TEAM1 else names[1]
            case _:
                yield f"{name} {value}"  # requested through a process of a later version


def _given_fields(action: ActionView) -> dict[str, str | int]:
    known: dict[str, str | int] = msgspec.to_builtins(action)
    return {field.name: known[field.name] for field in request.VALUES if field.name in known}
