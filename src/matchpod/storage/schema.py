"""Define the tables as an ordered list of migrations. A released migration is never changed.

Portable types only: TEXT, BIGINT (also for booleans, 0 and 1, and times in ms) and BLOB (BYTEA in PostgreSQL). A table
WITHOUT ROWID is its primary key in SQLite; PostgreSQL has no such tables.

A migration expands the schema: it adds tables, indexes, and columns that have a default or may be null, which processes
of the last release need not know. So both versions can share a database while replicas are replaced one by one, and the
older one can be started again. What is no longer used is removed one release later, by a migration in CONTRACTIONS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from matchpod.storage import history_schema

_FIRST = (
    """
    CREATE TABLE organizations (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        webhook_secret BLOB NOT NULL,
        created_at_ms BIGINT NOT NULL
    )
    """,
    """
    CREATE TABLE api_keys (
        id TEXT PRIMARY KEY,
        org_id TEXT NOT NULL,
        name TEXT NOT NULL,
        prefix TEXT NOT NULL,
        key_hash TEXT NOT NULL UNIQUE,
        role TEXT NOT NULL,
        scopes TEXT NOT NULL,
        created_at_ms BIGINT NOT NULL,
        expires_at_ms BIGINT,
        revoked_at_ms BIGINT,
        last_used_at_ms BIGINT
    )
    """,
    "CREATE INDEX api_keys_of_org ON api_keys (org_id)",
    "CREATE TABLE region_flags (code TEXT PRIMARY KEY, is_active BIGINT NOT NULL)",
    """
    CREATE TABLE servers (
        id TEXT PRIMARY KEY,
        game_id TEXT NOT NULL,
        org_id TEXT NOT NULL,
        region TEXT NOT NULL,
        phase TEXT NOT NULL,
        status TEXT NOT NULL,
        settings BLOB NOT NULL,
        external_match_id TEXT,
        callback_url TEXT,
        callback_auth BLOB,
        rcon_password BLOB,
        server_password BLOB,
        log_token TEXT NOT NULL UNIQUE,
        report_token TEXT NOT NULL UNIQUE,
        plugin_match_id BIGINT NOT NULL,
        slot TEXT,
        ip TEXT,
        port BIGINT,
        rcon_host TEXT,
        rcon_port BIGINT,
        created_at_ms BIGINT NOT NULL,
        allocated_at_ms BIGINT,
        running_at_ms BIGINT,
        was_pending BIGINT NOT NULL,
        next_at_ms BIGINT NOT NULL,
        lease_owner TEXT,
        lease_until_ms BIGINT,
        fence BIGINT NOT NULL,
        tries BIGINT NOT NULL,
        ended_at_ms BIGINT,
        log_from_seq BIGINT NOT NULL,
        is_password_ours BIGINT NOT NULL,
        changed_cvars BLOB,
        error TEXT
    )
    """,
    # Separate from `servers`, which is read far more often than a match is resumed.
    "CREATE TABLE snapshots (server_id TEXT PRIMARY KEY, seq BIGINT NOT NULL, state BLOB NOT NULL)",
    "CREATE INDEX servers_by_owner ON servers (lease_owner) WHERE lease_owner IS NOT NULL",
    # Only open servers: released ones, the vast majority, are kept out of the most frequently used index.
    "CREATE INDEX servers_due ON servers (next_at_ms) WHERE phase <> 'released'",
    "CREATE INDEX servers_waiting ON servers (region, created_at_ms) WHERE phase = 'pending'",
    "CREATE INDEX servers_by_external_id ON servers (external_match_id, org_id, created_at_ms)",
    """
    CREATE TABLE idempotency_keys (
        org_id TEXT NOT NULL,
        idempotency_key TEXT NOT NULL,
        body_hash TEXT NOT NULL,
        server_id TEXT NOT NULL,
        created_at_ms BIGINT NOT NULL,
        PRIMARY KEY (org_id, idempotency_key)
    )
    """,
    """
    CREATE TABLE slots (
        region TEXT NOT NULL,
        slot TEXT NOT NULL,
        server_id TEXT NOT NULL UNIQUE,
        PRIMARY KEY (region, slot)
    )
    """,
    # The last number assigned in a server's log. Concurrent appends wait for the lock on this row.
    "CREATE TABLE raw_log_heads (server_id TEXT PRIMARY KEY, seq BIGINT NOT NULL)",
    """
    CREATE TABLE raw_log (
        server_id TEXT NOT NULL,
        seq BIGINT NOT NULL,
        kind TEXT NOT NULL,
        received_ms BIGINT NOT NULL,
        headers BLOB NOT NULL,
        body BLOB NOT NULL,
        is_compressed BIGINT NOT NULL,
        PRIMARY KEY (server_id, seq)
    )
    """,
    "CREATE INDEX raw_log_by_age ON raw_log (received_ms)",
    """
    CREATE TABLE outcomes (
        server_id TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        reason TEXT,
        at_ms BIGINT NOT NULL,
        result BLOB,
        callback_body BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE callbacks (
        id TEXT PRIMARY KEY,
        server_id TEXT NOT NULL UNIQUE,
        org_id TEXT NOT NULL,
        url TEXT NOT NULL,
        auth BLOB,
        body BLOB NOT NULL,
        created_at_ms BIGINT NOT NULL,
        attempts BIGINT NOT NULL,
        next_at_ms BIGINT,
        delivered_at_ms BIGINT,
        lease_owner TEXT,
        lease_until_ms BIGINT
    )
    """,
    "CREATE INDEX callbacks_due ON callbacks (next_at_ms) WHERE next_at_ms IS NOT NULL",
    "CREATE INDEX callbacks_of_org ON callbacks (org_id, created_at_ms)",
    """
    CREATE TABLE callback_attempts (
        callback_id TEXT NOT NULL,
        number BIGINT NOT NULL,
        at_ms BIGINT NOT NULL,
        status BIGINT,
        duration_ms BIGINT NOT NULL,
        error TEXT,
        PRIMARY KEY (callback_id, number)
    )
    """,
)

_LIMITS = (
    # All bytes stored in a server's log, also those deleted since.
    "ALTER TABLE raw_log_heads ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0",
    # Entries during which a process died. `kind` is set once the entry is set aside: the kind it had.
    """
    CREATE TABLE unfinished_entries (
        server_id TEXT NOT NULL,
        seq BIGINT NOT NULL,
        begun BIGINT NOT NULL,
        kind TEXT,
        PRIMARY KEY (server_id, seq)
    )
    """,
)

_QUOTAS = (
    # Matches without an outcome, which are counted when another one is created.
    "CREATE INDEX servers_live ON servers (org_id) WHERE phase <> 'released' AND phase <> 'ending'",
    # Always empty: a row is written and deleted again, to check whether the database can be written.
    "CREATE TABLE write_checks (id TEXT PRIMARY KEY, body BLOB NOT NULL)",
)

_PENDING = ("ALTER TABLE servers ADD COLUMN pending_until_ms BIGINT",)

# The columns with tokens become columns with their hashes, next to sealed tokens. Those of open servers are converted
# by `token_migration`; released ones need no tokens, and nothing must be found by theirs.
HASHED_TOKENS = (
    "ALTER TABLE servers RENAME COLUMN log_token TO log_token_hash",
    "ALTER TABLE servers RENAME COLUMN report_token TO report_token_hash",
    "ALTER TABLE servers ADD COLUMN log_token BLOB",
    "ALTER TABLE servers ADD COLUMN report_token BLOB",
    """
    UPDATE servers SET log_token_hash = 'released ' || id, report_token_hash = 'released ' || id
    WHERE phase = 'released'
    """,
)

# The number of callbacks that are sent to one host at a time is limited. In older rows it is empty, like one more host.
# The index has all columns that select due callbacks: in a row they come after its body, which is large.
_CALLBACK_HOSTS = (
    "ALTER TABLE callbacks ADD COLUMN host TEXT NOT NULL DEFAULT ''",
    "DROP INDEX callbacks_due",
    "CREATE INDEX callbacks_due ON callbacks (next_at_ms, id, lease_until_ms, org_id, host)"
    " WHERE next_at_ms IS NOT NULL",
)

_CALLBACK_REPEATS = ("ALTER TABLE callbacks ADD COLUMN unrecorded BIGINT NOT NULL DEFAULT 0",)

# Lists of an organization's callbacks are paged from these indexes alone, one for each state and one for all. SQLite
# checks the columns of a condition again, so they are in the index too.
_CALLBACK_LISTS = (
    "ALTER TABLE callback_attempts ADD COLUMN headers BLOB",
    "DROP INDEX callbacks_of_org",
    "CREATE INDEX callbacks_of_org ON callbacks (org_id, created_at_ms, id)",
    "CREATE INDEX callbacks_waiting ON callbacks (org_id, created_at_ms, id, next_at_ms) WHERE next_at_ms IS NOT NULL",
    "CREATE INDEX callbacks_delivered ON callbacks (org_id, created_at_ms, id, delivered_at_ms, next_at_ms)"
    " WHERE delivered_at_ms IS NOT NULL AND next_at_ms IS NULL",
    "CREATE INDEX callbacks_given_up ON callbacks (org_id, created_at_ms, id, delivered_at_ms, next_at_ms)"
    " WHERE delivered_at_ms IS NULL AND next_at_ms IS NULL",
)

_ORGANIZATION_EVENTS = (
    """
    CREATE TABLE organization_events (
        org_id TEXT NOT NULL,
        seq BIGINT NOT NULL,
        at_ms BIGINT NOT NULL,
        line BLOB NOT NULL,
        PRIMARY KEY (org_id, seq)
    )
    """,
)

# Copies of columns of `outcomes`: why a match ended is read with its server, and outcomes are large.
_ENDINGS = (
    "ALTER TABLE servers ADD COLUMN reason TEXT",
    "ALTER TABLE servers ADD COLUMN failure TEXT",
    """
    UPDATE servers SET reason = (SELECT outcomes.reason FROM outcomes WHERE outcomes.server_id = servers.id)
    WHERE ended_at_ms IS NOT NULL
    """,
)

# Lists of servers, as those of the history: an index for each combination of filters, and counts.
_SERVER_LISTS = (
    "ALTER TABLE servers ADD COLUMN match_phase TEXT NOT NULL DEFAULT 'allocating'",
    """
    UPDATE servers SET match_phase = CASE WHEN phase = 'running' THEN 'waiting_for_players' ELSE 'ended' END
    WHERE phase IN ('running', 'ending', 'released')
    """,
    # Without statistics, SQLite prefers an index with more columns that are given. These two stay better than the new.
    "DROP INDEX servers_live",
    "CREATE INDEX servers_live ON servers (org_id, phase) WHERE phase <> 'released' AND phase <> 'ending'",
    "DROP INDEX servers_by_external_id",
    "CREATE INDEX servers_by_external_id ON servers (external_match_id, org_id, created_at_ms DESC, id)",
    "CREATE INDEX servers_newest ON servers (org_id, created_at_ms DESC, id)",
    "CREATE INDEX servers_by_status ON servers (org_id, status, created_at_ms DESC, id)",
    "CREATE INDEX servers_by_phase ON servers (org_id, match_phase, created_at_ms DESC, id)",
    "CREATE INDEX servers_by_region ON servers (org_id, region, created_at_ms DESC, id)",
    "CREATE INDEX servers_by_region_and_status ON servers (org_id, region, status, created_at_ms DESC, id)",
    "CREATE INDEX servers_by_region_and_phase ON servers (org_id, region, match_phase, created_at_ms DESC, id)",
    # Keys as in `history_counts`: all servers, all that ended, and those by final status. A day has 86,400,000 ms.
    """
    INSERT INTO history_counts (org_id, kind, status, map_name, day, count)
    SELECT org_id, 'server',
        CASE column1 WHEN 0 THEN '' WHEN 1 THEN 'ended' ELSE status END,
        CASE WHEN column2 = 1 THEN region ELSE '' END,
        CASE WHEN column3 = 1 THEN created_at_ms / 86400000 ELSE -1 END,
        COUNT(*)
    FROM servers CROSS JOIN (
        VALUES (0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1),
            (2, 0, 0), (2, 0, 1), (2, 1, 0), (2, 1, 1)
    ) AS choices
    WHERE column1 = 0 OR match_phase = 'ended'
    GROUP BY 1, 2, 3, 4, 5
    """,
)

# A secret that was replaced goes on signing next to the new one for a while.
_OLD_SECRETS = (
    "ALTER TABLE organizations ADD COLUMN old_webhook_secret BLOB",
    "ALTER TABLE organizations ADD COLUMN old_secret_until_ms BIGINT",
)

_CONSOLE = (
    """
    CREATE TABLE console_sessions (
        id TEXT PRIMARY KEY,
        token_hash TEXT NOT NULL UNIQUE,
        org_id TEXT,
        key_id TEXT,
        created_at_ms BIGINT NOT NULL,
        seen_at_ms BIGINT NOT NULL,
        expires_at_ms BIGINT NOT NULL,
        user_agent TEXT NOT NULL
    )
    """,
    "CREATE INDEX console_sessions_of_org ON console_sessions (org_id, created_at_ms)",
    "CREATE TABLE console_links (token_hash TEXT PRIMARY KEY, org_id TEXT, expires_at_ms BIGINT NOT NULL)",
    """
    CREATE TABLE audit_log (
        id TEXT PRIMARY KEY,
        org_id TEXT,
        at_ms BIGINT NOT NULL,
        actor TEXT NOT NULL,
        action TEXT NOT NULL,
        target TEXT NOT NULL,
        detail TEXT NOT NULL
    )
    """,
    "CREATE INDEX audit_log_of_org ON audit_log (org_id, id)",
    "CREATE INDEX audit_log_by_time ON audit_log (at_ms)",
    """
    CREATE TABLE overlay_tokens (
        token_hash TEXT PRIMARY KEY,
        server_id TEXT NOT NULL,
        org_id TEXT NOT NULL,
        created_at_ms BIGINT NOT NULL
    )
    """,
    "CREATE INDEX overlay_tokens_of_server ON overlay_tokens (server_id)",
    # Matches that ended lately are counted from this index alone.
    "CREATE INDEX servers_ended ON servers (org_id, ended_at_ms, status) WHERE ended_at_ms IS NOT NULL",
)

# What an installation knows about itself, one row per name; and the servers that a sweep did not release, because an
# operator has to confirm it.
_INSTALLATION = (
    "CREATE TABLE installation (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """
    CREATE TABLE withheld_servers (
        region TEXT NOT NULL,
        server_id TEXT NOT NULL,
        since_ms BIGINT NOT NULL,
        is_confirmed BIGINT NOT NULL,
        PRIMARY KEY (region, server_id)
    )
    """,
)

# Matches that ended without a result are shown until they are acknowledged. Those that ended before this
# migration count as acknowledged, so that they do not all appear at once.
_ACKNOWLEDGEMENTS = (
    "ALTER TABLE servers ADD COLUMN acknowledged_at_ms BIGINT",
    "ALTER TABLE servers ADD COLUMN acknowledged_by TEXT",
    "UPDATE servers SET acknowledged_at_ms = ended_at_ms WHERE reason IS NOT NULL",
    # Two indexes: many cancellations by a program must not hide a failure, nor make it expensive to find.
    "CREATE INDEX servers_failed ON servers (org_id, ended_at_ms DESC, id)"
    " WHERE reason NOT IN ('canceled_by_user', 'canceled_by_operator') AND acknowledged_at_ms IS NULL",
    "CREATE INDEX servers_canceled ON servers (org_id, ended_at_ms DESC, id)"
    " WHERE reason IN ('canceled_by_user', 'canceled_by_operator') AND acknowledged_at_ms IS NULL",
)

# The processes that share a database. Not a column of `servers`: it is written every second.
_HEARTBEATS = ("CREATE TABLE heartbeats (owner TEXT PRIMARY KEY, at_ms BIGINT NOT NULL, max_matches BIGINT)",)

# Which server of a match sent an entry (empty if the service or an earlier version wrote it), which process is trying
# an entry, and which servers of a process are silent.
_TRUST = (
    "ALTER TABLE raw_log ADD COLUMN attempt TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE unfinished_entries ADD COLUMN owner TEXT",
    "ALTER TABLE heartbeats ADD COLUMN silences BLOB",
)

# Which match gets the next server of a region depends on the servers that organizations hold there; and servers that
# were at fault rest. SQLite checks the columns of a condition again, so they are in the indexes too.
_SERVER_TURNS = (
    """
    CREATE TABLE resting_slots (
        region TEXT NOT NULL,
        slot TEXT NOT NULL,
        server_id TEXT NOT NULL,
        until_ms BIGINT NOT NULL,
        PRIMARY KEY (region, slot)
    )
    """,
    "CREATE INDEX servers_placed ON servers (region, org_id, slot, phase)"
    " WHERE slot IS NOT NULL AND phase <> 'released'",
    "CREATE INDEX servers_unplaced ON servers (region, org_id, created_at_ms, id, slot, phase)"
    " WHERE slot IS NULL AND phase IN ('allocating', 'pending')",
)

# Who created a match, and whether its callback may go to a private address; both are not known of earlier ones.
_CREATION = (
    "ALTER TABLE servers ADD COLUMN created_by TEXT",
    "ALTER TABLE servers ADD COLUMN callback_private BIGINT",
)

# The bytes in a match's log up to `log_from_seq`: those of earlier servers do not count for its quota.
_OWN_BYTES = ("ALTER TABLE servers ADD COLUMN log_from_bytes BIGINT NOT NULL DEFAULT 0",)

# Lists of ended servers by status are read from the index of all, since most have the same; open ones from theirs.
_FEWER_SERVER_INDEXES = (
    "CREATE INDEX servers_listed ON servers (org_id, created_at_ms DESC, id, status, match_phase)",
    "CREATE INDEX servers_of_region ON servers (org_id, region, created_at_ms DESC, id, status, match_phase)",
    "DROP INDEX servers_newest",
    "DROP INDEX servers_by_status",
    "DROP INDEX servers_by_phase",
    "DROP INDEX servers_by_region",
    "DROP INDEX servers_by_region_and_status",
    "DROP INDEX servers_by_region_and_phase",
)

# What people asked for to be done to open matches. The log of a match has it as entries; these rows are shown.
_MATCH_ACTIONS = (
    """
    CREATE TABLE match_actions (
        id TEXT PRIMARY KEY,
        server_id TEXT NOT NULL,
        state TEXT NOT NULL,
        detail TEXT,
        requested_at_ms BIGINT NOT NULL,
        changed_at_ms BIGINT NOT NULL,
        created_by TEXT NOT NULL,
        request BLOB NOT NULL
    )
    """,
    "CREATE INDEX match_actions_of_server ON match_actions (server_id, id)",
    "CREATE INDEX match_actions_waiting ON match_actions (server_id) WHERE state = 'requested'",
)

# All rulings on matches. The one that counts is also in the row of the server, as JSON: it is read with its outcome.
_RULINGS = (
    """
    CREATE TABLE rulings (
        id TEXT PRIMARY KEY,
        server_id TEXT NOT NULL,
        org_id TEXT NOT NULL,
        winner TEXT NOT NULL,
        reason TEXT,
        person TEXT,
        ruled_at_ms BIGINT NOT NULL,
        ruled_by TEXT NOT NULL,
        withdrawn_at_ms BIGINT,
        withdrawn_by TEXT
    )
    """,
    "CREATE INDEX rulings_of_server ON rulings (server_id, id)",
    "ALTER TABLE servers ADD COLUMN ruling BLOB",
)

# The labels of matches, for filters, and in the row what is shown: labels, and whether the match is simulated.
_LABELS = (
    "ALTER TABLE servers ADD COLUMN marks BLOB",
    """
    CREATE TABLE server_labels (
        org_id TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        created_at_ms BIGINT NOT NULL,
        server_id TEXT NOT NULL
    )
    """,
    "CREATE INDEX server_labels_newest ON server_labels (org_id, name, value, created_at_ms DESC, server_id)",
)

# The team to which a match was forfeited; in earlier versions, none was.
_FORFEITS = ("ALTER TABLE servers ADD COLUMN forfeited_to TEXT",)

# The servers that are tried with the secret of their fleet, and those that rejected it, in few places per secret.
_SECRET_TRIALS = (
    """
    CREATE TABLE secret_trials (
        region TEXT NOT NULL,
        secret TEXT NOT NULL,
        place INTEGER NOT NULL,
        trial TEXT NOT NULL,
        is_rejected INTEGER NOT NULL,
        at_ms BIGINT NOT NULL,
        PRIMARY KEY (region, secret, place)
    )
    """,
)

# The newest check of each region, and the log posts that one waits for.
_REGION_CHECKS = (
    """
    CREATE TABLE region_checks (
        region TEXT PRIMARY KEY,
        id TEXT NOT NULL,
        state TEXT NOT NULL,
        may_allocate BIGINT NOT NULL,
        requested_at_ms BIGINT NOT NULL,
        requested_by TEXT NOT NULL,
        updated_at_ms BIGINT NOT NULL,
        report BLOB
    )
    """,
    """
    CREATE TABLE check_posts (
        token_hash TEXT PRIMARY KEY,
        check_id TEXT NOT NULL,
        created_at_ms BIGINT NOT NULL,
        received_ms BIGINT,
        source TEXT,
        stamp TEXT
    )
    """,
)

# One index of open servers instead of two. Ended ones of a region are in an index that the others are not in, and the
# audit log is deleted by its ids, which sort by time.
_OPEN_SERVERS = (
    "CREATE INDEX servers_open ON servers (org_id, phase, region, slot, created_at_ms, id)"
    " WHERE phase <> 'released' AND phase <> 'ending'",
    "CREATE INDEX servers_ended_of_region ON servers (org_id, region, created_at_ms DESC, id, status, match_phase)"
    " WHERE match_phase = 'ended'",
    "DROP INDEX servers_live",
    "DROP INDEX servers_unplaced",
    "DROP INDEX servers_of_region",
    "DROP INDEX audit_log_by_time",
)

# Logs are pruned match by match, from the primary key: an index of age was one more page to write for every post.
_NO_AGE_OF_ENTRIES = ("DROP INDEX raw_log_by_age",)

# Webhooks of organizations, and what is sent to them. Attempts to deliver are in `callback_attempts`, with those of
# callbacks: all ids of both differ. The position up to which the events of an organization were turned into deliveries
# changes with them, so that none is lost or made twice. Attention that was raised is not raised again.
_WEBHOOKS = (
    """
    CREATE TABLE webhooks (
        id TEXT PRIMARY KEY,
        org_id TEXT NOT NULL,
        url BLOB NOT NULL,
        shown_url TEXT NOT NULL,
        events TEXT NOT NULL,
        format TEXT NOT NULL,
        secret BLOB NOT NULL,
        old_secret BLOB,
        old_secret_until_ms BIGINT,
        may_be_private BIGINT NOT NULL,
        created_at_ms BIGINT NOT NULL,
        from_seq BIGINT NOT NULL,
        off_at_ms BIGINT,
        off_because TEXT,
        failing_since_ms BIGINT,
        next_message_ms BIGINT NOT NULL
    )
    """,
    "CREATE INDEX webhooks_of_org ON webhooks (org_id, id)",
    "CREATE INDEX webhooks_on ON webhooks (org_id, off_at_ms) WHERE off_at_ms IS NULL",
    """
    CREATE TABLE webhook_positions (
        org_id TEXT PRIMARY KEY,
        seq BIGINT NOT NULL,
        lease_owner TEXT,
        lease_until_ms BIGINT
    )
    """,
    """
    CREATE TABLE webhook_deliveries (
        id TEXT PRIMARY KEY,
        org_id TEXT NOT NULL,
        webhook_id TEXT NOT NULL,
        server_id TEXT,
        event_type TEXT NOT NULL,
        seq BIGINT NOT NULL,
        body BLOB NOT NULL,
        created_at_ms BIGINT NOT NULL,
        attempts BIGINT NOT NULL,
        next_at_ms BIGINT,
        delivered_at_ms BIGINT,
        lease_owner TEXT,
        lease_until_ms BIGINT,
        unrecorded BIGINT NOT NULL
    )
    """,
    "CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at_ms, id, lease_until_ms, org_id, webhook_id)"
    " WHERE next_at_ms IS NOT NULL",
    "CREATE INDEX webhook_deliveries_listed ON webhook_deliveries (webhook_id, created_at_ms, id)",
    "CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (webhook_id, created_at_ms, id, next_at_ms)"
    " WHERE next_at_ms IS NOT NULL",
    "CREATE INDEX webhook_deliveries_given_up"
    " ON webhook_deliveries (webhook_id, created_at_ms, id, delivered_at_ms, next_at_ms)"
    " WHERE delivered_at_ms IS NULL AND next_at_ms IS NULL",
    "CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (created_at_ms)",
    """
    CREATE TABLE raised_attention (
        server_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        org_id TEXT NOT NULL,
        raised_at_ms BIGINT NOT NULL,
        PRIMARY KEY (server_id, kind)
    )
    """,
    "CREATE INDEX raised_attention_of_org ON raised_attention (org_id, server_id)",
)

# Links can be for a named person, and give fewer rights than an owner has.
_PEOPLE = (
    "ALTER TABLE console_links ADD COLUMN name TEXT",
    "ALTER TABLE console_links ADD COLUMN role TEXT",
    "ALTER TABLE console_sessions ADD COLUMN name TEXT",
    "ALTER TABLE console_sessions ADD COLUMN role TEXT",
    "ALTER TABLE console_sessions ADD COLUMN address TEXT",
    "CREATE TABLE console_people (session_id TEXT PRIMARY KEY, name TEXT NOT NULL, at_ms BIGINT NOT NULL)",
)

# The words that matches are found by, as UTF-8: bytes have one order in all databases. A job stores those of matches
# that are not searchable yet, also of those that an earlier version has created.
_SEARCH = (
    "ALTER TABLE servers ADD COLUMN is_searchable BIGINT NOT NULL DEFAULT 0",
    "CREATE INDEX servers_not_searchable ON servers (created_at_ms DESC, id) WHERE is_searchable = 0",
    """
    CREATE TABLE match_words (
        org_id TEXT NOT NULL,
        word BLOB NOT NULL,
        created_at_ms BIGINT NOT NULL,
        server_id TEXT NOT NULL,
        PRIMARY KEY (org_id, word, created_at_ms, server_id)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE player_names (
        org_id TEXT NOT NULL,
        word BLOB NOT NULL,
        steam_id TEXT NOT NULL,
        PRIMARY KEY (org_id, word, steam_id)
    ) WITHOUT ROWID
    """,
    # Matches without a result are listed apart from those that are finished. The phase keeps other queries away.
    "CREATE INDEX servers_without_result ON servers (org_id, created_at_ms DESC, id, status)"
    " WHERE match_phase = 'ended' AND reason IS NOT NULL",
)

# Which person takes care of which match; and by when matches were acknowledged, which can be undone.
_CLAIMS = (
    """
    CREATE TABLE match_claims (
        server_id TEXT PRIMARY KEY,
        org_id TEXT NOT NULL,
        name TEXT NOT NULL,
        note TEXT NOT NULL,
        claimed_by TEXT NOT NULL,
        claimed_at_ms BIGINT NOT NULL
    )
    """,
    "CREATE INDEX match_claims_of_org ON match_claims (org_id, claimed_at_ms)",
    "CREATE INDEX servers_acknowledged ON servers (org_id, acknowledged_at_ms) WHERE acknowledged_at_ms IS NOT NULL",
)

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    _FIRST,
    history_schema.HISTORY,
    _LIMITS,
    _QUOTAS,
    _PENDING,
    HASHED_TOKENS,
    _CALLBACK_HOSTS,
    _CALLBACK_REPEATS,
    history_schema.COMPLETENESS,
    _CALLBACK_LISTS,
    _ORGANIZATION_EVENTS,
    _ENDINGS,
    _SERVER_LISTS,
    history_schema.ROUNDS,
    history_schema.MAP_NAMES,
    history_schema.LIST_ORDER,
    _OLD_SECRETS,
    _CONSOLE,
    history_schema.START_SIDES,
    _INSTALLATION,
    _ACKNOWLEDGEMENTS,
    _HEARTBEATS,
    _TRUST,
    _SERVER_TURNS,
    _CREATION,
    _OWN_BYTES,
    history_schema.FEWER_MAP_INDEXES,
    _FEWER_SERVER_INDEXES,
    _RULINGS,
    _LABELS,
    _FORFEITS,
    _MATCH_ACTIONS,
    _REGION_CHECKS,
    _SECRET_TRIALS,
    history_schema.ENDED_ONLY_INDEXES,
    _OPEN_SERVERS,
    _NO_AGE_OF_ENTRIES,
    history_schema.DEMOS,
    _WEBHOOKS,
    _PEOPLE,
    _SEARCH,
    _CLAIMS,
)
"""The statements at index n migrate from version n to n + 1."""

WITHOUT_EXPANSIONS: Final = 21
"""The schema of version 0.2.0. Processes of other versions than the newest could not use the database until then."""

LAST_RELEASE: Final = 22
"""The schema of the last release: what only earlier ones use may be removed."""

CONTRACTIONS: Final[Mapping[tuple[str, ...], int]] = {}
"""By migration that removes or changes something: the schema version that a process must know to work after it.

At most that of the last release, whose processes still run while this one is installed. Processes that know less refuse
to start, and those that run are no longer ready.
"""
