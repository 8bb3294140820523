"""Implement counters, gauges and histograms in the Prometheus text format, version 0.0.4.

There is no global registry: `app` creates a registry and passes it on. Label values may come from outside, so each
metric has a maximum number of series; further values are counted as `other`. All calls are made from the thread of the
event loop, so there are no locks.
"""

from __future__ import annotations

import bisect
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TypeVar

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MAX_SERIES = 256
"""Default maximum number of series per metric, which is ample for each region in each state. It prevents a label with
values from requests from filling the memory."""

OTHER = "other"
"""The label value of the series that counts everything beyond MAX_SERIES."""

DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Default upper bounds of buckets in seconds, from a fast response to the timeout of a callback."""

RENDER_S = 1.0
"""Time in seconds for which the rendered metrics are cached. Rendering takes milliseconds, and metrics are scraped
every few seconds."""

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")

Labels = tuple[str, ...]


class _Metric:
    """The base class of all metrics, with name, help text and label names."""

    kind = ""

    def __init__(self, name: str, text: str, labels: Sequence[str], fixed: Mapping[str, str] | None = None) -> None:
        """`fixed` are labels that have the same value in all series."""
        self.fixed = dict(fixed or {})
        if not _NAME.fullmatch(name):
            raise ValueError(f"invalid metric name {name!r}")
        for label in (*self.fixed, *labels):
            if not _LABEL.fullmatch(label) or label == "le":
                raise ValueError(f"invalid label name {label!r} for {name}")
        self.name = name
        self.text = text
        self.labels = tuple(labels)
        self.max_series = MAX_SERIES
        self._label_texts: dict[Labels, str] = {}

    @property
    def all_labels(self) -> Labels:
        """The names of all labels, in the order in which they are rendered."""
        return (*self.fixed, *self.labels)

    def preset(self, *values: Iterable[str]) -> None:
        """Create the series of all combinations of label values, because `rate()` in Prometheus needs the initial 0.

        Each argument contains the known values of one label, in the order of the labels.
        """
        for combination in product(*values):
            self._create(combination)

    def _create(self, labels: Labels) -> None:
        raise NotImplementedError

    def lines(self) -> Iterator[str]:
        """Yield the lines with the help text, the type and the samples."""
        yield f"# HELP {self.name} {_escape(self.text)}"
        yield f"# TYPE {self.name} {self.kind}"
        yield from self._samples()

    def _samples(self) -> Iterator[str]:
        raise NotImplementedError

    def _key(self, values: Labels, known: Mapping[Labels, object]) -> Labels:
        if values in known:
            return values
        if len(values) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {self.labels}, got {len(values)} values")
        # One series is reserved for `other`.
        return values if len(known) < self.max_series - 1 else (OTHER,) * len(values)

    def _sample(self, values: Labels, number: float, *, suffix: str = "", bound: str | None = None) -> str:
        pairs = self._label_texts.get(values)
        if pairs is None:
            pairs = self._label_texts[values] = self._label_text(values)
        if bound is not None:
            pairs = f'{pairs},le="{bound}"' if pairs else f'le="{bound}"'
        return (
            f"{self.name}{suffix}{{{pairs}}} {_number(number)}" if pairs else f"{self.name}{suffix} {_number(number)}"
        )

    def _label_text(self, values: Labels) -> str:
        if len(self._label_texts) >= 2 * self.max_series:
            self._label_texts.clear()  # most cached texts are of series that no longer exist
        named = (*self.fixed.items(), *zip(self.labels, values, strict=True))
        return ",".join(f'{name}="{_escape(value, quoted=True)}"' for name, value in named)


class _Number(_Metric):
    """A metric whose series are single numbers."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), fixed: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(name, text, labels, fixed)
        # The only series of a metric without labels exists from the start.
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def value(self, *labels: str) -> float:
        return self._values.get(labels, 0.0)

    def _create(self, labels: Labels) -> None:
        self._values.setdefault(self._key(labels, self._values), 0.0)

    def _add(self, amount: float, labels: Labels) -> None:
        key = self._key(labels, self._values)
        self._values[key] = self._values.get(key, 0.0) + amount

    def _samples(self) -> Iterator[str]:
        for labels, number in self._values.items():
            yield self._sample(labels, number)


class Counter(_Number):
    """A number that only grows. The name of the metric must end in `_total`."""

    kind = "counter"

    def inc(self, *labels: str, amount: float = 1.0) -> None:
        if not amount >= 0:
            raise ValueError(f"{self.name} is a counter and cannot change by {amount}")
        self._add(amount, labels)

    def set_total(self, total: float, *labels: str) -> None:
        """Set the total of something that other code counts."""
        self._values[self._key(labels, self._values)] = total


