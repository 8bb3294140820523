"""What does the service count, and how does a scraper read it? Prometheus text, format 0.0.4, written by hand.

A `Metrics` is a value that the composition root makes and hands on; nothing is global. Label values come from outside,
so every metric keeps a bounded number of series: what comes after that is counted together under `other`.
All calls are made from the event loop's thread; nothing here waits or locks.
"""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Iterator, Mapping, Sequence

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MAX_SERIES = 256
"""Regions times states fit many times over; a label that grows with traffic must not grow our memory."""

OTHER = "other"
"""The label value under which everything past the limit is counted."""

DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds, from a fast answer to the longest wait for a callback."""

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")

Labels = tuple[str, ...]


class _Metric:
    """What all kinds share: name, help, label names."""

    kind = ""

    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name for a metric")
        for label in labels:
            if not _LABEL.fullmatch(label) or label == "le":
                raise ValueError(f"{label!r} is no name for a label of {name}")
        self.name = name
        self._text = text
        self._labels = tuple(labels)

    def lines(self) -> Iterator[str]:
        """Help, type and a line for each sample."""
        yield f"# HELP {self.name} {_escape(self._text)}"
        yield f"# TYPE {self.name} {self.kind}"
        yield from self._samples()

    def _samples(self) -> Iterator[str]:
        raise NotImplementedError

    def _key(self, values: Labels, known: Mapping[Labels, object]) -> Labels:
        if len(values) != len(self._labels):
            raise ValueError(f"{self.name} has the labels {self._labels}, given were {len(values)} values")
        # One less than the limit: the place of `other` is kept.
        if values in known or len(known) < MAX_SERIES - 1:
            return values
        return (OTHER,) * len(values)

    def _sample(self, values: Labels, number: float, *, suffix: str = "", bound: str | None = None) -> str:
        pairs = [f'{name}="{_escape(value, quoted=True)}"' for name, value in zip(self._labels, values, strict=True)]
        if bound is not None:
            pairs.append(f'le="{bound}"')
        shown = f"{{{','.join(pairs)}}}" if pairs else ""
        return f"{self.name}{suffix}{shown} {_number(number)}"


class Counter(_Metric):
    """A number that only grows; its name ends in `_total`."""

    kind = "counter"

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, text, labels)
        # Without labels there is exactly one series, and it exists from the start: a rate needs its zero.
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def inc(self, *labels: str, amount: float = 1.0) -> None:
        """Count one more, or `amount`."""
        if not amount >= 0:
            raise ValueError(f"{self.name} only grows, not by {amount}")
        key = self._key(labels, self._values)
        self._values[key] = self._values.get(key, 0.0) + amount

    def value(self, *labels: str) -> float:
        """What was counted so far."""
        return self._values.get(labels, 0.0)

    def _samples(self) -> Iterator[str]:
        for labels, number in self._values.items():
            yield self._sample(labels, number)


class Gauge(_Metric):
    """A number that goes up and down."""

    kind = "gauge"

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, text, labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def set(self, number: float, *labels: str) -> None:
        """It stands at `number` now."""
        self._values[self._key(labels, self._values)] = number

    def add(self, amount: float, *labels: str) -> None:
        """It went up, or down by a negative amount."""
        key = self._key(labels, self._values)
        self._values[key] = self._values.get(key, 0.0) + amount

    def replace(self, numbers: Mapping[Labels, float]) -> None:
        """All series at once; those that are not given are gone. What is past the limit is added up."""
        self._values = {}
        for labels, number in numbers.items():
            self.add(number, *labels)

    def value(self, *labels: str) -> float:
        """Where it stands."""
        return self._values.get(labels, 0.0)

    def _samples(self) -> Iterator[str]:
        for labels, number in self._values.items():
            yield self._sample(labels, number)


class _Spread:
    """One series of a histogram."""

    __slots__ = ("counts", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.total = 0.0


class Histogram(_Metric):
    """How often a number was at most this or that."""

    kind = "histogram"

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = DEFAULT_BUCKETS
    ) -> None:
        super().__init__(name, text, labels)
        self._bounds = tuple(float(bound) for bound in buckets)
        if not self._bounds or list(self._bounds) != sorted(set(self._bounds)) or not math.isfinite(self._bounds[-1]):
            raise ValueError(f"the bounds of {name} must grow and be finite")
        self._spreads: dict[Labels, _Spread] = {} if labels else {(): self._empty()}

    def observe(self, number: float, *labels: str) -> None:
        """One more measurement."""
        if math.isnan(number):
            raise ValueError(f"{self.name} cannot place a NaN")
        key = self._key(labels, self._spreads)
        spread = self._spreads.get(key)
        if spread is None:
            spread = self._spreads[key] = self._empty()
        spread.counts[bisect.bisect_left(self._bounds, number)] += 1
        spread.total += number

    def count(self, *labels: str) -> int:
        """How many measurements there were."""
        spread = self._spreads.get(labels)
        return sum(spread.counts) if spread else 0

    def _empty(self) -> _Spread:
        return _Spread(len(self._bounds) + 1)

    def _samples(self) -> Iterator[str]:
        for labels, spread in self._spreads.items():
            so_far = 0
            for bound, count in zip((*self._bounds, math.inf), spread.counts, strict=True):
                so_far += count
                yield self._sample(labels, so_far, suffix="_bucket", bound=_number(bound))
            yield self._sample(labels, spread.total, suffix="_sum")
            yield self._sample(labels, so_far, suffix="_count")


class Metrics:
    """All metrics of one process."""

    def __init__(self) -> None:
        self._metrics: dict[str, _Metric] = {}

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        """A new counter."""
        counter = Counter(name, text, labels)
        self._add(counter)
        return counter

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        """A new gauge."""
        gauge = Gauge(name, text, labels)
        self._add(gauge)
        return gauge

    def histogram(
        self, name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = DEFAULT_BUCKETS
    ) -> Histogram:
        """A new histogram."""
        histogram = Histogram(name, text, labels, buckets=buckets)
        self._add(histogram)
        return histogram

    def text(self) -> str:
        """What a scraper reads, in the order in which the metrics were made."""
        return "".join(f"{line}\n" for metric in self._metrics.values() for line in metric.lines())

    def _add(self, metric: _Metric) -> None:
        if metric.name in self._metrics:
            raise ValueError(f"there is a metric {metric.name} already")
        self._metrics[metric.name] = metric


def _escape(text: str, *, quoted: bool = False) -> str:
    # A carriage return is a line break to some readers of the format and has no escape of its own.
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", " ")
    # A lone surrogate (bad bytes that came in as text) cannot be sent as UTF-8.
    escaped = escaped.encode(errors="replace").decode()
    return escaped.replace('"', '\\"') if quoted else escaped


def _number(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(float(number))
