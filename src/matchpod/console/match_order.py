"""Describe the settings that a match was created with, and build the form that creates another match like it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from matchpod.console.filters import storable
from matchpod.console.match_form import FormField, form_field
from matchpod.core.errors import InvalidParamsError
from matchpod.core.model import GAME_TYPE
from matchpod.core.requests import request_table as table
from matchpod.core.requests.repeated_request import settings_body
from matchpod.service.reading.match_details import MatchDetail

PASSWORD: Final = table.SERVER_PASSWORD.name
TOKEN: Final = table.CALLBACK_AUTH_TOKEN.name
WITHOUT: Final = "without-"
"""Prefix of the name of a checkbox; the name of a secret follows. If checked, the new match does not have this secret,
even if the original match had it."""
_LABELS: Final = {field.name: field.label for field in table.SETTINGS if field.label}
_ONLY_IN_JSON: Final = (table.TEAMS.name, table.CUSTOM_CVARS.name, table.LABELS.name)
"""Settings that are left out of the labeled values, because the page shows them elsewhere or they have many lines."""
_WORDS: Final = {True: "yes", False: "no"}
_MISSING: Final = "The original match had one, but it is not stored. Enter it again, or choose to do without."


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a match for display: some as labeled values (`facts`), and all as JSON."""

    facts: tuple[tuple[str, str], ...]
    json: str


class AgainForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form that creates the same match again: inputs for the secrets, and the faults of what was entered."""

    once: str
    """Idempotency key of the form. If the form is submitted twice, only one match is created."""
    inputs: tuple[FormField, ...]
    had: frozenset[str]
    """Names of the secrets that the original match had. Other secrets may be entered too."""
    faults: Mapping[str, str] = MappingProxyType({})
    general: tuple[str, ...] = ()

    @property
    def is_rejected(self) -> bool:
        """True if the form was submitted, but no match was created."""
        return bool(self.faults or self.general)

    @property
    def first_fault(self) -> str:
        """Name of the first invalid input; empty if all are valid."""
        return next(iter(self.faults), "")

    @property
    def summary(self) -> list[tuple[str, str, str]]:
        """Id, label and fault of each invalid input."""
        labels = {one.name: one.label for one in self.inputs}
        return [(f"anew-{name}", labels[name], fault) for name, fault in self.faults.items()]


def order_of(match: MatchDetail) -> Order:
    """Return the settings of a match for display, without secrets."""
    settings = settings_body(match.settings, match.marks.labels or {})
    shown = {name: value for name, value in settings.items() if name in _LABELS and name not in _ONLY_IN_JSON}
    return Order(
        facts=tuple((_LABELS[name], _text(value)) for name, value in shown.items()),
        json=msgspec.json.format(msgspec.json.encode(settings), indent=2).decode(),
    )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


def again_form(match: MatchDetail, once: str) -> AgainForm:
    """Return the form for creating an ended match again, with nothing entered."""
    inputs = [form_field(table.SERVER_PASSWORD, help_text="")]
    if match.callback_url is not None:
        inputs.append(form_field(table.CALLBACK_AUTH_TOKEN, help_text=""))
    return AgainForm(once=once, inputs=tuple(inputs), had=frozenset(match.marks.secrets))


def read_again(form: AgainForm, given: Mapping[str, str]) -> tuple[dict[str, str], AgainForm]:
    """Return the secrets that were entered, and the form with a fault for each missing secret."""
    typed = {one.name: storable(given.get(one.name, "")) for one in form.inputs}
    missing = {
        name: _MISSING
        for name, text in typed.items()
        if name in form.had and not text and not given.get(WITHOUT + name)
    }
    return {name: text for name, text in typed.items() if text}, msgspec.structs.replace(form, faults=missing)


def again_body(match: MatchDetail, secrets: Mapping[str, str]) -> dict[str, object]:
    """Return a request body with the match's region, external id, callback and settings, and the entered secrets."""
    settings = settings_body(match.settings, match.marks.labels or {})
    given = {
        table.REGION.name: match.region,
        table.GAME.name: GAME_TYPE,
        table.EXTERNAL_MATCH_ID.name: match.external_match_id,
        table.CALLBACK_URL.name: match.callback_url,
        TOKEN: secrets.get(TOKEN),
        table.GAME_SETTINGS.name: {**settings, **({PASSWORD: secrets[PASSWORD]} if PASSWORD in secrets else {})},
    }
    return {name: value for name, value in given.items() if value is not None}


def with_error(form: AgainForm, error: Exception) -> AgainForm:
    """Return the form with the error that kept the match from being created."""
    if not isinstance(error, InvalidParamsError) or not error.faults:
        return msgspec.structs.replace(form, general=(str(error),))
    names = {one.name for one in form.inputs}
    faults, general = {}, []
    for fault in error.faults:
        *_, name = fault.path.parts
        if name in names:
            faults[str(name)] = f"{fault.message}."
        else:
            general.append(f"{fault.path} {fault.message}.")
    return msgspec.structs.replace(form, faults=faults, general=tuple(general))
