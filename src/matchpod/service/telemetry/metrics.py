"""Define all metrics of the service.

Series whose label values are known in advance exist from the start, with the value 0. Series with the label `scope`
describe the database or a fleet, which all replicas share, so their values are the same in each replica. All other
series describe a single process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from matchpod.core.demos import UPLOAD_REASONS, DemoState
from matchpod.core.effects import CancelReason
from matchpod.core.server_status import ServerStatus
from matchpod.service.telemetry.prometheus import Registry

IN_DATABASE: Final = {"scope": "database"}
IN_FLEET: Final = {"scope": "fleet"}

OUTCOMES: Final = ("match_over", *CancelReason)
LOOPS: Final = (
    *("claim", "watch", "renew", "beat", "dead", "slots", "sweep"),
    *("entry", "drive", "history", "callbacks", "webhooks", "gauges", "clocks", "streams", "search"),
)
"""The names of the background loops and steps whose unexpected errors are counted."""


class Metrics:
    """The metrics of this process. `regions` are the codes of all regions."""

    def __init__(self, metrics: Registry, *, regions: Sequence[str] = ()) -> None:
        self.registry = metrics
        self.regions = tuple(regions)
        self._add_fleet_metrics(metrics)
        self._add_match_metrics(metrics)
        self._add_server_metrics(metrics)
        self._add_log_metrics(metrics)
        self._add_callback_metrics(metrics)
        self._add_webhook_metrics(metrics)
        self.agones = AgonesMetrics(metrics)
        self.demos = DemoMetrics(metrics)
        self.failed_log_ins = metrics.counter(
            "matchpod_failed_log_ins_total", "Log-ins that failed, by what was used.", ("with",)
        )
        self.stalls = metrics.counter("matchpod_stalls_total", "Times the event loop stalled for over a second.")
        self.stall_s = metrics.counter(
            "matchpod_stall_seconds_total", "Seconds of stalls of the event loop that lasted over a second."
        )
        self.crashes = metrics.counter(
            "matchpod_loop_crashes_total", "Unexpected errors in background loops.", ("loop",)
        )
        self.loop_lag_s = metrics.histogram(
            "matchpod_event_loop_lag_seconds",
            "How long a call waits for the event loop, measured four times per second.",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
        )
        self.spans = metrics.counter(
            "matchpod_spans_total", "Spans for OpenTelemetry, by outcome: exported or dropped.", ("outcome",)
        )
        self._preset()

    def _preset(self) -> None:
        for metric in (
            *(self.matches_created, self.maps_incomplete, self.takeovers, self.oldest_pending_s),
            *(self.console_failures, self.swept, self.withheld, self.foreign, self.silent_servers),
            *(self.fleet_faults, self.bring_up_s, self.bring_up_failures),
        ):
            metric.preset(self.regions)
        self.matches_ended.preset(self.regions, OUTCOMES)
        self.servers.preset(self.regions, ServerStatus)
        self.lines.preset(("all", "unknown"))
        self.crashes.preset(LOOPS)
        self.spans.preset(("exported", "dropped"))

    def _add_match_metrics(self, metrics: Registry) -> None:
        self.matches_created = metrics.counter("matchpod_matches_created_total", "Matches created.", ("region",))
        self.matches_ended = metrics.counter(
            "matchpod_matches_ended_total", "Matches ended, by outcome.", ("region", "outcome")
        )
        self.maps_incomplete = metrics.counter(
            "matchpod_maps_incomplete_total", "Maps with lost log lines.", ("region",)
        )
        self.servers = metrics.gauge(
            "matchpod_servers",
            "Servers that are not released, by region and status.",
            ("region", "status"),
            fixed=IN_DATABASE,
        )
        self.oldest_pending_s = metrics.gauge(
            "matchpod_oldest_pending_seconds",
            "Age of the oldest match that waits for a server; 0 if none does.",
            ("region",),
            fixed=IN_DATABASE,
        )
        self.takeovers = metrics.counter(
            "matchpod_lease_takeovers_total",
            "Running matches that this process took over: from another replica, or after a restart.",
            ("region",),
        )
        self.followed = metrics.gauge("matchpod_matches_followed", "Matches that this process drives.")

    def _add_log_metrics(self, metrics: Registry) -> None:
        self.log_posts = metrics.counter("matchpod_log_posts_total", "Log posts stored.")
        self.log_bytes = metrics.counter("matchpod_log_bytes_total", "Log bytes stored.")
        self.log_refused = metrics.counter("matchpod_log_refused_total", "Log posts rejected, by reason.", ("why",))
        self.reports = metrics.counter("matchpod_plugin_reports_total", "Plugin reports stored.", ("kind",))
        self.lines = metrics.counter("matchpod_log_lines_total", "Log lines read.", ("kind",))
        self.entries_set_aside = metrics.counter(
            "matchpod_entries_set_aside_total", "Log entries set aside because they could not be applied."
        )
        self.fold_s = metrics.histogram(
            "matchpod_fold_seconds",
            "From receiving a log entry until it is applied.",
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0),
        )

    def _add_callback_metrics(self, metrics: Registry) -> None:
        self.callback_attempts = metrics.counter(
            "matchpod_callback_attempts_total", "Callback delivery attempts, by outcome.", ("outcome",)
        )
        self.callback_s = metrics.histogram(
            "matchpod_callback_seconds", "Duration of a callback delivery attempt.", buckets=(0.01, 0.05, 0.2, 1, 3, 10)
        )
        self.callback_delay_s = metrics.histogram(
            "matchpod_callback_delay_seconds",
            "From the end of a match until its callback was delivered.",
            buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800),
        )
        self.callbacks_waiting = metrics.gauge(
            "matchpod_callbacks_waiting", "Callbacks that wait for a delivery attempt.", fixed=IN_DATABASE
        )
        self.oldest_callback_s = metrics.gauge(
            "matchpod_callbacks_oldest_waiting_seconds",
            "Time since the end of the match whose callback has waited longest; 0 if none waits.",
            fixed=IN_DATABASE,
        )
        self.callbacks_given_up = metrics.counter(
            "matchpod_callbacks_given_up_total", "Callbacks that were given up after their last attempt."
        )

    def _add_webhook_metrics(self, metrics: Registry) -> None:
        self.webhook_attempts = metrics.counter(
            "matchpod_webhook_attempts_total", "Webhook delivery attempts, by outcome.", ("outcome",)
        )
        self.webhook_delay_s = metrics.histogram(
            "matchpod_webhook_delay_seconds",
            "From when an event was read for a webhook until its first attempt succeeded.",
            buckets=(0.05, 0.25, 1, 5, 30, 60, 300),
        )
        self.webhooks_waiting = metrics.gauge(
            "matchpod_webhooks_waiting", "Deliveries of webhooks that wait for an attempt.", fixed=IN_DATABASE
        )
        self.oldest_webhook_s = metrics.gauge(
            "matchpod_webhooks_oldest_waiting_seconds",
            "Time since the event whose delivery to a webhook has waited longest; 0 if none waits.",
            fixed=IN_DATABASE,
        )
        self.webhooks_given_up = metrics.counter(
            "matchpod_webhooks_given_up_total", "Deliveries of webhooks that were given up."
        )
        self.webhooks_off = metrics.gauge(
            "matchpod_webhooks_switched_off",
            "Webhooks that were switched off because all deliveries failed for three days.",
            fixed=IN_DATABASE,
        )

    def _add_fleet_metrics(self, metrics: Registry) -> None:
        self.slots = metrics.gauge(
            "matchpod_slots",
            "Slots for servers, or servers of a fleet, by region and state; missing while they are unknown.",
            ("region", "state"),
            fixed=IN_FLEET,
        )
        self.fleet_faults = metrics.gauge(
            "matchpod_fleet_fault", "1 while the fleet of a region cannot be used, else 0.", ("region",)
        )
        self.fleet_fault_reasons = metrics.gauge(
            "matchpod_fleet_fault_reason",
            "1 for the reason why the fleet of a region cannot be used; missing while it can.",
            ("region", "reason"),
        )
        self.first_passwords = metrics.counter(
            "matchpod_fleet_passwords_total",
            "Servers of a cluster that were allocated, by the fleet secret that their password follows from: "
            "current, previous or none.",
            ("region", "secret"),
        )

    def _add_server_metrics(self, metrics: Registry) -> None:
        self.withheld = metrics.gauge(
            "matchpod_servers_withheld",
            "Running servers without a match in this database, which an operator has to release.",
            ("region",),
            fixed=IN_FLEET,
        )
        self.foreign = metrics.gauge(
            "matchpod_servers_foreign",
            "Running servers of other installations in the fleet of a region.",
            ("region",),
            fixed=IN_FLEET,
        )
        self.swept = metrics.counter(
            "matchpod_servers_swept_total", "Servers without a match that a sweep released.", ("region",)
        )
        self.silent_servers = metrics.gauge(
            "matchpod_servers_silent",
            "Servers of running matches of this process that give no sign of life, by region.",
            ("region",),
        )
        self.bring_up_s = metrics.histogram(
            "matchpod_bring_up_seconds",
            "From creating a match until its server is running.",
            ("region",),
            buckets=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 40, 80, 160, 320),
        )
        self.bring_up_failures = metrics.counter(
            "matchpod_bring_up_failures_total", "Failed attempts to start a server.", ("region",)
        )
        self.console_failures = metrics.counter(
            "matchpod_console_failures_total", "Console commands without an answer.", ("region",)
        )

    def count_stall(self, seconds: float) -> None:
        self.stalls.inc()
        self.stall_s.inc(amount=seconds)


class DatabaseMetrics:
    def __init__(self, metrics: Registry) -> None:
        self.calls = metrics.counter(
            "matchpod_database_calls_total",
            "Calls to the database; rejected are those that would change nothing, or duplicate a row.",
            ("kind", "outcome"),
        )
        self.seconds = metrics.histogram(
            "matchpod_database_call_seconds",
            "Duration of calls to the database.",
            ("kind",),
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15),
        )


class DemoMetrics:
    """The metrics of demos. Uploads are received in a separate process, which reports them to this process."""

    def __init__(self, metrics: Registry) -> None:
        self.uploads = metrics.counter(
            "matchpod_demo_uploads_total",
            "Uploads of demos that ended: available, or the reason why the demo is missing.",
            ("outcome",),
        )
        self.bytes = metrics.counter("matchpod_demo_bytes_total", "Bytes of demos received.")
        self.seconds = metrics.histogram(
            "matchpod_demo_upload_seconds",
            "Duration of uploads of demos that are available.",
            buckets=(0.5, 1, 2, 5, 10, 20, 40, 80, 160),
        )
        self.restarts = metrics.counter(
            "matchpod_upload_process_restarts_total", "Times the upload process ended and was started again."
        )
        self.states = metrics.gauge(
            "matchpod_demos", "Demos that are recorded and uploaded now, by state.", ("state",), fixed=IN_DATABASE
        )
        self.uploads.preset(("available", *UPLOAD_REASONS))
        self.states.preset((DemoState.RECORDING, DemoState.UPLOADING))

    def count(self, outcome: str, *, received_bytes: int, seconds: float) -> None:
        """Update the metrics after an upload has ended."""
        self.uploads.inc(outcome)
        self.bytes.inc(amount=received_bytes)
        if outcome == DemoState.AVAILABLE:
            self.seconds.observe(seconds)


class AgonesMetrics:
    """The metrics of Agones clusters, by the region whose servers run there."""

    def __init__(self, metrics: Registry) -> None:
        self.allocations = metrics.counter(
            "matchpod_agones_allocations_total",
            "Calls that allocate a game server: allocated, none_ready or failed.",
            ("region", "outcome"),
        )
        self.allocation_s = metrics.histogram(
            "matchpod_agones_allocation_seconds",
            "Duration of a call that allocates a game server.",
            ("region",),
            buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20),
        )
        self.watch_age_s = metrics.gauge(
            "matchpod_agones_watch_age_seconds",
            "Time since the cluster last confirmed that the watch of its game servers works.",
            ("region",),
        )
        self.relists = metrics.counter(
            "matchpod_agones_relists_total",
            "Lists of all game servers: at the start, every few minutes, and after changes may have been missed.",
            ("region",),
        )
        self.requests = metrics.counter(
            "matchpod_kubernetes_requests_total",
            "Requests to the Kubernetes API, by status of the answer; none if there was no answer.",
            ("region", "verb", "code"),
        )


class ProcessMetrics:
    """The metrics of the operating system process, with the same names as in Prometheus' client libraries."""

    def __init__(self, metrics: Registry) -> None:
        self.build = metrics.gauge(
            "matchpod_build_info", "Always 1; the labels say what runs.", ("version", "python", "database")
        )
        self.cpu_s = metrics.counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.")
        self.resident_bytes = metrics.gauge("process_resident_memory_bytes", "Resident memory size in bytes.")
        self.virtual_bytes = metrics.gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.")
        self.open_fds = metrics.gauge("process_open_fds", "Number of open file descriptors.")
        self.max_fds = metrics.gauge("process_max_fds", "Maximum number of open file descriptors.")
        self.start_s = metrics.gauge(
            "process_start_time_seconds", "Start time of the process since unix epoch in seconds."
        )


