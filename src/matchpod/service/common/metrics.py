"""Define all metrics of the service."""

from __future__ import annotations

from matchpod.service.common.prometheus import Registry


class Metrics:
    """The metrics of one process."""

    def __init__(self, metrics: Registry) -> None:
        self._add_fleet_metrics(metrics)
        self.failed_log_ins = metrics.counter(
            "matchpod_failed_log_ins_total", "Log-ins that failed, by what was used.", ("with",)
        )
        self.matches_created = metrics.counter("matchpod_matches_created_total", "Matches created.", ("region",))
        self.matches_ended = metrics.counter(
            "matchpod_matches_ended_total", "Matches ended, by outcome.", ("region", "outcome")
        )
        self.maps_incomplete = metrics.counter("matchpod_maps_incomplete_total", "Maps with lost log.", ("region",))
        self.servers = metrics.gauge("matchpod_servers", "Servers by region and status.", ("region", "status"))
        self.followed = metrics.gauge("matchpod_matches_followed", "Matches that this process drives.")
        self.log_posts = metrics.counter("matchpod_log_posts_total", "Log posts stored.")
        self.log_bytes = metrics.counter("matchpod_log_bytes_total", "Log bytes stored.")
        self.log_refused = metrics.counter("matchpod_log_refused_total", "Log posts rejected, by reason.", ("why",))
        self.reports = metrics.counter("matchpod_plugin_reports_total", "Plugin reports stored.", ("kind",))
        self.lines = metrics.counter("matchpod_log_lines_total", "Log lines read.", ("kind",))
        self.entries_set_aside = metrics.counter(
            "matchpod_entries_set_aside_total", "Log entries set aside because they could not be applied."
        )
        self.stalls = metrics.counter("matchpod_stalls_total", "Times the event loop stalled for over a second.")
        self.stall_s = metrics.counter("matchpod_stall_seconds_total", "Seconds in such stalls.")
        self.fold_s = metrics.histogram(
            "matchpod_fold_seconds",
            "From receiving a log entry until it is applied.",
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0),
        )
        self.console_failures = metrics.counter(
            "matchpod_console_failures_total", "Console commands without an answer.", ("region",)
        )
        self.crashes = metrics.counter(
            "matchpod_loop_crashes_total", "Unexpected errors in background loops.", ("loop",)
        )
        self.callback_attempts = metrics.counter(
            "matchpod_callback_attempts_total", "Callback delivery attempts, by outcome.", ("outcome",)
        )
        self.callback_s = metrics.histogram(
            "matchpod_callback_seconds", "Duration of a callback delivery attempt.", buckets=(0.01, 0.05, 0.2, 1, 3, 10)
        )

    def _add_fleet_metrics(self, metrics: Registry) -> None:
        self.slots = metrics.gauge(
            "matchpod_slots", "Slots for servers, or servers of a fleet, by region and state.", ("region", "state")
        )
        self.fleet_faults = metrics.gauge(
            "matchpod_fleet_fault", "1 while the fleet of a region cannot be used, else 0.", ("region",)
        )
        self.fleet_fault_reasons = metrics.gauge(
            "matchpod_fleet_fault_reason",
            "1 for the reason why the fleet of a region cannot be used.",
            ("region", "reason"),
        )
        self.first_passwords = metrics.counter(
            "matchpod_fleet_passwords_total",
            "Servers of a cluster that were allocated, by the fleet secret that their password follows from: "
            "current, previous or none.",
            ("region", "secret"),
        )
        self.withheld = metrics.gauge(
            "matchpod_servers_withheld",
            "Running servers without a match in this database, which an operator has to release.",
            ("region",),
        )
        self.foreign = metrics.gauge(
            "matchpod_servers_foreign", "Running servers of other installations in the fleet of a region.", ("region",)
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
            buckets=(1, 2, 5, 10, 20, 40, 80, 160, 320),
        )
        self.bring_up_failures = metrics.counter(
            "matchpod_bring_up_failures_total", "Failed attempts to start a server.", ("region",)
        )

    def count_stall(self, seconds: float) -> None:
        """Count a stall of the event loop."""
        self.stalls.inc()
        self.stall_s.inc(amount=seconds)


class ConnectionMetrics:
    """The metrics of HTTP connections."""

    def __init__(self, metrics: Registry) -> None:
        self.open = metrics.gauge("matchpod_connections", "Open HTTP connections.")
        self.rejected = metrics.counter(
            "matchpod_connections_rejected_total", "HTTP connections rejected or closed early, by reason.", ("why",)
        )


class HttpMetrics:
    """The metrics of HTTP requests and streams, on all ports."""

    def __init__(self, metrics: Registry) -> None:
        self.requests = metrics.counter(
            "matchpod_http_requests_total", "Requests answered.", ("route", "method", "status")
        )
        self.seconds = metrics.histogram(
            "matchpod_http_request_seconds", "Duration of requests in seconds.", ("route", "status_class")
        )
        self.streams = metrics.gauge("matchpod_streams", "Open event streams.")
        self.streams_ended = metrics.counter(
            "matchpod_streams_ended_total", "Event streams that ended, by reason.", ("route", "why")
        )
