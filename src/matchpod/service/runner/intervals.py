"""The poll intervals and timeouts of the runner, except those that belong to the rules of a match."""

from __future__ import annotations

import msgspec

from matchpod.core.servers.server_loss import QUIET_MS
from matchpod.service.history.recorder import RETRY_MS
from matchpod.service.match_log.fold import LATE_MS
from matchpod.storage.servers import RENEW_MS


class Intervals(msgspec.Struct, frozen=True, kw_only=True):
    """Intervals and timeouts of all steps."""

    # --- supervisor ---

    poll_s: float = 0.5
    """Seconds between polls for due rows without a notification: expired leases of other processes, and deadlines."""
    renew_s: float = RENEW_MS / 1000
    """Seconds between two renewals of the leases in a shared database. Two renewals may fail before a lease expires."""
    beat_s: float = 1.0
    """Seconds between two heartbeats; more if a heartbeat takes longer."""
    dead_s: float = 0.5
    """Seconds between two checks for other processes whose heartbeat is too old."""
    watch_s: float = 1.0
    """Seconds between two comparisons of the matches of this process with a shared database, in one query. Another
    process may have ended or acquired a match, or stored log entries."""
    check_s: float = 10.0
    """The same for a database that is not shared, in which only commands of operators end matches."""
    actions_s: float = 0.5
    """Seconds between polls for action requests that other processes have stored."""
    free_slots_s: float = 5.0
    """Seconds between checks for free slots, which wake pending matches. Releasing a slot wakes a match at once."""
    stop_s: float = 30.0
    """How long the new task of a match waits for the old task to stop. Then the new task continues anyway, because the
    old task has lost its lease and can no longer write or use the console."""
    crash_ms: int = 2_000
    """Pause before the step of a match is retried after an unexpected error or a database outage."""

    # --- start ---

    try_s: float = 180.0
    """Timeout of an attempt to start a server, at the speed of a real server: process start, map load and settings."""
    min_try_s: float = 60.0
    """Minimum timeout of an attempt, at any speed, because processes start slowly on a busy machine."""
    load_begins_s: float = 1.0
    """Time after which a map load is assumed to have begun, even if no answer of the server shows it. A load begins one
    frame after the command. Until then the server answers with the old map, and during the load it does not answer."""
    first_log_s: float = 15.0
    """Timeout of the first log post. It arrives within a second, unless a DNS lookup delays it."""

    # --- run ---

    late_ms: int = LATE_MS
    """A deadline that is noticed later than this waits for posts that may be in flight."""
    last_report_s: float = 1.0
    """How long to wait for the plugins' reports of the last round. They arrive within a tick of the log, or not at
    all."""
    history_retry_ms: int = RETRY_MS
    """Pause before the history is written again after a bug prevented it."""

    put_off_s: float = 0.02
    """How long a resumed match postpones its commands to the server, per match that is still to be resumed. Reading the
    logs comes first, and the servers are then queried at different times. A match is read in less time than this."""
    max_put_off_s: float = 5.0
    """Upper bound of the postponement. Players who joined while no process drove the match must be known before
    deadlines fire again (CATCH_UP_MS)."""

    # --- effects ---

    retry_s: float = 1.0
    """Pause between two attempts of a command. A lost console is available again after a second, unless a map is
    loading."""
    action_again_s: float = 5.0
    """Pause before an action is sent again because the plugin rejected it temporarily, or because all attempts failed.
    Halftime lasts 20 s, and loading a map may take as long."""

    # --- liveness probe ---

    probe_s: float = 2.5
    """Seconds between two probes of a server."""
    quiet_ms: int = QUIET_MS
    """Time without posts after which a server is looked up in its fleet."""
    log_gap_ms: int = 10_000
    """How long a real server may log nothing before a command is sent to its console. In play, about 40 gaps per hour
    are longer. The server logs such commands. If they were sent after `quiet_ms`, they would cause a tenth of all
    posts."""
    ask_s: float = 3.0
    """Timeout of a console command of the liveness probe."""
    last_posts_s: float = 1.0
    """How long to wait for the last log posts of a server that is gone: they may contain the end of the match."""
