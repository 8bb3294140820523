"""Read which metrics, labels and values PromQL queries use, and which of them a service has.

This is no parser: promtool and Prometheus check the syntax. It finds names that begin with `matchpod` or `process`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

TARGET_LABELS = frozenset({"job", "instance", "pod"})
"""Labels that Prometheus adds."""

Series = Mapping[str, list[dict[str, str]]]
"""The label sets of each metric."""

_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? \S+$")
_PAIR = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SELECTOR = re.compile(r"\b((?:matchpod|process)_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
_LITERALS = re.compile(r"\w+(\|\w+)*")


def read_series(metrics: str) -> Series:
    """Return all series of the text that a service answers."""
    found: dict[str, list[dict[str, str]]] = {}
    for line in metrics.splitlines():
        if sample := _SAMPLE.match(line):
            found.setdefault(sample[1], []).append(dict(_PAIR.findall(sample[2] or "")))
    return found


def metrics_in(query: str) -> set[str]:
    return {name for name, _ in _SELECTOR.findall(query)}


def find_missing(query: str, series: Series, *, more_labels: Iterable[str] = ()) -> list[str]:
    """Return the metrics, labels and label values in a query that the series do not have.

    `more_labels` are used beside the query, as in a legend.
    """
    missing: list[str] = []
    known = set(TARGET_LABELS)
    for name, matchers in _SELECTOR.findall(query):
        if name not in series:
            missing.append(name)
            continue
        labels = {label for labels in series[name] for label in labels}
        known |= labels
        for label, operator, value in _MATCHER.findall(matchers):
            if label not in labels | TARGET_LABELS:
                missing.append(f"{name}{{{label}}}")
            elif operator in ("=", "=~") and _LITERALS.fullmatch(value):
                values = {labels.get(label) for labels in series[name]}
                missing += [f'{name}{{{label}="{one}"}}' for one in value.split("|") if one not in values]
    grouped = {label.strip() for labels in _GROUPING.findall(query) for label in labels.split(",")}
    return missing + sorted((grouped | set(more_labels)) - known)
