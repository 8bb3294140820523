"""What is counted while the service runs? Every metric by name, on one page."""

from __future__ import annotations

from matchpod.service.metrics import Metrics


class Measures:
    """The metrics of one process."""

    def __init__(self, metrics: Metrics) -> None:
        self.matches_created = metrics.counter("matchpod_matches_created_total", "Matches created.", ("region",))
        self.matches_ended = metrics.counter(
            "matchpod_matches_ended_total", "Matches that ended, by how.", ("region", "outcome")
        )
        self.servers = metrics.gauge("matchpod_servers", "Servers by region and status.", ("region", "status"))
        self.slots = metrics.gauge("matchpod_slots", "Places for servers, by region.", ("region", "state"))
        self.followed = metrics.gauge("matchpod_matches_followed", "Matches that this process follows.")
        self.log_posts = metrics.counter("matchpod_log_posts_total", "Log posts that were stored.")
        self.log_bytes = metrics.counter("matchpod_log_bytes_total", "Bytes of log that were stored.")
        self.log_refused = metrics.counter("matchpod_log_refused_total", "Log posts that were refused.", ("why",))
        self.reports = metrics.counter("matchpod_plugin_reports_total", "Reports of plugins, stored.", ("kind",))
        self.lines = metrics.counter("matchpod_log_lines_total", "Log lines that were read.", ("kind",))
        self.fold_s = metrics.histogram(
            "matchpod_fold_seconds",
            "From the commit of an entry until it was read.",
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0),
        )
        self.bring_up_s = metrics.histogram(
            "matchpod_bring_up_seconds",
            "From creation to running.",
            ("region",),
            buckets=(1, 2, 5, 10, 20, 40, 80, 160, 320),
        )
        self.bring_up_failures = metrics.counter(
            "matchpod_bring_up_failures_total", "Tries to bring up a server that failed.", ("region",)
        )
        self.console_failures = metrics.counter(
            "matchpod_console_failures_total", "Console commands that got no answer.", ("region",)
        )
        self.crashes = metrics.counter(
            "matchpod_loop_crashes_total", "Unexpected errors that a loop survived.", ("loop",)
        )
        self.callback_attempts = metrics.counter(
            "matchpod_callback_attempts_total", "Attempts to deliver a callback.", ("outcome",)
        )
        self.callback_s = metrics.histogram(
            "matchpod_callback_seconds", "How long an attempt took.", buckets=(0.01, 0.05, 0.2, 1, 3, 10)
        )
