"""Define faults of requests as values: the field, the rule that it breaks, and the parameters of that rule.

Rules return faults, not texts. Responses and pages build the texts with `Fault.message` and `str(fault.path)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique

import msgspec


@unique
class FaultCode(Enum):
    """A rule that a value can break. The member's value is a phrase that follows the field's name, with parameters."""

    # JSON values
    NOT_AN_OBJECT = "must be a JSON object"
    NOT_TEXTS = "must be a JSON object whose values are strings"
    TOO_MANY_ENTRIES = "must have at most {maximum} entries, not {found}"
    NOT_A_STRING = "must be a string"
    NOT_STRINGS = "must be an array of strings"
    NOT_A_BOOLEAN = "must be true or false"
    NOT_A_NUMBER = "must be a number"
    NOT_FINITE = "must be a finite number"
    NOT_WHOLE = "must be a whole number"
    TOO_LOW = "must be at least {minimum}"
    TOO_HIGH = "must be at most {maximum}"
    NOT_A_CHOICE = "must be one of {choices}"
    REQUIRED = "is required"
    UNKNOWN_FIELD = "is not a known field"
    MISSPELLED_FIELD = "is not a known field; did you mean {meant}?"
    NOT_LISTED = "faults that are not listed: {count}"

    # parameters of a query
    NOT_A_NUMBER_FROM = "must be a whole number of at least {minimum}"
    NOT_A_NUMBER_BETWEEN = "must be a whole number from {minimum} to {maximum}"
    NOT_A_DATE = "must be an ISO 8601 date or date-time such as 2026-09-21 or 2026-09-21T14:30:00Z"
    NOT_A_SERVER_ID = "must be 1 to 64 of A-Z a-z 0-9 _ -"
    NOT_AN_AUDIT_ID = "must be the id of an entry: act_ and 26 characters"
    NOT_AN_EVENT_ID = "must be the id of an event: 1 to 16 digits"
    NOT_AN_ID_PER_MAP = "must be the id of an event: 1 to 16 digits per map, joined by dots, at most {maximum} maps"
    TOO_MANY_PARTS = "must have at most one part per map of the match, which has {maps}"
    NOT_A_LABEL = (
        "must be the name of a label (1 to {maximum} of A-Z a-z 0-9 _ . -), a colon and its value, as in event:finals"
    )
    TOO_OFTEN = "must be given at most {maximum} times, not {count}"
    REPEATED = "must be given once, not {count} times"
    EMPTY = "must not be empty"
    DIFFERS_FROM_PAGE_SIZE = "is an alias of pageSize and must not differ from it"
    UNKNOWN_PARAMETER = "is not a known parameter"
    MISSPELLED_PARAMETER = "is not a known parameter; did you mean {meant}?"
    NOT_AMONG_PARAMETERS = "is not a known parameter; known parameters: {known}"
    NO_PARAMETERS = "is not a known parameter; this address has none"

    # texts
    LENGTH = "must be 1 to {maximum} characters"
    OUTER_WHITESPACE = "must not start or end with whitespace"
    UNPRINTABLE = "must not contain control, format or line-separator characters (found {found})"
    CONTROL_CHARACTER = "must not contain control characters (found {found})"
    FORBIDDEN_TEXT = "must not contain {found}"
    QUOTE_OR_SEMICOLON = "must not contain quotes or semicolons (found {found})"
    NOT_UTF8 = "must be percent-encoded UTF-8"
    NOT_A_LABEL_NAME = "must have a name of 1 to {maximum} of A-Z a-z 0-9 _ . -"
    NOT_A_PLAYER = "must be a 64-bit player ID: 17 digits starting with 7656119"
    NOT_A_MAP = "must be a map name (1 to 64 of a-z 0-9 _) or workshop/ followed by the item's number"
    PASSWORD_NONE = 'must not be "none": the game treats it as no password'
    NOT_A_HEADER_VALUE = "must be visible ASCII characters, with whitespace only between them"
    NOT_VISIBLE_ASCII = "must be 1 to {maximum} visible ASCII characters"
    NOT_URL_CHARACTERS = "must be visible ASCII characters without backslashes; percent-encode other characters"
    NOT_A_URL = "must be an absolute http or https URL"
    USER_IN_URL = "must not contain a user name or password; use callbackAuthToken"
    INVALID_HOST = "must have a valid host"
    PRIVATE_ADDRESS = (
        "must not be at {host}, which is not a public address: this service sends no callbacks there; use a public "
        "address, or ask the operator of the service to set MATCHPOD_CALLBACK_PRIVATE=allow"
    )
    INVALID_PORT = "must have a port between 1 and {maximum}, or none"

    # a match
    UNKNOWN_REGION = "is not a known region; known regions: {known}"
    MISSPELLED_REGION = "is not a known region; did you mean {meant}? Known regions: {known}"
    CLOSED_REGION = "is not accepting new servers"
    WRONG_GAME = "must be {game_type}"
    OTHER_ACTION = "is not a field of the action {action}"
    OTHER_MATCH_TYPE = "is only for matchType {match_types}, not {given}"
    WITH_TEAMS = "must not be set together with teams"
    TOO_MANY_MAPS = "must list at most {maximum} maps"
    TOO_MANY_PLAYERS = "must list at most {maximum} players"
    TOO_MANY_PEOPLE = "must list at most {maximum} players, coaches and spectators together"
    LISTED_TWICE = "is already listed at {first}"
    COACHES_WITHOUT_PLAYERS = "need listed players: the match plugin seats coaches, and runs only then"
    FORFEIT_WITHOUT_PLAYERS = (
        "must not be forfeit unless both teams list players: a team wins if all its players have joined, and not all "
        "of the other team"
    )
    RECORDING_WITHOUT_PLAYERS = (
        "must not be true unless players are listed: the match plugin records, and runs only then"
    )
    NO_DEMO_STORAGE = (
        "must not be true: this service stores no demos; leave it out, or ask the operator of the service to set "
        "MATCHPOD_UPLOAD_PORT"
    )
    NOT_ONE_SIDE = "must have 1 entry, for the only map, not {found}"
    NOT_ONE_SIDE_PER_MAP = "must have {wanted} entries, one for each map of the series, not {found}"
    SERIES_ALREADY_WON = "must be less than {wins}, with which a {series_format} is won"
    NOT_EVEN = "must be an even number: overtime has two halves"
    KNIFE_WITHOUT_PLAYERS = (
        "must not be knife in a match without listed players: the match plugin runs the knife round, and only with a "
        "roster; list the players in teams, or choose team1_ct or team1_t"
    )

    # console variables
    TOO_MANY_BYTES = "must be at most {maximum} bytes"
    TOO_MANY_LINES = "must be at most {maximum} lines"
    NO_CVAR_NAME = "must begin with the name of a console variable"
    NO_CVAR_VALUE = '{name} has no value; write {name} "" for an empty value'
    UNCLOSED_CVAR_VALUE = "the value of {name} must end with its closing quote"
    INVALID_CVAR_VALUE = (
        "the value of {name} must be at most 128 characters, of letters, digits, space and _ . , : + # @ / -, "
        "without //"
    )
    FORBIDDEN_CVAR = "{name} may not be set by a match"
    SIMULATOR_CVAR = "{name} is only allowed in simulator regions"
    UNKNOWN_CVAR = "{name} is not a console variable that a match may set"
    MISSPELLED_CVAR = "{name} is not a console variable that a match may set; did you mean {meant}?"

    STATED = "{text}"
    """The rule of a fault whose text is built by the code that checks the value."""


class FieldPath(msgspec.Struct, frozen=True):
    """The path of a value in a request: field names and item indexes. Empty for the request itself."""

    parts: tuple[str | int, ...] = ()

    def __truediv__(self, part: str | int) -> FieldPath:
        return FieldPath((*self.parts, part))

    def __str__(self) -> str:
        """The path as callers write it: `gameSettings.teams.team1.players[3]`."""
        texts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.parts]
        return "".join(texts).removeprefix(".")


FaultParameter = str | int | float | FieldPath | tuple[str, ...]


class Fault(msgspec.Struct, frozen=True):
    """One broken rule. A fault in a text of several lines has the parameter `line`, counted from 1."""

    code: FaultCode
    parameters: Mapping[str, FaultParameter] = {}
    path: FieldPath = FieldPath()

    def at(self, path: FieldPath) -> Fault:
        """Return this fault for the value at `path`."""
        return Fault(self.code, self.parameters, path)

    @property
    def line(self) -> int | None:
        """The number of the line that breaks the rule; None if the value has no lines, or is wrong as a whole."""
        found = self.parameters.get("line")
        return found if isinstance(found, int) else None

    @property
    def phrase(self) -> str:
        """The rule in words, as a phrase that follows the name of the field or line."""
        shown = {key: ", ".join(value) if isinstance(value, tuple) else value for key, value in self.parameters.items()}
        return self.code.value.format_map(shown)

    @property
    def message(self) -> str:
        """The phrase, preceded by the line number if the fault has one."""
        return self.phrase if self.line is None else f"line {self.line}: {self.phrase}"


def stated_fault(name: str, text: str) -> Fault:
    """Return a fault of the field `name` with this text."""
    return Fault(FaultCode.STATED, {"text": text}, FieldPath((name,)))
