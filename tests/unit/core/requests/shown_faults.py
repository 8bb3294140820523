"""Faults as callers see them."""

from __future__ import annotations

from collections.abc import Iterable

from matchpod.core.faults import Fault

Shown = tuple[str, str]
"""The path and the message of a fault."""


def shown(faults: Iterable[Fault]) -> list[Shown]:
    return [(str(fault.path), fault.message) for fault in faults]