class Gauge(_Number):
    """A number that goes up and down."""

    kind = "gauge"

    def set(self, number: float, *labels: str) -> None:
        self._values[self._key(labels, self._values)] = number

    def add(self, amount: float, *labels: str) -> None:
        """Add an amount, which may be negative."""
        self._add(amount, labels)

    def replace(self, numbers: Mapping[Labels, float]) -> None:
        """Replace all series. Values beyond the maximum number of series are summed as `other`."""
        self._values = {}
        for labels, number in numbers.items():
            self._add(number, labels)


class _Buckets:
    """One series of a histogram."""

    __slots__ = ("counts", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.total = 0.0


class Histogram(_Metric):
    """Counts observed values in buckets with upper bounds."""

    kind = "histogram"

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = DEFAULT_BUCKETS
    ) -> None:
        super().__init__(name, text, labels)
        self._bounds = tuple(float(bound) for bound in buckets)
        if not self._bounds or list(self._bounds) != sorted(set(self._bounds)) or not math.isfinite(self._bounds[-1]):
            raise ValueError(f"the buckets of {name} must be increasing and finite")
        self._series: dict[Labels, _Buckets] = {} if labels else {(): self._empty()}

    def observe(self, number: float, *labels: str) -> None:
        if math.isnan(number):
            raise ValueError(f"{self.name} cannot observe NaN")
        key = self._key(labels, self._series)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = self._empty()
        series.counts[bisect.bisect_left(self._bounds, number)] += 1
        series.total += number

    def _create(self, labels: Labels) -> None:
        self._series.setdefault(self._key(labels, self._series), self._empty())

    def count(self, *labels: str) -> int:
        series = self._series.get(labels)
        return sum(series.counts) if series else 0

    def _empty(self) -> _Buckets:
        return _Buckets(len(self._bounds) + 1)

    def _samples(self) -> Iterator[str]:
        for labels, series in self._series.items():
            cumulative = 0
            for bound, count in zip((*self._bounds, math.inf), series.counts, strict=True):
                cumulative += count
                yield self._sample(labels, cumulative, suffix="_bucket", bound=_number(bound))
            yield self._sample(labels, series.total, suffix="_sum")
            yield self._sample(labels, cumulative, suffix="_count")


class RenderedMetrics:
    """The text of all metrics. However often it is requested, it is rendered at most once per RENDER_S."""

    def __init__(self, registry: Registry, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._monotonic = monotonic
        self._body = b""
        self._due_s = -math.inf

    def body(self) -> bytes:
        """Return the text, which is at most RENDER_S old. It is the same object until it is rendered again."""
        now_s = self._monotonic()
        if now_s >= self._due_s:
            self._body = self._registry.text().encode()
            self._due_s = now_s + RENDER_S
        return self._body


_M = TypeVar("_M", bound=_Metric)


class Registry:
    """The metrics of this process."""

    def __init__(self) -> None:
        self._metrics: dict[str, _Metric] = {}
        self._updates: list[Callable[[], None]] = []

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        return self._add(Counter(name, text, labels))

    def gauge(
        self, name: str, text: str, labels: Sequence[str] = (), *, fixed: Mapping[str, str] | None = None
    ) -> Gauge:
        """Create and register a gauge. `fixed` are labels that have the same value in all its series."""
        return self._add(Gauge(name, text, labels, fixed))

    def histogram(
        self, name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = DEFAULT_BUCKETS
    ) -> Histogram:
        return self._add(Histogram(name, text, labels, buckets=buckets))

    def before_rendering(self, update: Callable[[], None]) -> None:
        """Register a function that sets metrics on demand. It is called before the metrics are rendered."""
        self._updates.append(update)

    def all(self) -> Sequence[_Metric]:
        """Return all metrics, in the order of their creation."""
        return tuple(self._metrics.values())

    def text(self) -> str:
        """Return all metrics in the text format, in the order of their creation."""
        for update in self._updates:
            update()
        return "".join(f"{line}\n" for metric in self._metrics.values() for line in metric.lines())

    def _add(self, metric: _M) -> _M:
        if metric.name in self._metrics:
            raise ValueError(f"metric {metric.name} already exists")
        self._metrics[metric.name] = metric
        return metric


def _escape(text: str, *, quoted: bool = False) -> str:
    # Some parsers treat a carriage return as a line break, and the format has no escape for it.
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", " ")
    # Lone surrogates (from bytes that are not UTF-8) cannot be encoded.
    escaped = escaped.encode(errors="replace").decode()
    return escaped.replace('"', '\\"') if quoted else escaped


def _number(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(float(number))
