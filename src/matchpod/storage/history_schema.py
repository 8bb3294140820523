"""Migrations of the tables with the history of matches. `schema.MIGRATIONS` lists them in order."""

from __future__ import annotations

# Maps and series of matches. Pages of a list are read by index-only scans, so each combination of filters has an index.
# `sort_ms` is the time when the map or series started, or 0 if it never started.
HISTORY = (
    """
    CREATE TABLE maps (
        id TEXT PRIMARY KEY,
        server_id TEXT NOT NULL,
        org_id TEXT NOT NULL,
        series_id TEXT,
        map_number BIGINT NOT NULL,
        map_name TEXT NOT NULL,
        game_mode TEXT NOT NULL,
        server_name TEXT NOT NULL,
        team1_name TEXT,
        team2_name TEXT,
        team1_score BIGINT NOT NULL,
        team2_score BIGINT NOT NULL,
        winner TEXT,
        status TEXT NOT NULL,
        started_at_ms BIGINT,
        finished_at_ms BIGINT,
        duration_s BIGINT,
        player_count BIGINT NOT NULL,
        is_final BIGINT NOT NULL,
        sort_ms BIGINT NOT NULL
    )
    """,
    "CREATE INDEX maps_of_server ON maps (server_id, map_number)",
    "CREATE INDEX maps_newest ON maps (org_id, sort_ms DESC, id)",
    "CREATE INDEX maps_by_status ON maps (org_id, status, sort_ms DESC, id)",
    "CREATE INDEX maps_by_name ON maps (org_id, map_name, sort_ms DESC, id)",
    "CREATE INDEX maps_by_name_and_status ON maps (org_id, map_name, status, sort_ms DESC, id)",
    """
    CREATE TABLE series (
        id TEXT PRIMARY KEY,
        series_id TEXT NOT NULL UNIQUE,
        server_id TEXT NOT NULL,
        org_id TEXT NOT NULL,
        server_name TEXT NOT NULL,
        format TEXT NOT NULL,
        game_mode TEXT NOT NULL,
        team1_name TEXT NOT NULL,
        team2_name TEXT NOT NULL,
        team1_maps_won BIGINT NOT NULL,
        team2_maps_won BIGINT NOT NULL,
        status TEXT NOT NULL,
        winner_team TEXT,
        started_at_ms BIGINT,
        finished_at_ms BIGINT,
        duration_s BIGINT,
        sort_ms BIGINT NOT NULL
    )
    """,
    "CREATE INDEX series_of_server ON series (server_id)",
    "CREATE INDEX series_newest ON series (org_id, sort_ms DESC, id)",
    "CREATE INDEX series_by_status ON series (org_id, status, sort_ms DESC, id)",
    # A separate table: the statistics of a map are much larger than its row in `maps`, and many rows of `maps` are read
    # at once.
    """
    CREATE TABLE map_stats (
        map_id TEXT PRIMARY KEY,
        stats_version BIGINT NOT NULL,
        players BLOB NOT NULL,
        anti_cheat BLOB NOT NULL,
        leaderboard BLOB NOT NULL
    )
    """,
    # The number of maps and series per filter. Counting the rows instead would take longer with each match.
    """
    CREATE TABLE history_counts (
        org_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        status TEXT NOT NULL,
        map_name TEXT NOT NULL,
        day BIGINT NOT NULL,
        count BIGINT NOT NULL,
        PRIMARY KEY (org_id, kind, status, map_name, day)
    )
    """,
    """
    CREATE TABLE map_events (
        map_id TEXT NOT NULL,
        first_seq BIGINT NOT NULL,
        count BIGINT NOT NULL,
        at_ms BIGINT NOT NULL,
        is_compressed BIGINT NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (map_id, first_seq)
    )
    """,
    "CREATE INDEX map_events_by_age ON map_events (at_ms)",
)

COMPLETENESS = (
    "ALTER TABLE maps ADD COLUMN is_complete BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE maps ADD COLUMN missing_rounds BLOB",
)

# The rounds of ended maps, as compressed JSON. They are not in `map_stats`, because leaderboards read that table.
ROUNDS = ("CREATE TABLE map_rounds (map_id TEXT PRIMARY KEY, body BLOB NOT NULL)",)

# The map name that the server reported, and whether the series needed the map.
MAP_NAMES = (
    "ALTER TABLE maps ADD COLUMN played_map_name TEXT",
    "ALTER TABLE maps ADD COLUMN is_needed BIGINT NOT NULL DEFAULT 1",
)

