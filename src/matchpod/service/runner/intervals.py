"""Define the poll intervals and timeouts of the runner, except those that belong to the rules of a match."""

from __future__ import annotations

import msgspec

from matchpod.core.servers.server_loss import QUIET_MS
from matchpod.service.history.recorder import RETRY_MS
from matchpod.service.match_log.fold import LATE_MS
from matchpod.storage.servers import RENEW_MS


class Intervals(msgspec.Struct, frozen=True, kw_only=True):
    """The intervals and timeouts of all steps."""

    # --- supervisor ---

    poll_s: float = 0.5
    """Interval in seconds at which due rows are polled, because there is no notification of expired leases and of due
    times."""
    renew_s: float = RENEW_MS / 1000
    """Interval in seconds at which leases in a shared database are renewed. Two renewals may fail before a lease
    expires."""
    beat_s: float = 1.0
    """Interval between heartbeats in seconds. It is longer if storing a heartbeat takes longer."""
    dead_s: float = 0.5
    """Interval in seconds at which the heartbeats of other processes are checked."""
    watch_s: float = 1.0
    """Interval in seconds at which the matches of this process are compared with a shared database, with one query.
    Another process may have ended or acquired a match, or stored log entries."""
    check_s: float = 10.0
    """`watch_s` for a database that is not shared. Besides this process, only commands of operators end matches in
    it."""
    actions_s: float = 0.5
    """Poll interval in seconds for action requests that other processes have stored."""
    free_slots_s: float = 5.0
    """Interval in seconds at which pending matches are woken if slots are free. (The release of a slot wakes a match at
    once.)"""
    stop_s: float = 30.0
    """Maximum time in seconds that the new task of a match waits for the old task to stop. Then the new task continues
    nevertheless, because the old task has lost its lease and can no longer write or use the console."""
    crash_ms: int = 2_000
    """Delay before the step of a match is retried after an unexpected error or a database outage."""

    # --- start ---

    try_s: float = 180.0
    """Timeout in seconds, at real speed, of an attempt to start a server: process start, map load and settings."""
    min_try_s: float = 60.0
    """Lower limit in seconds of `try_s` divided by the region's speed: a busy machine starts processes slowly."""
    load_begins_s: float = 1.0
    """Time in seconds after which a map load is assumed to have begun, even if no answer of the server shows it. A load
    begins one frame after the command. Until then the server reports the old map, and during the load it does not
    answer."""
    first_log_s: float = 15.0
    """Timeout in seconds for the first log post. It arrives within a second, unless a DNS lookup delays it."""

    # --- run ---

    late_ms: int = LATE_MS
    """Delay above which a deadline counts as noticed late: it does not fire at once, but waits for posts in
    flight."""
    last_report_s: float = 1.0
    """Timeout in seconds for the plugins' reports of the last round. They arrive within a tick of the last log lines,
    or not at all."""
    history_retry_ms: int = RETRY_MS
    """Delay before the history is written again after an error (a bug) prevented it from being built."""

    put_off_s: float = 0.02
    """Delay in seconds of a resumed match's commands to its server, per match that is still to be resumed. So logs are
    read first, and servers are then queried at different times. The log of a match is read in less time than this."""
    max_put_off_s: float = 5.0
    """Upper limit in seconds of a match's delay by `put_off_s`. Players who joined while no process drove it must be
    known before deadlines fire again (CATCH_UP_MS)."""

    # --- effects ---

    retry_s: float = 1.0
    """Delay in seconds before a command is retried. A lost console is usually available again after a second, unless a
    map is loading."""
    action_again_s: float = 5.0
    """Delay in seconds before an action is sent again because the plugin rejected it temporarily, or because all
    attempts failed. Halftime lasts 20 s, and a map load may take as long."""

    # --- liveness probe ---

    probe_s: float = 2.5
    """Interval in seconds at which a server is probed."""
    quiet_ms: int = QUIET_MS
    """Time without posts after which the fleet is asked whether the server is still there."""
    log_gap_ms: int = 10_000
    """Time without posts of a real server after which a command is sent to its console. During play, about 40 gaps per
    hour are longer. The server logs each command. If commands were sent after `quiet_ms`, they would cause a tenth of
    all posts."""
    ask_s: float = 3.0
    """Timeout in seconds of a console command of the liveness probe."""
    last_posts_s: float = 1.0
    """Time in seconds to wait for the last log posts of a server that is gone, because they may contain the end of the
    match."""