class DiskMetrics:
    def __init__(self, metrics: Registry) -> None:
        self.free_bytes = metrics.gauge("matchpod_disk_free_bytes", "Free bytes on the disk of a folder.", ("folder",))


class ConnectionMetrics:
    def __init__(self, metrics: Registry) -> None:
        self.open = metrics.gauge("matchpod_connections", "Open HTTP connections.")
        self.rejected = metrics.counter(
            "matchpod_connections_rejected_total", "HTTP connections rejected or closed early, by reason.", ("why",)
        )

    def set_open(self, count: int, /) -> None:
        self.open.set(count)

    def count_rejected(self, reason: str, /) -> None:
        self.rejected.inc(reason)


MAX_ROUTE_SERIES: Final = 1024
"""Maximum number of series of a metric with a route label: about 80 routes with a few statuses each. Unknown routes
share one series."""


class HttpMetrics:
    """The metrics of HTTP requests and streams on all ports of the service."""

    def __init__(self, metrics: Registry) -> None:
        self.requests = metrics.counter(
            "matchpod_http_requests_total", "Requests answered.", ("route", "method", "status")
        )
        self.seconds = metrics.histogram(
            "matchpod_http_request_seconds", "Duration of requests in seconds.", ("route", "status_class")
        )
        self.requests.max_series = self.seconds.max_series = MAX_ROUTE_SERIES
        self.waiting = metrics.gauge(
            "matchpod_requests_waiting", "Requests that wait for the turn of their organization."
        )
        self.streams = metrics.gauge("matchpod_streams", "Open event streams.")
        self.streams_ended = metrics.counter(
            "matchpod_streams_ended_total", "Event streams that ended, by reason.", ("route", "why")
        )
