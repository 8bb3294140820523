"""Generate the history of two years of matches inside the database, with the same SQL for both databases.

Every eight maps belong to four matches, of one, three, two and two maps. Matches are spread evenly over the two years
and stored oldest first. One organization has half of the maps. Nothing is random: matches differ by a hash of their
number. The database must have the functions `uuid_of(text)` and `bytes_of(text)`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from itertools import chain
from typing import Final

from matchpod.storage.history_counts import DAY_MS, end_server
from matchpod.storage.schema import LAST_RELEASE, MIGRATIONS

FIRST_MS: Final = 20_000 * DAY_MS
SPAN_MS: Final = 730 * DAY_MS

ORGANIZATIONS: Final = 50
BIG: Final = "org_big"
MAP_NAMES: Final = (
    "de_ancient", "de_anubis", "de_dust2", "de_inferno", "de_mirage", "de_nuke", "de_overpass", "de_train",
)  # fmt: skip

MAPS_PER_GROUP: Final = 8
MATCHES_PER_GROUP: Final = 4
_MATCH_OF_MAP: Final = (0, 1, 1, 1, 2, 2, 3, 3)
_NUMBER_OF_MAP: Final = (1, 1, 2, 3, 1, 2, 1, 2)
_MAPS_OF_MATCH: Final = (1, 3, 2, 2)
_DECIDER: Final = 3
"""Number of the third map, which is not played if one team won the first two, as in about half of the matches."""
_MAP_MS: Final = 45 * 60 * 1000

# Per thousand matches; the rest is upcoming.
_FINISHED: Final = 940
_CANCELLED: Final = 50
_LIVE: Final = 5

TEAMS: Final = 97
KNOWN_PLAYERS: Final = 2_000
WORD_PARTS: Final = 8

_ID_ZEROS: Final = "0" * 16
_ID_START: Final = 1_000_000_000

_DROPPED: Final = frozenset(
    statement.split()[2] for statement in chain(*MIGRATIONS[LAST_RELEASE:]) if statement.startswith("DROP INDEX")
)
INDEXES: Final = {
    statement.split()[2]: statement
    for statement in chain(*MIGRATIONS)
    if statement.startswith("CREATE INDEX")
    and statement.split()[4] in ("maps", "series", "map_events", "servers")
    and statement.split()[2] not in _DROPPED
}
"""The indexes of the history tables, by name."""


def big_server_id(number: int) -> str:
    """Return the server id of a one-map match of the large organization; these are numbered from 0."""
    return f"srv_{_ID_ZEROS}{_ID_START + number * 2 * MATCHES_PER_GROUP}"


def big_servers(maps: int) -> int:
    """Return the number of one-map matches of the large organization."""
    return -(-maps // (2 * MAPS_PER_GROUP))


def fill_statements(maps: int) -> Iterator[str]:
    """Yield the statements that fill empty tables."""
    # Creating an index of many rows is faster than adding the rows to it.
    yield from (f"DROP INDEX {name}" for name in INDEXES)
    matches = maps // MAPS_PER_GROUP * MATCHES_PER_GROUP
    match = f"i / {MAPS_PER_GROUP} * {MATCHES_PER_GROUP} + {_choose(f'i % {MAPS_PER_GROUP}', _MATCH_OF_MAP)}"
    yield f"WITH RECURSIVE {_numbers(maps)}, {_matches(matches, match)} {_MAPS}"
    yield f"WITH RECURSIVE {_numbers(matches)}, {_matches(matches, 'i')} {_SERIES}"
    yield f"WITH RECURSIVE {_numbers(matches)}, {_matches(matches, 'i')} {_SERVERS}"
    for part in range(WORD_PARTS):  # one statement would need as much memory as all words
        some = f"SELECT * FROM matches WHERE i % {WORD_PARTS} = {part}"
        yield f"WITH RECURSIVE {_numbers(matches)}, {_matches(matches, 'i')}, chosen AS ({some}) {_WORDS}"
    ended = "FROM maps WHERE is_final = 1 AND sort_ms > 0"
    # Much shorter than real data, which would need gigabytes; the rows that are read get the real length later.
    yield f"INSERT INTO map_stats SELECT id, 1, {_SHORT}, {_SHORT}, {_SHORT} {ended}"
    yield f"INSERT INTO map_events SELECT id, 1, 1, sort_ms, 0, {_SHORT} {ended}"
    for chosen in itertools.product(("status", "''"), ("map_name", "''"), ("day", "-1")):
        yield _count("map", "maps", chosen)
        if "map_name" not in chosen:
            yield _count("series", "series", chosen)
    of_ended, by_status = end_server("")
    ended_only = "WHERE match_phase = 'ended'"
    yield of_ended.sql.replace("WHERE id = :server_id", ended_only)
    yield by_status.sql.replace("WHERE id = :server_id", ended_only)
    yield of_ended.sql.replace("WHERE id = :server_id", "").replace("'ended'", "''")
    yield from INDEXES.values()


def _count(kind: str, table: str, chosen: tuple[str, ...]) -> str:
    """Return the statement that counts by some of the columns; counting all combinations at once would take longer."""
    grouped = ", ".join(["org_id", *(name for name in chosen if name.isidentifier())])
    return (
        "INSERT INTO history_counts (org_id, kind, status, map_name, day, count)"
        f" SELECT org_id, '{kind}', {', '.join(chosen)}, COUNT(*)"
        f" FROM (SELECT *, sort_ms / {DAY_MS} AS day FROM {table}) AS counted GROUP BY {grouped}"
    )


def _choose(key: str, values: tuple[object, ...]) -> str:
    cases = " ".join(f"WHEN {number} THEN {value!r}" for number, value in enumerate(values))
    return f"CASE {key} {cases} END"


def _numbers(end: int) -> str:
    return f"numbers (i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < {end})"


def _matches(end: int, match: str) -> str:
    """Return the table expressions of match number `match` for each i: its ids, organization, status and start."""
    number = f"('{_ID_ZEROS}' || ({_ID_START} + n))"
    # The upper half of a product with a large prime: consecutive numbers get unrelated hashes.
    return f"""
        numbered AS (SELECT i, {match} AS n FROM numbers),
        hashed AS (SELECT i, n, n * 2654435761 % 4294967296 / 65536 AS hash FROM numbered),
        matches AS (
            SELECT i, n, hash, 'srv_' || {number} AS server_id, 'ser_' || {number} AS series_id,
                CASE WHEN n / {MATCHES_PER_GROUP} % 2 = 0 THEN '{BIG}'
                    ELSE 'org_' || (n / {2 * MATCHES_PER_GROUP} % {ORGANIZATIONS - 1}) END AS org_id,
                CASE WHEN hash % 1000 < {_FINISHED} THEN 'finished'
                    WHEN hash % 1000 < {_FINISHED + _CANCELLED} THEN 'cancelled'
                    WHEN hash % 1000 < {_FINISHED + _CANCELLED + _LIVE} THEN 'live'
                    ELSE 'upcoming' END AS fate,
                {FIRST_MS} + n * {SPAN_MS} / {end} AS begin_ms
            FROM hashed
        )"""


_SHORT: Final = "CAST('[]' AS BLOB)"

# Every other cancelled match had started; of a live match, the first map is live.
_MAPS: Final = f"""
    , played AS (
        SELECT *, {_choose(f"i % {MAPS_PER_GROUP}", _NUMBER_OF_MAP)} AS number FROM matches
    ), placed AS (
        SELECT *, begin_ms + (number - 1) * {_MAP_MS} AS start_ms,
            CASE WHEN fate = 'finished' AND number = {_DECIDER} AND hash / 1000 % 2 = 0 THEN 'cancelled'
                WHEN fate = 'live' AND number > 1 THEN 'upcoming'
                ELSE fate END AS status,
            CASE WHEN fate = 'finished' THEN number <> {_DECIDER} OR hash / 1000 % 2 = 1
                WHEN fate = 'cancelled' THEN number = 1 AND hash % 2 = 0
                ELSE fate = 'live' AND number = 1 END AS is_started
        FROM played
    )
    INSERT INTO maps (id, server_id, org_id, series_id, map_number, map_name, game_mode, server_name, team1_name,
        team2_name, team1_score, team2_score, winner, status, started_at_ms, finished_at_ms, duration_s, player_count,
        is_final, sort_ms)
    SELECT uuid_of('map ' || i), server_id, org_id, series_id, number,
        {_choose(f"(hash + number) % {len(MAP_NAMES)}", MAP_NAMES)}, 'competitive',
        'Frankfurt ' || substr(server_id, 25), 'Team ' || (n % 97), 'Team ' || (hash % 89),
        CASE WHEN is_started THEN 13 ELSE 0 END, CASE WHEN is_started THEN hash % 12 ELSE 0 END,
        CASE WHEN status = 'finished' THEN 'team1' END, status,
        CASE WHEN is_started THEN start_ms END,
        CASE WHEN status = 'finished' THEN start_ms + {_MAP_MS} END,
        CASE WHEN status = 'finished' THEN {_MAP_MS // 1000} END,
        CASE WHEN is_started THEN 10 ELSE 0 END,
        CASE WHEN status IN ('finished', 'cancelled') THEN 1 ELSE 0 END,
        CASE WHEN is_started THEN start_ms ELSE 0 END
    FROM placed
    """
_SERIES: Final = f"""
    , placed AS (
        SELECT *, {_choose(f"n % {MATCHES_PER_GROUP}", _MAPS_OF_MATCH)} AS maps,
            fate IN ('finished', 'live') OR (fate = 'cancelled' AND hash % 2 = 0) AS is_started
        FROM matches
    )
    INSERT INTO series (id, series_id, server_id, org_id, server_name, format, game_mode, team1_name, team2_name,
        team1_maps_won, team2_maps_won, status, winner_team, started_at_ms, finished_at_ms, duration_s, sort_ms)
    SELECT uuid_of('series ' || n), series_id, server_id, org_id, 'Frankfurt ' || substr(server_id, 25),
        'bo' || maps, 'competitive', 'Team ' || (n % 97), 'Team ' || (hash % 89),
        CASE WHEN fate = 'finished' THEN (maps + 1) / 2 ELSE 0 END, 0, fate,
        CASE WHEN fate = 'finished' THEN 'Team ' || (n % 97) END,
        CASE WHEN is_started THEN begin_ms END,
        CASE WHEN fate = 'finished' THEN begin_ms + maps * {_MAP_MS} END,
        CASE WHEN fate = 'finished' THEN maps * {_MAP_MS // 1000} END,
        CASE WHEN is_started THEN begin_ms ELSE 0 END
    FROM placed
    """

# Only of matches that have ended: few are open in a real database. Their settings are empty; real ones are a kilobyte.
_SERVERS: Final = """
    INSERT INTO servers (id, game_id, org_id, region, phase, status, match_phase, external_match_id, settings,
        log_token_hash, report_token_hash, plugin_match_id, created_at_ms, was_pending, next_at_ms, fence, tries,
        log_from_seq, is_password_ours, ended_at_ms, reason, is_searchable)
    SELECT server_id, 'x', org_id, 'eu', 'released', 'stopped', 'ended', 'cup-' || (n % 50) || '/match' || n,
        CAST('{}' AS BLOB), 'l' || n, 'r' || n, 1, begin_ms, 0, begin_ms, 0, 0, 0, 1, begin_ms,
        CASE WHEN fate = 'cancelled' THEN 'canceled_by_user' END, 1
    FROM matches WHERE fate IN ('finished', 'cancelled')
    """
_WORD_CASES: Final = (
    "'cup'", "'' || (n % 50)", "'match' || n", "'team'", f"'t' || (n % {TEAMS})", f"'t' || (hash % {TEAMS})",
    *(f"'' || (76561198000000000 + (hash * {number} + n) % {KNOWN_PLAYERS})" for number in range(1, 11)),
)  # fmt: skip
_WORDS: Final = f"""
    INSERT INTO match_words (org_id, word, created_at_ms, server_id)
    SELECT DISTINCT org_id, bytes_of(word), begin_ms, server_id FROM (
        {" UNION ALL ".join(f"SELECT org_id, begin_ms, server_id, {word} AS word FROM chosen" for word in _WORD_CASES)}
    ) AS worded ORDER BY 1, 2, 3, 4
    """
