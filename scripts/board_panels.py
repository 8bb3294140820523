"""Define the rows and panels of the Grafana board. `scripts/write_board.py` writes the board to a file.

A panel consists of a title, a sentence of advice, and queries. In a query, `%s` is replaced with the labels that select
an installation and its processes; `%r` also selects regions. Series with the label `scope` measure something that
replicas share. Each replica reports the same number for them, so they are aggregated with `max`, and all other series
with `sum`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from matchpod.core.failures import FAILURE_REASONS

FAILURES: Final = sorted(FAILURE_REASONS)
"""Outcomes of matches that are caused by the service or the game server."""


class Panel(msgspec.Struct, frozen=True):
    """One panel.

    `queries` are pairs of a query and its legend. `limits` are the lowest orange and the lowest red value.
    """

    title: str
    advice: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"
    limits: tuple[float | None, float | None] = (None, None)
    is_stacked: bool = False
    width: int = 8
    height: int = 8


class Row(msgspec.Struct, frozen=True):
    """A row of panels with a heading. The panels of a collapsed row are only loaded when a user opens the row."""

    title: str
    panels: tuple[Panel, ...]
    is_collapsed: bool = False


def number(title: str, advice: str, query: str, unit: str = "short", **more: Any) -> Panel:
    """Return a small panel with one number."""
    return Panel(title, advice, ((query, ""),), unit, "stat", width=more.pop("width", 3), height=4, **more)


def shared(metric: str, by: str = "") -> str:
    """Return the query of a gauge for which all replicas report the same value, summed by labels."""
    once = f"max without (instance, pod) ({metric})"
    return f"sum by ({by}) ({once})" if by else f"sum({once})"


def rate(counter: str, by: str = "") -> str:
    """Return the query for the events per second of all selected processes."""
    return f"sum{f' by ({by})' if by else ''} (rate({counter}[$__rate_interval]))"


def quantiles(histogram: str, labels: str, by: str = "") -> tuple[tuple[str, str], ...]:
    """Return the queries for the median, p95 and p99 of a histogram."""
    legend = f"{{{{{by}}}}} " if by else ""
    buckets = rate(f"{histogram}_bucket{{{labels}}}", f"le, {by}" if by else "le")
    names = ((0.5, "median"), (0.95, "p95"), (0.99, "p99"))
    return tuple((f"histogram_quantile({share}, {buckets})", f"{legend}{name}") for share, name in names)


WELL: Final = Row(
    "Is it well?",
    (
        number(
            "Processes",
            "Processes that Prometheus reaches. Fewer than you run: runbook MatchpodProcessDown.",
            "sum(up{%s}) or vector(0)",
        ),
        number(
            "Running matches",
            "Matches that players can join or play.",
            shared('matchpod_servers{%r, status="running"}'),
        ),
        number(
            "Pending matches",
            "Matches that wait for a server. More than a few: runbook MatchpodMatchesPending.",
            shared('matchpod_servers{%r, status="pending"}'),
            limits=(1, 10),
        ),
        number(
            "Failed in the last hour",
            "Matches that the service or the game server failed. Outcomes are in the row below.",
            f'sum(increase(matchpod_matches_ended_total{{%r, outcome=~"{"|".join(FAILURES)}"}}[1h]))',
            limits=(1, 5),
        ),
        number(
            "Callbacks waiting",
            "Results that are not delivered yet. A growing number: runbook MatchpodCallbacksLate.",
            shared("matchpod_callbacks_waiting{%s}"),
            limits=(50, 500),
        ),
        number(
            "Oldest waiting callback",
            "Above 2 minutes: runbook MatchpodCallbacksLate.",
            "max(matchpod_callbacks_oldest_waiting_seconds{%s})",
            "s",
            limits=(30, 120),
        ),
        number(
            "Given up in the last hour",
            "Callers without their result. Runbook MatchpodCallbacksGivenUp says how to send them again.",
            "sum(increase(matchpod_callbacks_given_up_total{%s}[1h]))",
            limits=(1, 10),
        ),
        Panel(
            "Versions",
            "The version of each process. More than one outside of an upgrade: finish it.",
            (("count by (version, database) (matchpod_build_info{%s})", "{{version}} on {{database}}"),),
            kind="stat",
            width=3,
            height=4,
        ),
    ),
)

MATCHES: Final = Row(
    "Matches",
    (
        Panel(
            "Servers by status",
            "Servers of matches, by status. Pending ones wait for capacity; allocating ones are being started and "
            "configured.",
            ((shared("matchpod_servers{%r}", "status"), "{{status}}"),),
            is_stacked=True,
        ),
        Panel(
            "Running matches by region",
            "A region that falls to 0 while others do not has lost its servers or its network.",
            ((shared('matchpod_servers{%r, status="running"}', "region"), "{{region}}"),),
            is_stacked=True,
        ),
        Panel(
            "Oldest pending match",
            "Matches fail with no_capacity after MATCHPOD_PENDING_S. Add servers, unless the fleet has a fault.",
            (("max by (region) (matchpod_oldest_pending_seconds{%r})", "{{region}}"),),
            "s",
            limits=(60, 300),
        ),
        Panel(
            "Created per minute",
            "Matches that callers create. A sudden stop is usually on their side: compare with requests and statuses.",
            (("60 * " + rate("matchpod_matches_created_total{%r}", "region"), "{{region}}"),),
        ),
        Panel(
            "Ended, by outcome",
            f"In 10 minutes. match_over is a result; {', '.join(FAILURES)} are our failures.",
            (("sum by (outcome) (increase(matchpod_matches_ended_total{%r}[10m]))", "{{outcome}}"),),
            is_stacked=True,
        ),
        Panel(
            "Take-overs and incomplete maps",
            "In 10 minutes: matches that another process went on with, and maps with lost log. Take-overs without a "
            "restart or an upgrade: runbook MatchpodTakeovers.",
            (
                ("sum(increase(matchpod_lease_takeovers_total{%r}[10m]))", "take-overs"),
                ("sum(increase(matchpod_maps_incomplete_total{%r}[10m]))", "incomplete maps"),
            ),
        ),
    ),
)

CAPACITY: Final = Row(
    "Servers and capacity",
    (
        Panel(
            "Free servers",
            "Slots or ready servers of each region. 0 for minutes: runbook MatchpodNoFreeServers.",
            ((shared('matchpod_slots{%r, state="free"}', "region"), "{{region}}"),),
        ),
        Panel(
            "Servers in use",
            "Share of the slots or servers of a region that have a match. Plan for less than 80 % at the busiest hour.",
            (
                (
                    shared('matchpod_slots{%r, state="taken"}', "region")
                    + " / ("
                    + shared('matchpod_slots{%r, state="all"}', "region")
                    + " > 0)",
                    "{{region}}",
                ),
            ),
            "percentunit",
            limits=(0.8, 0.95),
        ),
        Panel(
            "Fleets with a fault",
            "Processes that cannot use the fleet of a region. `matchpod regions list` has the reason.",
            (("sum by (region) (matchpod_fleet_fault{%r})", "{{region}}"),),
            limits=(1, 1),
        ),
        Panel(
            "Bring-up: created to running",
            "With a free server, boot and configuration; otherwise mostly waiting.",
            quantiles("matchpod_bring_up_seconds", "%r"),
            "s",
        ),
        Panel(
            "Failed starts and consoles",
            "Per minute. After an update of the game, plugins often do not load: runbook MatchpodServersFailToStart.",
            (
                ("60 * " + rate("matchpod_bring_up_failures_total{%r}", "region"), "{{region}} starts"),
                ("60 * " + rate("matchpod_console_failures_total{%r}", "region"), "{{region}} console"),
            ),
        ),
        Panel(
            "Silent, withheld, foreign, swept",
            "Silent servers give no sign of life. Withheld ones have no match in this database; an operator decides: "
            "runbook MatchpodServersWithheld. Swept ones were left over and released.",
            (
                ("sum by (region) (matchpod_servers_silent{%r})", "{{region}} silent"),
                (shared("matchpod_servers_withheld{%r}", "region"), "{{region}} withheld"),
                (shared("matchpod_servers_foreign{%r}", "region"), "{{region}} foreign"),
                ("sum by (region) (increase(matchpod_servers_swept_total{%r}[10m]))", "{{region}} swept"),
            ),
        ),
    ),
)

LOG: Final = Row(
    "Log of the game servers",
    (
        Panel(
            "Log posts",
            "Per second. 0 while matches run: runbook MatchpodNoLogPosts.",
            (
                (rate("matchpod_log_posts_total{%s}"), "posts"),
                (rate("matchpod_plugin_reports_total{%s}"), "plugin reports"),
            ),
            "reqps",
        ),
        Panel(
            "Log bytes",
            "A match logs less than 1 KB per second.",
            ((rate("matchpod_log_bytes_total{%s}"), "bytes"),),
            "Bps",
        ),
        Panel(
            "Rejected posts",
            "By reason, per second. ended is normal after a match; the others: runbook MatchpodLogPostsRejected.",
            ((rate("matchpod_log_refused_total{%s}", "why"), "{{why}}"),),
            "reqps",
        ),
        Panel(
            "Share of unknown lines",
            "Above 1 %, the format of the log has changed: runbook MatchpodUnknownLogLines.",
            (
                (
                    rate('matchpod_log_lines_total{%s, kind="unknown"}')
                    + " / "
                    + rate('matchpod_log_lines_total{%s, kind="all"}'),
                    "unknown",
                ),
            ),
            "percentunit",
            limits=(0.01, 0.05),
        ),
        Panel(
            "From receiving to applied",
            "How far scores and timelines are behind. Seconds: the process or its database is overloaded.",
            quantiles("matchpod_fold_seconds", "%s"),
            "s",
            limits=(0.5, 2),
        ),
        Panel(
            "Entries set aside",
            "In an hour. Each is a bug that cost a match part of its log: runbook MatchpodEntriesSetAside.",
            (("sum(increase(matchpod_entries_set_aside_total{%s}[1h]))", "entries"),),
            limits=(1, 1),
        ),
    ),
)

CALLBACKS: Final = Row(
    "Callbacks",
    (
        Panel(
            "Waiting",
            "In the database, for all processes. Growing: receivers are slow, or no process delivers.",
            ((shared("matchpod_callbacks_waiting{%s}"), "callbacks"),),
        ),
        Panel(
            "From the end of a match to its callback",
            "Delivered ones only. Includes the second attempt, 5 s after a failed one.",
            quantiles("matchpod_callback_delay_seconds", "%s"),
            "s",
            limits=(5, 60),
        ),
        Panel(
            "Attempts by outcome",
            "In 10 minutes. refused: a status other than 2xx. no_answer: no connection, TLS or a timeout.",
            (("sum by (outcome) (increase(matchpod_callback_attempts_total{%s}[10m]))", "{{outcome}}"),),
            is_stacked=True,
        ),
        Panel(
            "Duration of attempts",
            "Receivers that answer slowly; the limit is 10 s.",
            quantiles("matchpod_callback_seconds", "%s"),
            "s",
        ),
        Panel(
            "Given up",
            "In an hour. `matchpod callbacks list --state given_up` has the errors.",
            (("sum(increase(matchpod_callbacks_given_up_total{%s}[1h]))", "callbacks"),),
            limits=(1, 10),
        ),
        Panel(
            "Oldest waiting",
            "Above 2 minutes: runbook MatchpodCallbacksLate.",
            (("max(matchpod_callbacks_oldest_waiting_seconds{%s})", "age"),),
            "s",
            limits=(30, 120),
        ),
    ),
)

DEMOS: Final = Row(
    "Demos",
    (
        Panel(
            "Recorded and uploaded now",
            "In the database, for all processes.",
            ((shared("matchpod_demos{%s}", "state"), "{{state}}"),),
            is_stacked=True,
        ),
        Panel(
            "Uploads by outcome",
            "In 10 minutes. What is not available is missing: runbook MatchpodDemosNotStored.",
            (("sum by (outcome) (increase(matchpod_demo_uploads_total{%s}[10m]))", "{{outcome}}"),),
            is_stacked=True,
        ),
        Panel(
            "Bytes received",
            "In 10 minutes, on the upload port.",
            (("sum(increase(matchpod_demo_bytes_total{%s}[10m]))", "bytes"),),
            "bytes",
        ),
    ),
)

API: Final = Row(
    "API, console and streams",
    (
        Panel(
            "Requests by status",
            "Per second, without game servers. 5xx: runbook MatchpodRequestsFail. 429: a limit of an organization.",
            ((rate('matchpod_http_requests_total{%s, route!~"/ingest/.*"}', "status"), "{{status}}"),),
            "reqps",
            is_stacked=True,
        ),
        Panel(
            "Slowest routes",
            "p95 of requests that succeeded, without streams. All are slow: look at the database and the event loop.",
            (
                (
                    "topk(8, histogram_quantile(0.95, "
                    + rate('matchpod_http_request_seconds_bucket{%s, status_class="2xx"}', "le, route")
                    + "))",
                    "{{route}}",
                ),
            ),
            "s",
        ),
        Panel(
            "Connections and streams",
            "Open ones. The limit is MATCHPOD_MAX_CONNECTIONS.",
            (("sum(matchpod_connections{%s})", "connections"), ("sum(matchpod_streams{%s})", "streams")),
        ),
        Panel(
            "Rejected connections",
            "Per minute, by reason: runbook MatchpodConnectionsRejected.",
            (("60 * " + rate("matchpod_connections_rejected_total{%s}", "why"), "{{why}}"),),
        ),
        Panel(
            "Failed log-ins",
            "Per minute. Many: a program uses an old key, or keys are being guessed. `matchpod audit` has addresses.",
            (("60 * " + rate("matchpod_failed_log_ins_total{%s}", "with"), "{{with}}"),),
        ),
        Panel(
            "Ended streams",
            "Per minute, by reason.",
            (("60 * " + rate("matchpod_streams_ended_total{%s}", "why"), "{{why}}"),),
        ),
    ),
)

PROCESS: Final = Row(
    "Processes and database",
    (
        Panel(
            "Event loop lag",
            "p99: how long a call waits for its turn. Above 0.25 s: runbook MatchpodEventLoopLag.",
            (
                (
                    "histogram_quantile(0.99, "
                    + rate("matchpod_event_loop_lag_seconds_bucket{%s}", "le, instance")
                    + ")",
                    "{{instance}}",
                ),
            ),
            "s",
            limits=(0.1, 0.25),
        ),
        Panel(
            "CPU",
            "Cores. One process uses at most about one: near 1, add replicas.",
            (("rate(process_cpu_seconds_total{%s}[$__rate_interval])", "{{instance}}"),),
            limits=(0.7, 0.9),
        ),
        Panel(
            "Memory",
            "Resident bytes. Compare with the limit of the container.",
            (("process_resident_memory_bytes{%s}", "{{instance}}"),),
            "bytes",
        ),
        Panel(
            "Matches driven",
            "By process. New matches go to the process with the fewest.",
            (("matchpod_matches_followed{%s}", "{{instance}}"),),
        ),
        Panel(
            "Stalls and unexpected errors",
            "In 10 minutes. The log has the stack: runbooks MatchpodEventLoopStalled and MatchpodBackgroundErrors.",
            (
                ("sum by (instance) (increase(matchpod_stalls_total{%s}[10m]))", "{{instance}} stalls"),
                ("sum by (loop) (increase(matchpod_loop_crashes_total{%s}[10m]))", "{{loop}} errors"),
            ),
        ),
        Panel(
            "Open files",
            "Share of the limit: runbook MatchpodOpenFilesNearlyUsed.",
            (("process_open_fds{%s} / process_max_fds{%s}", "{{instance}}"),),
            "percentunit",
            limits=(0.8, 0.9),
        ),
        Panel(
            "Database calls by outcome",
            "Per second. rejected is normal. unavailable: runbook MatchpodDatabaseUnavailable.",
            ((rate("matchpod_database_calls_total{%s}", "kind, outcome"), "{{kind}} {{outcome}}"),),
            "ops",
        ),
        Panel(
            "Duration of database calls",
            "p99. Above a second: runbook MatchpodDatabaseSlow.",
            (
                (
                    "histogram_quantile(0.99, " + rate("matchpod_database_call_seconds_bucket{%s}", "le, kind") + ")",
                    "{{kind}}",
                ),
            ),
            "s",
            limits=(0.25, 1),
        ),
        Panel(
            "Free disk",
            "Below MATCHPOD_MIN_FREE_DISK_MB new matches are rejected: runbook MatchpodDiskNearlyFull.",
            (("min by (instance, folder) (matchpod_disk_free_bytes{%s})", "{{instance}} {{folder}}"),),
            "bytes",
        ),
    ),
)

AGONES: Final = Row(
    "Agones",
    (
        Panel(
            "Allocations by outcome",
            "In 10 minutes. none_ready: the buffer of the autoscaler is too small. failed: runbook "
            "MatchpodAgonesAllocationsFail.",
            (
                (
                    "sum by (region, outcome) (increase(matchpod_agones_allocations_total{%r}[10m]))",
                    "{{region}} {{outcome}}",
                ),
            ),
            is_stacked=True,
        ),
        Panel(
            "Duration of allocations",
            "Half a second by default: set allocationBatchWaitTime=20ms in the chart of Agones.",
            quantiles("matchpod_agones_allocation_seconds", "%r", "region"),
            "s",
        ),
        Panel(
            "Age of the watch",
            "Since the cluster last confirmed the watch. Above 2 minutes: runbook MatchpodAgonesWatchStale.",
            (("max by (region, instance) (matchpod_agones_watch_age_seconds{%r})", "{{region}} {{instance}}"),),
            "s",
            limits=(60, 120),
        ),
        Panel(
            "Relists",
            "In 10 minutes: about 3 per process. More: watches are lost, look at the API server.",
            (("sum by (region) (increase(matchpod_agones_relists_total{%r}[10m]))", "{{region}}"),),
        ),
        Panel(
            "Calls of the Kubernetes API",
            "Per second, by verb and status. 401, 403: token or rights. 429: the API server is busy. none: no answer.",
            ((rate("matchpod_kubernetes_requests_total{%r}", "verb, code"), "{{verb}} {{code}}"),),
            "reqps",
        ),
        Panel(
            "Secrets of allocated servers",
            "In an hour. previous, none: the secret of the fleet was replaced, and old servers are still there.",
            (("sum by (region, secret) (increase(matchpod_fleet_passwords_total{%r}[1h]))", "{{region}} {{secret}}"),),
        ),
    ),
    is_collapsed=True,
)

ROWS: Final = (WELL, MATCHES, CAPACITY, LOG, CALLBACKS, DEMOS, API, PROCESS, AGONES)
