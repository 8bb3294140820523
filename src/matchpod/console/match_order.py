"""Describe the settings that a match was created with, and build the form that creates the same match again."""

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
"""Prefix of a checkbox name: if checked, the new match has no such secret, even if the first match had one."""
_LABELS: Final = {field.name: field.label for field in table.SETTINGS if field.label}
_ONLY_IN_JSON: Final = (table.TEAMS.name, table.CUSTOM_CVARS.name, table.LABELS.name)
"""Settings that are shown elsewhere on the page, or have many lines."""
_WORDS: Final = {True: "yes", False: "no"}
_MISSING: Final = "The first match had one, which is not kept. Type it again, or choose to do without."


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a match for display: as labeled values (`facts`), and in full as JSON."""

    facts: tuple[tuple[str, str], ...]
    json: str


class AgainForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form that creates the same match again: the secrets to enter again, and the faults of the entered secrets."""

    once: str
    """The idempotency key of the form: submitted twice, the form creates one match."""
    inputs: tuple[FormField, ...]
    had: frozenset[str]
    """The names of the secrets that the first match had; other secrets may be entered too."""
    faults: Mapping[str, str] = MappingProxyType({})
    general: tuple[str, ...] = ()

    @property
    def is_rejected(self) -> bool:
        """True if the form was submitted and no match was created."""
        return bool(self.faults or self.general)

    @property
    def first_fault(self) -> str:
        """The name of the first invalid input; empty if there is none."""
        return next(iter(self.faults), "")

    @property
    def summary(self) -> list[tuple[str, str, str]]:
        """The invalid inputs, each with its id, label and fault."""
        labels = {one.name: one.label for one in self.inputs}
        return [(f"anew-{name}", labels[name], fault) for name, fault in self.faults.items()]


def order_of(match: MatchDetail) -> Order:
    """Return the settings of a match, without secrets."""
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
    """Return the empty form for a match that has ended."""
    inputs = [form_field(table.SERVER_PASSWORD, help_text="")]
    if match.callback_url is not None:
        inputs.append(form_field(table.CALLBACK_AUTH_TOKEN, help_text=""))
    return AgainForm(once=once, inputs=tuple(inputs), had=frozenset(match.marks.secrets))


def read_again(form: AgainForm, given: Mapping[str, str]) -> tuple[dict[str, str], AgainForm]:
    """Return the entered secrets, and the form with a fault for each missing secret."""
    typed = {one.name: storable(given.get(one.name, "")) for one in form.inputs}
    missing = {
        name: _MISSING
        for name, text in typed.items()
        if name in form.had and not text and not given.get(WITHOUT + name)
    }
    return {name: text for name, text in typed.items() if text}, msgspec.structs.replace(form, faults=missing)


def again_body(match: MatchDetail, secrets: Mapping[str, str]) -> dict[str, object]:
    """Return the body that creates the same match again: the same region, external id, callback and settings."""
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
    """Return the form with the reason why the match was not created."""
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
