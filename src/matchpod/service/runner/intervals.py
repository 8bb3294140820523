"""How often the runner polls and how long it waits, apart from the rules of a match."""

from __future__ import annotations

import msgspec

from matchpod.core.servers.server_loss import QUIET_MS
from matchpod.service.history.recorder import RETRY_MS
from matchpod.service.match_log.fold import LATE_MS
from matchpod.storage.servers import RENEW_MS


class Intervals(msgspec.Struct, frozen=True, kw_only=True):
    """Intervals and time limits of all steps."""

    # --- supervisor ---

    poll_s: float = 0.5
    """How often to poll for due rows without a notification: expired leases of other processes, and deadlines."""
    renew_s: float = RENEW_MS / 1000
    """Pause between two renewals of the leases in a shared database; two may fail before a lease expires."""
    beat_s: float = 1.0
    """How often this process sends a heartbeat; later if one is not answered in that time."""
    dead_s: float = 0.5
    """How often this process checks for others whose heartbeat is too old."""
    watch_s: float = 1.0
    """How often all matches of this process are compared with a shared database, in one query: another process may have
    ended or acquired a match, or stored entries of its log."""
    check_s: float = 10.0
    """The same for a database of one process, in which only commands of operators end matches."""
    actions_s: float = 0.5
    """How often to look for requests for actions that another process has stored."""
    free_slots_s: float = 5.0
    """How often pending matches are woken if slots are free; releasing a slot wakes the next match at once."""
    stop_s: float = 30.0
    """How long the new task of a match waits for the old one to stop. Then it goes on: the old one has lost its lease,
    and can no longer write or use the console."""
    crash_ms: int = 2_000
    """Pause before the step of a match is retried after an unexpected error or a database outage."""

    # --- start ---

    try_s: float = 180.0
    """Time limit of one attempt at the speed of a real server: process start, map load and settings."""
    min_try_s: float = 60.0
    """Shortest time limit of an attempt, at any speed: processes start slowly on a busy machine."""
    load_begins_s: float = 1.0
    """A map load that shows in no answer of the server has begun after this time. It begins one frame after the
    command, and until then the server answers with the old map; while it loads, it does not answer."""
    first_log_s: float = 15.0
    """Time limit for the first log post: it comes within a second, unless a DNS lookup delays it."""

    # --- run ---

    late_ms: int = LATE_MS
    """A deadline that is noticed later than this waits for posts that may be in flight."""
    last_report_s: float = 1.0
    """How long to wait for the plugins' reports of the last round; they come within a tick of the log, or not at
    all."""
    history_retry_ms: int = RETRY_MS
    """Pause after a bug kept the history from being written."""

    put_off_s: float = 0.02
    """How long a resumed match puts off its questions to the server for each match that is still to be resumed: reading
    the logs comes first, and not all servers are asked at once. More than a match takes to be read."""
    max_put_off_s: float = 5.0
    """The longest such time: players who joined while no process drove the match must be known before deadlines fire
    again (CATCH_UP_MS)."""

    # --- effects ---

    retry_s: float = 1.0
    """Pause between two attempts at a command: a lost console is back after a second, unless a map is loading."""
    action_again_s: float = 5.0
    """Pause before an action is sent again that the plugin refused for now, or that no attempt could send: halftime
    lasts 20 s, and loading a map may take as long."""

    # --- liveness probe ---

    probe_s: float = 2.5
    """How often a server is probed."""
    quiet_ms: int = QUIET_MS
    """A server that has posted nothing for this long is looked up in its fleet."""
    log_gap_ms: int = 10_000
    """How long a real server may log nothing before it is asked. In play some 40 gaps per hour are longer. It logs the
    question, which would be a tenth of all posts if it were asked after `quiet_ms`."""
    ask_s: float = 3.0
    """Timeout of a question to the console."""
    last_posts_s: float = 1.0
    """How long to wait for the last log posts of a server that is gone: they may contain the end of the match."""
