"""Define the tables, as an ordered list of migrations. A migration never changes after its release.

Only portable column types are used: TEXT, BLOB (BYTEA in PostgreSQL) and BIGINT, which is also used for booleans (0 and
1) and times in ms. WITHOUT ROWID makes SQLite store a table in its primary key index; PostgreSQL has no such tables.

A migration expands the schema: it adds tables, indexes, and columns that have a default or may be null. The previous
release ignores these, so both versions can share a database during a rolling update, and the older version can be
started again. Parts that are no longer used are removed one release later, by a migration in CONTRACTIONS.
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
    # A separate table, because `servers` is read far more often than a match is resumed.
    "CREATE TABLE snapshots (server_id TEXT PRIMARY KEY, seq BIGINT NOT NULL, state BLOB NOT NULL)",
    "CREATE INDEX servers_by_owner ON servers (lease_owner) WHERE lease_owner IS NOT NULL",
    # A partial index without released servers, which are the vast majority: it is used more often than any other.
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
    # The number of the last entry in a server's log. Concurrent appends lock this row and wait for each other.
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
    # The total size of all entries that were ever stored in a server's log, including deleted entries.
    "ALTER TABLE raw_log_heads ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0",
    # Entries that processes died while processing. `kind` is NULL until the entry is set aside, then the original kind.
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
    # For counting an organization's matches without an outcome, whenever a match is created.
    "CREATE INDEX servers_live ON servers (org_id) WHERE phase <> 'released' AND phase <> 'ending'",
    # Always empty. A row is written and deleted again to check whether the database accepts writes.
    "CREATE TABLE write_checks (id TEXT PRIMARY KEY, body BLOB NOT NULL)",
)

_PENDING = ("ALTER TABLE servers ADD COLUMN pending_until_ms BIGINT",)

# Columns with tokens are replaced with columns for their hashes and for sealed tokens. `token_migration` converts the
# tokens of open servers. Released servers need no tokens, and must not be found by their old tokens.
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

# The number of concurrent callbacks is limited per host. In older rows the host is empty, and the empty name counts as
# one host. The index contains all columns that select due callbacks, because in the row they are stored after the large
# body.
_CALLBACK_HOSTS = (
    "ALTER TABLE callbacks ADD COLUMN host TEXT NOT NULL DEFAULT ''",
    "DROP INDEX callbacks_due",
    "CREATE INDEX callbacks_due ON callbacks (next_at_ms, id, lease_until_ms, org_id, host)"
    " WHERE next_at_ms IS NOT NULL",
)

_CALLBACK_REPEATS = ("ALTER TABLE callbacks ADD COLUMN unrecorded BIGINT NOT NULL DEFAULT 0",)

# Lists of an organization's callbacks are paged by index-only scans. There is one index per state, and one for all
# states. The columns of a partial index's condition are in the index too, because SQLite checks them again.
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

# Copies of columns in `outcomes`. They are read with the server, and rows of `outcomes` are large.
_ENDINGS = (
    "ALTER TABLE servers ADD COLUMN reason TEXT",
    "ALTER TABLE servers ADD COLUMN failure TEXT",
    """
    UPDATE servers SET reason = (SELECT outcomes.reason FROM outcomes WHERE outcomes.server_id = servers.id)
    WHERE ended_at_ms IS NOT NULL
    """,
)

# Lists of servers are implemented like lists of maps and series: by stored counts, and an index per combination of
# filters.
_SERVER_LISTS = (
    "ALTER TABLE servers ADD COLUMN match_phase TEXT NOT NULL DEFAULT 'allocating'",
    """
    UPDATE servers SET match_phase = CASE WHEN phase = 'running' THEN 'waiting_for_players' ELSE 'ended' END
    WHERE phase IN ('running', 'ending', 'released')
    """,
    # Without statistics, SQLite prefers the index that matches more columns. So the next two indexes get one more
    # column, and it still prefers them to the new indexes.
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
    # The keys of `history_counts` for servers: all servers, ended servers, and servers by final status. A day has
    # 86,400,000 ms.
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

# For a while after a secret is replaced, callbacks are signed with both the old and the new secret.
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
    # For counting recently ended matches with an index-only scan.
    "CREATE INDEX servers_ended ON servers (org_id, ended_at_ms, status) WHERE ended_at_ms IS NOT NULL",
)

# Values that concern the whole installation, one row per name. Servers that a sweep found but did not release, because
# an operator has to confirm their release.
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
# count as acknowledged, so that they are not all shown at once.
_ACKNOWLEDGEMENTS = (
    "ALTER TABLE servers ADD COLUMN acknowledged_at_ms BIGINT",
    "ALTER TABLE servers ADD COLUMN acknowledged_by TEXT",
    "UPDATE servers SET acknowledged_at_ms = ended_at_ms WHERE reason IS NOT NULL",
    # Two indexes, so that a failed match is found quickly even if a program canceled many matches.
    "CREATE INDEX servers_failed ON servers (org_id, ended_at_ms DESC, id)"
    " WHERE reason NOT IN ('canceled_by_user', 'canceled_by_operator') AND acknowledged_at_ms IS NULL",
    "CREATE INDEX servers_canceled ON servers (org_id, ended_at_ms DESC, id)"
    " WHERE reason IN ('canceled_by_user', 'canceled_by_operator') AND acknowledged_at_ms IS NULL",
)

# The processes that share a database. Their heartbeats are not in `servers`, because they are written every second.
_HEARTBEATS = ("CREATE TABLE heartbeats (owner TEXT PRIMARY KEY, at_ms BIGINT NOT NULL, max_matches BIGINT)",)

# The attempt that sent an entry (empty if the service or an earlier version wrote it), the process that is trying an
# entry, and the silent servers that a process reports.
_TRUST = (
    "ALTER TABLE raw_log ADD COLUMN attempt TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE unfinished_entries ADD COLUMN owner TEXT",
    "ALTER TABLE heartbeats ADD COLUMN silences BLOB",
)

# The next free server of a region goes to a match whose organization has few servers there. Faulty servers rest. The
# columns of a partial index's condition are in the index too, because SQLite checks them again.
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

# Who created a match, and whether its callback may be sent to a private address. Both are NULL for earlier matches.
_CREATION = (
    "ALTER TABLE servers ADD COLUMN created_by TEXT",
    "ALTER TABLE servers ADD COLUMN callback_private BIGINT",
)

# Number of bytes in a match's log up to `log_from_seq`. Abandoned servers sent them, so they do not count toward the
# match's quota.
_OWN_BYTES = ("ALTER TABLE servers ADD COLUMN log_from_bytes BIGINT NOT NULL DEFAULT 0",)

# Lists of ended servers by status use the index of all servers, because most servers have the same status. Open servers
# have their own index.
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

# Actions that users requested on open matches. The match's log contains them too; these rows are for display.
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

# All rulings on matches. A JSON copy of the current ruling is in the server's row, because it is read with the outcome.
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

# The labels of matches, for filtering. `marks` contains what is displayed: the labels, and whether the match is
# simulated.
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

# The team that won because the other team forfeited; NULL in rows of earlier versions.
_FORFEITS = ("ALTER TABLE servers ADD COLUMN forfeited_to TEXT",)

# Trials of a fleet's secret on its servers, and rejections by servers. `place` limits their number per secret.
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

# The newest check of each region, and the log posts that a check expects.
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

# One index of open servers replaces two, and a partial index of ended servers by region replaces an index of all. The
# audit log is pruned by id, which sorts by time, so its index by time is dropped.
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

# Logs are pruned per match by primary key. An index by age would cost another page write per post.
_NO_AGE_OF_ENTRIES = ("DROP INDEX raw_log_by_age",)

# Webhooks of organizations, and their deliveries. Attempts of deliveries are stored in `callback_attempts`, like those
# of callbacks; the ids of deliveries and callbacks never clash. The position in an organization's events is updated in
# the transaction that stores the deliveries, so that no delivery is lost or duplicated. Raised attention is stored, so
# that the same attention is not raised twice.
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

# Links can be created for a named person, and can grant fewer rights than an owner has.
_PEOPLE = (
    "ALTER TABLE console_links ADD COLUMN name TEXT",
    "ALTER TABLE console_links ADD COLUMN role TEXT",
    "ALTER TABLE console_sessions ADD COLUMN name TEXT",
    "ALTER TABLE console_sessions ADD COLUMN role TEXT",
    "ALTER TABLE console_sessions ADD COLUMN address TEXT",
    "CREATE TABLE console_people (session_id TEXT PRIMARY KEY, name TEXT NOT NULL, at_ms BIGINT NOT NULL)",
)

# The search words of matches, as UTF-8 bytes, because bytes sort in the same order in all databases. A job stores the
# words of matches that are not searchable yet, including matches of earlier versions.
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
    # For lists of matches without a result. The condition on the phase keeps other queries from using this index.
    "CREATE INDEX servers_without_result ON servers (org_id, created_at_ms DESC, id, status)"
    " WHERE match_phase = 'ended' AND reason IS NOT NULL",
)

# Who takes care of a match. The index finds the acknowledgements made at a time, so that they can be undone.
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
"""Migrations in order. Migration n (counted from 0) is a list of statements that migrate the schema from version n to n
+ 1."""

WITHOUT_EXPANSIONS: Final = 21
"""Schema version of release 0.2.0. Migrations up to this version made the database unusable for older releases."""

LAST_RELEASE: Final = 22
"""Schema version of the previous release. Parts that are used only by older releases may be removed."""

CONTRACTIONS: Final[Mapping[tuple[str, ...], int]] = {}
"""Migrations that remove or change something, with the schema version that a process must know to work afterwards.

That version is at most LAST_RELEASE, because processes of the previous release still run during an upgrade. Processes
that know only older versions do not start, and are no longer ready if they are already running.
"""
