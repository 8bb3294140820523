"""Validate the tables of a settings file, and collect all faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from matchpod.core.requests.text_rules import nearest, printable
from matchpod.settings.table import Setting

Values = dict[str, object]


class FileTable:
    """Reads the tables of one file. In messages, `where` (such as ` in matchpod.toml`) is appended to each key."""

    def __init__(self, where: str, faults: list[str]) -> None:
        self.where = where
        self.faults = faults

    def read(
        self, settings: Iterable[Setting], raw: Mapping[str, object], *, inside: str = "", ignored: tuple[str, ...] = ()
    ) -> Values:
        """Return the valid values; append faults. Keys in `ignored` are valid, but other code reads them."""
        known = {setting.key: setting for setting in settings}
        values: Values = {}
        for name, value in raw.items():
            place = f"{inside}{printable(name)}{self.where}"
            if name in known:
                read_setting(known[name], value, place, self.faults, into=values)
            elif name not in ignored:
                self.faults.append(unknown(place, "key", nearest(name, (*known, *ignored))))
        for setting in known.values():
            if setting.is_required and setting.key not in raw:
                place = f"{inside}{setting.key}{self.where}"
                self.faults.append(f"{place} is missing; it must be {setting.rule.allowed}.")
        return values


def read_setting(setting: Setting, value: object, place: str, faults: list[str], *, into: Values) -> None:
    """Read one value into `into`; if it is invalid, append a fault."""
    try:
        into[setting.key] = setting.rule.read(value)
    except ValueError:
        problem = "has an invalid value (not shown)" if setting.is_secret else f"is {quoted(value)}"
        faults.append(f"{place} {problem}; it must be {setting.rule.allowed}.")


def unknown(place: str, noun: str, similar: str | None) -> str:
    """Return the message for an unknown name, with a similar known name if there is one."""
    return f"{place} is not a known {noun}" + (f"; did you mean {similar}?" if similar else ".")


def quoted(value: object) -> str:
    """Format a value for a message. If it may contain a secret, return a description instead."""
    if isinstance(value, str) and "@" in value:
        return "a text that may contain a password"
    if isinstance(value, str):
        return f'"{printable(value)}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return printable(str(value))
    # A list or table may contain a secret.
    return "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else "a date or time"
