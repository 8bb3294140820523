"""Parse and validate `customCvars`: each line becomes a setting, or a fault with its line number and reason.

A line is `name value` or `name "value"`. Empty lines are skipped, and so are `//` comments, alone or after a value.
Lines end only at `\\n`, optionally after `\\r`. The text itself is never sent to a server.
"""

from __future__ import annotations

import re

from matchpod.core.model import CvarSetting
from matchpod.core.requests.text_rules import nearest
from matchpod.core.requests.validation import CvarFault, CvarReading
from matchpod.cs2.cvar_names import CVAR_NAMES

MAX_TEXT_BYTES = 8192
"""Maximum size of the text, which is stored with the match: enough for a tournament configuration with comments."""

MAX_LINES = 200
"""Most lines of the text. Each setting costs a round trip to the server after every map load."""

MAX_SUGGESTIONS = 3
"""Faults after which suggestions stop. Finding the nearest of 500 names takes up to three milliseconds."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_VALUE = re.compile(r"[A-Za-z0-9_.,:+#@ /-]{0,128}")
_VALUE_RULE = "at most 128 characters, of letters, digits, space and _ . , : + # @ / -, without //"
_BLANKS = re.compile(r"[ \t]+")
_QUOTED = re.compile(r'"(?P<value>[^"]*)"[ \t]*(?://.*)?')
_COMMENT_AFTER_VALUE = re.compile(r"[ \t]+//.*")
_SIMULATOR_NAME = re.compile(r"sim_[a-z0-9_]{1,60}")
# The console ignores the case of names. These give access to the server, its secrets, its logs or its plugins, so no
# list of names can allow them, not even an operator's.
_NEVER = re.compile(
    r"sv_cheats|sv_password|sv_setsteamaccount|quit|exit|alias|map|changelevel|tv_record"
    r"|(?:rcon_|exec|log|host_|plugin|meta|css_|matchzy_|get5_|kick|say).*",
    re.IGNORECASE,
)


def read_custom_cvars(
    text: str, *, extra_names: frozenset[str] = frozenset(), allow_simulator: bool = False
) -> CvarReading:
    """Parse `customCvars`; `extra_names` are allowed by the operator, `sim_*` names on simulated servers only."""
    if fault := _size_fault(text):
        return CvarReading(faults=(fault,))
    known = CVAR_NAMES | extra_names
    settings: list[CvarSetting] = []
    faults: list[CvarFault] = []
    for number, line in enumerate(text.split("\n"), start=1):
        read = _read_line(line.removesuffix("\r").strip(" \t"))
        if isinstance(read, CvarSetting):
            suggest = len(faults) < MAX_SUGGESTIONS
            reason = _name_fault(read.name, known, allow_simulator=allow_simulator, suggest=suggest)
            if reason is None:
                settings.append(read)
                continue
            read = f"{read.name} {reason}"
        if read is not None:
            faults.append(CvarFault(number, read))
    return CvarReading(tuple(settings), tuple(faults))


def is_never_allowed(name: str) -> bool:
    """True for names that no match may set, regardless of the allowed names."""
    return _NEVER.fullmatch(name) is not None


def _size_fault(text: str) -> CvarFault | None:
    # Count characters first, to reject a huge text before it is encoded.
    if len(text) > MAX_TEXT_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        return CvarFault(0, f"must be at most {MAX_TEXT_BYTES} bytes")
    if text.removesuffix("\n").count("\n") >= MAX_LINES:
        return CvarFault(0, f"must be at most {MAX_LINES} lines")
    return None


def _read_line(line: str) -> CvarSetting | str | None:
    """Return the setting of a line, the reason why it is invalid, or None for an empty line."""
    if not line or line.startswith("//"):
        return None
    name, rest = (*_BLANKS.split(line, maxsplit=1), "")[:2]
    if not _NAME.fullmatch(name):
        return "must begin with the name of a console variable"
    if not rest or rest.startswith("//"):
        return f'{name} has no value; write {name} "" for an empty value'
    if rest.startswith('"'):
        quoted = _QUOTED.fullmatch(rest)
        if quoted is None:
            return f"the value of {name} must end with its closing quote"
        value = quoted["value"]
    else:
        value = _COMMENT_AFTER_VALUE.sub("", rest)
    if not _VALUE.fullmatch(value) or "//" in value:
        return f"the value of {name} must be {_VALUE_RULE}"
    return CvarSetting(name, value)


def _name_fault(name: str, known: frozenset[str], *, allow_simulator: bool, suggest: bool) -> str | None:
    if is_never_allowed(name):
        return "may not be set by a match"
    if name in known:
        return None
    if _SIMULATOR_NAME.fullmatch(name):
        return None if allow_simulator else "is only allowed in simulator regions"
    meant = nearest(name, known) if suggest else None
    return "is not a console variable that a match may set" + (f"; did you mean {meant}?" if meant else "")
