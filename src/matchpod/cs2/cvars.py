"""Parse and validate `customCvars`: each line becomes a setting, or a fault with its line number.

A line is `name value` or `name "value"`. Empty lines are skipped, and so are `//` comments, alone or after a value.
Lines end only at `\\n`, optionally after `\\r`. The text itself is never sent to a server.
"""

from __future__ import annotations

import re

from matchpod.core.faults import Fault, FaultCode
from matchpod.core.model import CvarSetting
from matchpod.core.requests.request_table import MAX_CVAR_BYTES, MAX_CVAR_LINES
from matchpod.core.requests.text_rules import nearest
from matchpod.core.requests.validation import CvarReading
from matchpod.cs2.cvar_names import CVAR_NAMES

MAX_SUGGESTIONS = 3
"""Maximum number of faults that suggest a name. Finding the nearest of 500 names takes up to 3 ms."""

FORBIDDEN_NAMES = (
    "sv_cheats", "sv_password", "sv_setsteamaccount", "quit", "exit", "alias", "map", "changelevel", "tv_record",
)  # fmt: skip
FORBIDDEN_PREFIXES = (
    "rcon_", "exec", "log", "host_", "plugin", "meta", "css_", "matchzy_", "get5_", "kick", "say",
)  # fmt: skip
"""Names, and prefixes of names, that give access to the server, its secrets, its logs or its plugins. No list can allow
them, not even an operator's. They are compared without case, as in the console."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_VALUE = re.compile(r"[A-Za-z0-9_.,:+#@ /-]{0,128}")
_BLANKS = re.compile(r"[ \t]+")
_QUOTED = re.compile(r'"(?P<value>[^"]*)"[ \t]*(?://.*)?')
_COMMENT_AFTER_VALUE = re.compile(r"[ \t]+//.*")
_SIMULATOR_NAME = re.compile(r"sim_[a-z0-9_]{1,60}")
_NEVER = re.compile("|".join((*FORBIDDEN_NAMES, *(f"{prefix}.*" for prefix in FORBIDDEN_PREFIXES))), re.IGNORECASE)


def read_custom_cvars(
    text: str, *, extra_names: frozenset[str] = frozenset(), allow_simulator: bool = False
) -> CvarReading:
    """Parse `customCvars`. The operator allows `extra_names`; `sim_*` names are allowed only on simulated servers."""
    if fault := _size_fault(text):
        return CvarReading(faults=(fault,))
    known = CVAR_NAMES | extra_names
    settings: list[CvarSetting] = []
    faults: list[Fault] = []
    for number, line in enumerate(text.split("\n"), start=1):
        read = _read_line(line.removesuffix("\r").strip(" \t"))
        if isinstance(read, CvarSetting):
            suggest = len(faults) < MAX_SUGGESTIONS
            fault = _name_fault(read.name, known, allow_simulator=allow_simulator, suggest=suggest)
            if fault is None:
                settings.append(read)
                continue
            read = fault
        if read is not None:
            faults.append(Fault(read.code, {"line": number, **read.parameters}))
    return CvarReading(tuple(settings), tuple(faults))


def is_never_allowed(name: str) -> bool:
    """True for names that no match may set, regardless of the allowed names."""
    return _NEVER.fullmatch(name) is not None


def _size_fault(text: str) -> Fault | None:
    # Count characters first, so that a huge text is rejected before it is encoded.
    if len(text) > MAX_CVAR_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_CVAR_BYTES:
        return Fault(FaultCode.TOO_MANY_BYTES, {"maximum": MAX_CVAR_BYTES})
    if text.removesuffix("\n").count("\n") >= MAX_CVAR_LINES:
        return Fault(FaultCode.TOO_MANY_LINES, {"maximum": MAX_CVAR_LINES})
    return None


def _read_line(line: str) -> CvarSetting | Fault | None:
    """Return the setting in a line, or the fault of an invalid line; None for an empty line."""
    if not line or line.startswith("//"):
        return None
    name, rest = (*_BLANKS.split(line, maxsplit=1), "")[:2]
    if not _NAME.fullmatch(name):
        return Fault(FaultCode.NO_CVAR_NAME)
    if not rest or rest.startswith("//"):
        return Fault(FaultCode.NO_CVAR_VALUE, {"name": name})
    if rest.startswith('"'):
        quoted = _QUOTED.fullmatch(rest)
        if quoted is None:
            return Fault(FaultCode.UNCLOSED_CVAR_VALUE, {"name": name})
        value = quoted["value"]
    else:
        value = _COMMENT_AFTER_VALUE.sub("", rest)
    if not _VALUE.fullmatch(value) or "//" in value:
        return Fault(FaultCode.INVALID_CVAR_VALUE, {"name": name})
    return CvarSetting(name, value)


def _name_fault(name: str, known: frozenset[str], *, allow_simulator: bool, suggest: bool) -> Fault | None:
    if is_never_allowed(name):
        return Fault(FaultCode.FORBIDDEN_CVAR, {"name": name})
    if name in known:
        return None
    if _SIMULATOR_NAME.fullmatch(name):
        return None if allow_simulator else Fault(FaultCode.SIMULATOR_CVAR, {"name": name})
    meant = nearest(name, known) if suggest else None
    if meant is None:
        return Fault(FaultCode.UNKNOWN_CVAR, {"name": name})
    return Fault(FaultCode.MISSPELLED_CVAR, {"name": name, "meant": meant})
