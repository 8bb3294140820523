"""Declare settings as struct fields, each with its rule, default and meaning.

Loading, error messages, docs/configuration.md and the chart's schema are derived from these declarations.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from matchpod.settings.rules import Rule

PREFIX = "MATCHPOD_"

T = TypeVar("T")


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting. `default` is written as in the file; if it is None, `fallback` describes what applies instead."""

    key: str = ""
    rule: Rule[Any]
    meaning: str
    default: str | int | None = None
    fallback: str = ""
    unset: object = None
    is_secret: bool = False
    is_required: bool = False
    in_file: bool = True

    def __call__(self) -> Any:
        """Return the value that applies if the setting is not given."""
        return self.unset if self.default is None else self.rule.read(self.default)

    @property
    def variable(self) -> str:
        return PREFIX + self.key.upper()


def setting(rule: Rule[T], meaning: str, **more: Any) -> T:
    """Return a struct field that declares a setting; `more` contains further fields of Setting.

    Without `default`, the value of a setting that is not given is `unset` (None); the code that uses it may derive
    another value.
    """
    value: T = msgspec.field(default_factory=Setting(rule=rule, meaning=meaning, **more))
    return value


def table_of(settings: type[msgspec.Struct]) -> tuple[Setting, ...]:
    """Return the settings that the fields of a struct declare, in the order of the fields."""
    found = ((field.name, field.default_factory) for field in msgspec.structs.fields(settings))
    return tuple(msgspec.structs.replace(field, key=name) for name, field in found if isinstance(field, Setting))