# The side on which team1 started a map, and how it was decided.
START_SIDES = (
    "ALTER TABLE maps ADD COLUMN team1_start_side TEXT",
    "ALTER TABLE maps ADD COLUMN sides_by TEXT",
)

# Maps and series that have not started are ordered by creation, and the maps of a series by number.
LIST_ORDER = (
    "DROP INDEX maps_newest",
    "DROP INDEX maps_by_status",
    "DROP INDEX maps_by_name",
    "DROP INDEX maps_by_name_and_status",
    "DROP INDEX series_newest",
    "DROP INDEX series_by_status",
    "CREATE INDEX maps_newest ON maps (org_id, sort_ms DESC, server_id DESC, map_number, id)",
    "CREATE INDEX maps_by_status ON maps (org_id, status, sort_ms DESC, server_id DESC, map_number, id)",
    "CREATE INDEX maps_by_name ON maps (org_id, map_name, sort_ms DESC, server_id DESC, map_number, id)",
    "CREATE INDEX maps_by_name_and_status"
    " ON maps (org_id, map_name, status, sort_ms DESC, server_id DESC, map_number, id)",
    "CREATE INDEX series_newest ON series (org_id, sort_ms DESC, server_id DESC, id)",
    "CREATE INDEX series_by_status ON series (org_id, status, sort_ms DESC, server_id DESC, id)",
)

# The same index serves lists by map name with and without a status, because most maps with a name are finished. It is
# created before the old indexes are dropped, so that readers wait only for the drops.
FEWER_MAP_INDEXES = (
    "CREATE INDEX maps_of_name ON maps (org_id, map_name, sort_ms DESC, server_id DESC, map_number, id, status)",
    "DROP INDEX maps_by_name",
    "DROP INDEX maps_by_name_and_status",
)

# Rows of matches in progress are few and are found through their servers, so list indexes do not contain them. Thus an
# index entry is written only once, when the map or series is over. The columns of a partial index's condition are in
# the index too, because SQLite checks them again.
_IS_OVER = "WHERE status <> 'upcoming' AND status <> 'live'"
ENDED_ONLY_INDEXES = (
    f"CREATE INDEX maps_ended ON maps (org_id, sort_ms DESC, server_id DESC, map_number, id, status) {_IS_OVER}",
    "CREATE INDEX maps_ended_by_status"
    f" ON maps (org_id, status, sort_ms DESC, server_id DESC, map_number, id) {_IS_OVER}",
    "CREATE INDEX maps_ended_of_name"
    f" ON maps (org_id, map_name, sort_ms DESC, server_id DESC, map_number, id, status) {_IS_OVER}",
    f"CREATE INDEX series_ended ON series (org_id, sort_ms DESC, server_id DESC, id, status) {_IS_OVER}",
    f"CREATE INDEX series_ended_by_status ON series (org_id, status, sort_ms DESC, server_id DESC, id) {_IS_OVER}",
    "DROP INDEX maps_newest",
    "DROP INDEX maps_by_status",
    "DROP INDEX maps_of_name",
    "DROP INDEX series_newest",
    "DROP INDEX series_by_status",
)

# Demos that game servers record and upload. `uploads_for` is the server's id while an upload is in progress.
DEMOS = (
    """
    CREATE TABLE demos (
        id TEXT PRIMARY KEY,
        org_id TEXT NOT NULL,
        server_id TEXT NOT NULL,
        map_id TEXT NOT NULL,
        map_number BIGINT NOT NULL,
        attempt TEXT NOT NULL,
        token_hash TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT,
        created_at_ms BIGINT NOT NULL,
        due_ms BIGINT,
        file_name TEXT,
        announced_bytes BIGINT,
        received_bytes BIGINT NOT NULL DEFAULT 0,
        stored_bytes BIGINT NOT NULL DEFAULT 0,
        sha256 TEXT,
        storage_key TEXT,
        begun_at_ms BIGINT,
        renewed_at_ms BIGINT,
        ended_at_ms BIGINT,
        owner TEXT,
        upload_id TEXT,
        uploads_for TEXT UNIQUE
    )
    """,
    "CREATE INDEX demos_of_server ON demos (server_id, created_at_ms, id)",
    "CREATE INDEX demos_of_map ON demos (map_id, created_at_ms, id)",
    "CREATE INDEX demos_of_token ON demos (token_hash)",
    "CREATE INDEX demos_of_org ON demos (org_id, stored_bytes)",
    "CREATE INDEX demos_by_state ON demos (state, due_ms)",
    "CREATE INDEX demos_stored ON demos (ended_at_ms, id, storage_key) WHERE storage_key IS NOT NULL",
)
