"""What may `customCvars` set? Raw lines become settings one by one, or faults that name line and reason.

A line is `name value` or `name "value"`; empty lines and `//` comments are skipped, also after a value. Lines end at
`\\n` (a `\\r` before it is tolerated) and nowhere else. The text itself is never sent to a server.
"""

from __future__ import annotations

import re

import msgspec

from matchpod.core.model import CvarSetting
from matchpod.core.text_rules import nearest
from matchpod.cs2.cvar_names import CVAR_NAMES

MAX_TEXT_BYTES = 8192
"""A whole tournament configuration with comments fits; it is stored with the match and sent line by line."""

MAX_LINES = 200
"""Each setting is one round trip to the server, again after every map load."""

MAX_SUGGESTIONS = 20
"""Looking for the nearest of 500 names takes some milliseconds; after this many the caller has seen the point."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_VALUE = re.compile(r"[A-Za-z0-9_.,:+#@ /-]{0,128}")
_VALUE_WORDS = "at most 128 of letters, digits, blank and _ . , : + # @ / -, without //"
_BLANKS = re.compile(r"[ \t]+")
_QUOTED = re.compile(r'"(?P<value>[^"]*)"[ \t]*(?://.*)?')
_COMMENT_AFTER_VALUE = re.compile(r"[ \t]+//.*")
_SIMULATOR_NAME = re.compile(r"sim_[a-z0-9_]{1,60}")
# The console reads names without regard to case. These would hand over the server, its secrets, its logs or its
# plugins, so no list of names can allow them, an operator's included.
_NEVER = re.compile(
    r"sv_cheats|sv_password|sv_setsteamaccount|quit|exit|alias|map|changelevel|tv_record"
    r"|(?:rcon_|exec|log|host_|plugin|meta|css_|matchzy_|get5_|kick|say).*",
    re.IGNORECASE,
)


class CvarFault(msgspec.Struct, frozen=True):
    """A line that cannot be used; line 0 means the text as a whole."""

    line: int
    reason: str


class CvarReading(msgspec.Struct, frozen=True):
    """The settings of the good lines in their order, and what is wrong with the others."""

    settings: tuple[CvarSetting, ...] = ()
    faults: tuple[CvarFault, ...] = ()


def read_custom_cvars(
    text: str, *, extra_names: frozenset[str] = frozenset(), allow_simulator: bool = False
) -> CvarReading:
    """Read the text of `customCvars`; `extra_names` are the operator's, `sim_*` is for simulated servers only."""
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
    """True for names that no match may set, whatever the lists say."""
    return _NEVER.fullmatch(name) is not None


def _size_fault(text: str) -> CvarFault | None:
    # Counted in characters first: a huge text is refused before it is copied.
    if len(text) > MAX_TEXT_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        return CvarFault(0, f"must be at most {MAX_TEXT_BYTES} bytes")
    if text.removesuffix("\n").count("\n") >= MAX_LINES:
        return CvarFault(0, f"must be at most {MAX_LINES} lines")
    return None


def _read_line(line: str) -> CvarSetting | str | None:
    """The setting on a line, the reason why there is none, or None for a line without content."""
    if not line or line.startswith("//"):
        return None
    name, rest = (*_BLANKS.split(line, maxsplit=1), "")[:2]
    if not _NAME.fullmatch(name):
        return "must begin with the name of a console variable"
    if not rest or rest.startswith("//"):
        return f'{name} has no value; write {name} "" for an empty one'
    if rest.startswith('"'):
        quoted = _QUOTED.fullmatch(rest)
        if quoted is None:
            return f"the value of {name} must end with its second quote"
        value = quoted["value"]
    else:
        value = _COMMENT_AFTER_VALUE.sub("", rest)
    if not _VALUE.fullmatch(value) or "//" in value:
        return f"the value of {name} may be {_VALUE_WORDS}"
    return CvarSetting(name, value)


def _name_fault(name: str, known: frozenset[str], *, allow_simulator: bool, suggest: bool) -> str | None:
    if is_never_allowed(name):
        return "may not be set by a match"
    if name in known:
        return None
    if _SIMULATOR_NAME.fullmatch(name):
        return None if allow_simulator else "is only for regions on the simulator"
    meant = nearest(name, known) if suggest else None
    return "is not a console variable that a match may set" + (f"; did you mean {meant}?" if meant else "")
