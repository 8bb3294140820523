"""Define the tables as an ordered list of migrations. A released migration is never changed.

Portable types only: TEXT, BIGINT (also for booleans, 0 and 1, and times in ms) and BLOB (BYTEA in PostgreSQL). WITHOUT
ROWID stores an SQLite table in its primary key index; PostgreSQL has no such tables.

A migration expands the schema: it adds tables, indexes, and columns that have a default or may be null. Processes of
the last release can ignore these. So both versions can share a database while replicas are replaced one by one, and the
older version can be started again. Unused parts are removed a release later, by a migration in CONTRACTIONS.
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
    # A partial index: released servers, the vast majority, are kept out of the most frequently used index.
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
    # The number of all bytes ever stored in a server's log, including deleted ones.
    "ALTER TABLE raw_log_heads ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0",
    # Entries during which a process died. `kind` is NULL until the entry is set aside, and then its original kind.
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
    # Matches without an outcome, which are counted when another match is created.
    "CREATE INDEX servers_live ON servers (org_id) WHERE phase <> 'released' AND phase <> 'ending'",
    # Always empty. To check whether the database accepts writes, a row is written and deleted again.
    "CREATE TABLE write_checks (id TEXT PRIMARY KEY, body BLOB NOT NULL)",
)

_PENDING = ("ALTER TABLE servers ADD COLUMN pending_until_ms BIGINT",)

# The columns with tokens become columns with their hashes, next to sealed tokens. The tokens of open servers are
# converted by `token_migration`. Released servers need no tokens, and must not be found by their old tokens.
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

# The number of concurrent callbacks per host is limited. In older rows the host is empty, which counts as another host.
# The index covers all columns that select due callbacks, because in a row they come after the large body.
_CALLBACK_HOSTS = (
    "ALTER TABLE callbacks ADD COLUMN host TEXT NOT NULL DEFAULT ''",
    "DROP INDEX callbacks_due",
    "CREATE INDEX callbacks_due ON callbacks (next_at_ms, id, lease_until_ms, org_id, host)"
    " WHERE next_at_ms IS NOT NULL",
)

_CALLBACK_REPEATS = ("ALTER TABLE callbacks ADD COLUMN unrecorded BIGINT NOT NULL DEFAULT 0",)

# Lists of an organization's callbacks are paged by index-only scans: one index per state, and one for all states.
# SQLite checks the columns of a partial index's condition again, so they are in the index too.
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

# Copies of columns of `outcomes`, because the reason is read with the server, and rows of `outcomes` are large.
_ENDINGS = (
    "ALTER TABLE servers ADD COLUMN reason TEXT",
    "ALTER TABLE servers ADD COLUMN failure TEXT",
    """
    UPDATE servers SET reason = (SELECT outcomes.reason FROM outcomes WHERE outcomes.server_id = servers.id)
    WHERE ended_at_ms IS NOT NULL
    """,
)

# Lists of servers work like lists of maps and series: an index for each combination of filters, and stored counts.
_SERVER_LISTS = (
    "ALTER TABLE servers ADD COLUMN match_phase TEXT NOT NULL DEFAULT 'allocating'",
    """
    UPDATE servers SET match_phase = CASE WHEN phase = 'running' THEN 'waiting_for_players' ELSE 'ended' END
    WHERE phase IN ('running', 'ending', 'released')
    """,
    # Without statistics, SQLite prefers the index with more given columns. So these two are still preferred to the new.
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
    # The keys of `history_counts`: all servers, ended servers, and servers by final status. A day has 86,400,000 ms.
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

# For a while after a secret was replaced, both the old and the new secret are used for signing.
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
    # Recently ended matches are counted by an index-only scan.
    "CREATE INDEX servers_ended ON servers (org_id, ended_at_ms, status) WHERE ended_at_ms IS NOT NULL",
)

# Facts about the installation, one row per name; and servers that a sweep did not release, because an operator has to
# confirm it.
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

# Matches that ended without a result are shown until they are acknowledged. Matches that ended before this migration
# count as acknowledged, so that they do not all appear at once.
_ACKNOWLEDGEMENTS = (
    "ALTER TABLE servers ADD COLUMN acknowledged_at_ms BIGINT",
    "ALTER TABLE servers ADD COLUMN acknowledged_by TEXT",
    "UPDATE servers SET acknowledged_at_ms = ended_at_ms WHERE reason IS NOT NULL",
    # There are two indexes, so that many matches canceled by a program do not make it slow to find a failed match.
    "CREATE INDEX servers_failed ON servers (org_id, ended_at_ms DESC, id)"
    " WHERE reason NOT IN ('canceled_by_user', 'canceled_by_operator') AND acknowledged_at_ms IS NULL",
    "CREATE INDEX servers_canceled ON servers (org_id, ended_at_ms DESC, id)"
    " WHERE reason IN ('canceled_by_user', 'canceled_by_operator') AND acknowledged_at_ms IS NULL",
)

# The processes that share a database. This is not a column of `servers`, because it is written every second.
_HEARTBEATS = ("CREATE TABLE heartbeats (owner TEXT PRIMARY KEY, at_ms BIGINT NOT NULL, max_matches BIGINT)",)

# The attempt (server) that sent an entry (empty if the service or an earlier version wrote the entry), the process that
# is trying an entry, and the silent servers of a process.
_TRUST = (
    "ALTER TABLE raw_log ADD COLUMN attempt TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE unfinished_entries ADD COLUMN owner TEXT",
    "ALTER TABLE heartbeats ADD COLUMN silences BLOB",
)

# The match that gets the next server of a region depends on how many servers each organization holds there. Faulty
# servers rest. SQLite checks the columns of a partial index's condition again, so they are in the indexes too.
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

# Who created a match, and whether its callback may go to a private address; both are unknown for earlier matches.
_CREATION = (
    "ALTER TABLE servers ADD COLUMN created_by TEXT",
    "ALTER TABLE servers ADD COLUMN callback_private BIGINT",
)

# The bytes in a match's log up to `log_from_seq`. They are of earlier servers, and do not count toward its quota.
_OWN_BYTES = ("ALTER TABLE servers ADD COLUMN log_from_bytes BIGINT NOT NULL DEFAULT 0",)

# Lists of ended servers by status use the index of all servers, because most have the same status. Open servers have an
# index of their own.
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

# Actions that people requested on open matches. The match's log has them as entries; these rows are for display.
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

# All rulings on matches. The current ruling is also in the server's row as JSON, because it is read with the outcome.
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

# The labels of matches, for filtering. `marks` has what is displayed: labels, and whether the match is simulated.
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

# The team to which a match was forfeited; earlier versions had no forfeits.
_FORFEITS = ("ALTER TABLE servers ADD COLUMN forfeited_to TEXT",)

# Trials of a fleet's secret on its servers, and rejections. The places per secret limit their number.
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

# The newest check of each region, and the log posts that a check waits for.
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

# One index of open servers instead of two. Ended servers of a region get a partial index. The audit log is pruned by
# id, because its ids sort by time.
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

# Logs are pruned match by match, by the primary key. An index by age costs another page write for every post.
_NO_AGE_OF_ENTRIES = ("DROP INDEX raw_log_by_age",)

# Webhooks of organizations, and their deliveries. Delivery attempts are in `callback_attempts` together with those of
# callbacks; ids of deliveries and callbacks never clash. The position in an organization's events changes in the same
# transaction as the deliveries are stored, so that no delivery is lost or duplicated. Raised attention is stored, so
# that it is not raised again.
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

# Links can be for a named person, and grant fewer rights than an owner has.
_PEOPLE = (
    "ALTER TABLE console_links ADD COLUMN name TEXT",
    "ALTER TABLE console_links ADD COLUMN role TEXT",
    "ALTER TABLE console_sessions ADD COLUMN name TEXT",
    "ALTER TABLE console_sessions ADD COLUMN role TEXT",
    "ALTER TABLE console_sessions ADD COLUMN address TEXT",
    "CREATE TABLE console_people (session_id TEXT PRIMARY KEY, name TEXT NOT NULL, at_ms BIGINT NOT NULL)",
)

# The search words of matches, as UTF-8, because bytes have the same order in all databases. A job stores the words of
# matches that are not searchable yet, including matches of an earlier version.
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
    # Matches without a result can be listed separately. The condition on the phase keeps other queries off this index.
    "CREATE INDEX servers_without_result ON servers (org_id, created_at_ms DESC, id, status)"
    " WHERE match_phase = 'ended' AND reason IS NOT NULL",
)

# Who takes care of a match. The index finds what was acknowledged at a time, because an acknowledgement can be undone.
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
"""The statements at index n migrate the schema from version n to n + 1."""

WITHOUT_EXPANSIONS: Final = 21
"""The schema version of release 0.2.0. Up to it, every migration made the database unusable for older releases."""

LAST_RELEASE: Final = 22
"""The schema version of the last release. Parts that only earlier releases use may be removed."""

CONTRACTIONS: Final[Mapping[tuple[str, ...], int]] = {}
"""Migrations that remove or change something, with the schema version that a process must know to work after them.

This version is at most LAST_RELEASE, because processes of the last release still run during an upgrade. Processes that
know only an older version refuse to start, and those that are running are no longer ready.
"""
