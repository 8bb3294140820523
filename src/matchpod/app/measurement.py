"""Connect the measurements of this process, and of its calls to Kubernetes, with the metrics of the service."""

from __future__ import annotations

import logging
import os
import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version

import msgspec

from matchpod.adapters.kubernetes.cluster_meter import AllocationOutcome, ClusterMeter, Verb
from matchpod.adapters.process_usage import read_usage, start_time_s
from matchpod.app.resources import Resources
from matchpod.service.telemetry.match_spans import NO_SPANS, MatchSpans
from matchpod.service.telemetry.measured_database import MeasuredDatabase
from matchpod.service.telemetry.metrics import AgonesMetrics, DatabaseMetrics, Metrics, ProcessMetrics
from matchpod.service.telemetry.prometheus import Registry

_log = logging.getLogger(__name__)


def measure(resources: Resources) -> tuple[Resources, Metrics, MatchSpans]:
    """Return the resources with a database that records metrics, and the metrics and spans of this process."""
    registry = Registry()
    metrics = Metrics(registry, regions=[region.code for region in resources.settings.regions])
    _measure_process(registry, database="postgresql" if resources.db.is_postgres else "sqlite")
    measured = MeasuredDatabase(resources.db, DatabaseMetrics(registry))
    return msgspec.structs.replace(resources, db=measured), metrics, compose_spans(metrics, os.environ)


def compose_spans(metrics: Metrics, environment: Mapping[str, str]) -> MatchSpans:
    """Return the exporter of match spans. It exports nothing unless the environment configures a collector."""
    if not any(name.startswith("OTEL_") for name in environment):
        return NO_SPANS
    # Imported here, because most installations have no collector, and the exporter's HTTP client is slow to import.
    from matchpod.adapters.otlp_exporter import OtlpExporter, ignored_variables, read_options

    if ignored := ignored_variables(environment):
        _log.warning("variables of OpenTelemetry ignored", extra={"variables": ignored})
    try:
        options = read_options(environment)
    except ValueError as exc:
        _log.warning("span export disabled", extra={"reason": str(exc)})
        return NO_SPANS
    if options is None:
        return NO_SPANS
    exporter = OtlpExporter(options, version=version("matchpod"))
    _log.info("span export enabled", extra={"url": options.url})

    def update() -> None:
        metrics.spans.set_total(exporter.exported, "exported")
        metrics.spans.set_total(exporter.dropped, "dropped")

    metrics.registry.before_rendering(update)
    return MatchSpans(exporter.export, exporter.close)


def _measure_process(registry: Registry, *, database: str) -> None:
    metrics = ProcessMetrics(registry)
    metrics.build.set(1, version("matchpod"), platform.python_version(), database)
    metrics.start_s.set(start_time_s())

    def update() -> None:
        usage = read_usage()
        metrics.cpu_s.set_total(usage.cpu_s)
        metrics.max_fds.set(usage.max_files)
        for gauge, number in (
            (metrics.resident_bytes, usage.resident_bytes),
            (metrics.virtual_bytes, usage.virtual_bytes),
            (metrics.open_fds, usage.open_files),
        ):
            if number is not None:
                gauge.set(number)

    registry.before_rendering(update)


class RegionMeter(ClusterMeter):
    """Records the metrics of the calls to the cluster of one region."""

    def __init__(self, metrics: AgonesMetrics, region: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._region = region
        self._monotonic = monotonic
        self._confirmed_s = monotonic()
        metrics.allocations.preset((region,), AllocationOutcome)
        for verb in Verb:
            metrics.requests.preset((region,), (verb,), ("201" if verb is Verb.CREATE else "200",))
        for metric in (metrics.allocation_s, metrics.watch_age_s, metrics.relists):
            metric.preset((region,))

    def requested(self, verb: Verb, code: str) -> None:
        self._metrics.requests.inc(self._region, verb, code)

    def allocated(self, outcome: AllocationOutcome, seconds: float) -> None:
        self._metrics.allocations.inc(self._region, outcome)
        self._metrics.allocation_s.observe(seconds, self._region)

    def relisted(self) -> None:
        self._metrics.relists.inc(self._region)

    def watch_confirmed(self) -> None:
        self._confirmed_s = self._monotonic()

    def update(self) -> None:
        """Set the metric to the time since the watch last worked or, if it never has, since the start."""
        self._metrics.watch_age_s.set(self._monotonic() - self._confirmed_s, self._region)
