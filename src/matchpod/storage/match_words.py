"""Store the search words of matches, and find matches by words.

A word of a search finds all stored words that begin with it. The search reads the newest matches that have its rarest
word from an index, and then checks them for its other words. It takes as long with a million matches as with a
thousand, but may miss old matches if all its words are frequent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from matchpod.core.effects import CancelReason
from matchpod.core.labels import MAX_LABELED
from matchpod.core.search_words import is_whole
from matchpod.ports import Database, Statement, Value
from matchpod.storage import rows
from matchpod.storage.packed import unpack

MAX_EXPANDED: Final = 20
"""Maximum number of stored words that one word of a search can stand for; the first in alphabetical order are used."""
COMPARED: Final = 1_000
"""Maximum number of matches counted per word of a search, to find the rarest word."""


class UnindexedMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A match whose search words are not all stored yet."""

    id: str
    org_id: str
    created_at_ms: int
    external_match_id: str | None
    settings: bytes
    marks: bytes | None
    reason: CancelReason | None
    ended_at_ms: int | None


class NamedPlayer(msgspec.Struct, frozen=True, rename="camel"):
    """A player's SteamID and the name that they had in a match."""

    steam_id: str
    name: str


async def unindexed(db: Database, *, limit: int) -> list[UnindexedMatch]:
    """Return the newest matches whose words are not all stored yet."""
    rest = "FROM servers WHERE is_searchable = 0 ORDER BY created_at_ms DESC, id LIMIT :limit"
    return await rows.read_all(db, UnindexedMatch, rest, {"limit": limit})


async def players_of(db: Database, server_ids: Sequence[str]) -> dict[str, list[NamedPlayer]]:
    """Return, by server id, the players in the stored statistics of the match's maps."""
    listed, params = rows.parameter_list("id", server_ids)
    found = await db.read(
        "SELECT maps.server_id, map_stats.leaderboard FROM maps JOIN map_stats ON map_stats.map_id = maps.id"
        f" WHERE maps.server_id IN {listed}",
        params,
    )
    players: dict[str, list[NamedPlayer]] = {}
    for server_id, body in msgspec.convert(found, list[tuple[str, bytes]]):
        players.setdefault(server_id, []).extend(_decode_players(unpack(body)))
    return players


_decode_players: Final = msgspec.json.Decoder(list[NamedPlayer]).decode


def insert(match: UnindexedMatch, words: Sequence[str]) -> list[Statement]:
    """Store words of a match, and mark it as searchable. Do not mark it if it has ended since `match` was read."""
    statements = []
    if words:
        values = ", ".join(f"(:org_id, :word_{at}, :created_at_ms, :server_id)" for at in range(len(words)))
        sql = f"INSERT INTO match_words (org_id, word, created_at_ms, server_id) VALUES {values} ON CONFLICT DO NOTHING"
        params: dict[str, Value] = {"org_id": match.org_id, "created_at_ms": match.created_at_ms, "server_id": match.id}
        statements.append(Statement(sql, params | {f"word_{at}": word.encode() for at, word in enumerate(words)}))
    is_same = "id = :id AND COALESCE(ended_at_ms, 0) = :ended_at_ms"
    update = f"UPDATE servers SET is_searchable = 1 WHERE {is_same}"
    statements.append(Statement(update, {"id": match.id, "ended_at_ms": match.ended_at_ms or 0}))
    return statements


def insert_names(org_id: str, names: Iterable[tuple[str, str]]) -> list[Statement]:
    """Store the words of player names; `names` contains pairs of a word and a SteamID."""
    sql = "INSERT INTO player_names (org_id, word, steam_id) VALUES (:org_id, :word, :steam_id) ON CONFLICT DO NOTHING"
    return [Statement(sql, {"org_id": org_id, "word": word.encode(), "steam_id": player}) for word, player in names]


async def newest_with_words(
    db: Database, org_id: str, words: Sequence[str], *, from_ms: int | None = None, before_ms: int | None = None
) -> tuple[str, dict[str, Value]] | None:
    """Return a query for the newest matches that have all words and were created in a time range.

    Its columns are `labeled_id` and `labeled_ms`, as in `newest_labeled`. Return None if no match can have all words.
    """
    expanded = [await _expanded(db, org_id, word) for word in words]
    if not expanded or not all(expanded):
        return None
    if len(expanded) > 1:
        counted = [(await _count(db, org_id, stored), stored) for stored in expanded]
        expanded = [stored for _, stored in sorted(counted, key=lambda pair: pair[0])]
    first, *others = expanded
    params: dict[str, Value] = {"org_id": org_id, "max_found": max(MAX_LABELED // len(first), COMPARED)}
    dates = ""
    if from_ms is not None:
        dates += " AND created_at_ms >= :labeled_from_ms"
        params["labeled_from_ms"] = from_ms
    if before_ms is not None:
        dates += " AND created_at_ms < :labeled_before_ms"
        params["labeled_before_ms"] = before_ms
    parts = []
    for at, word in enumerate(first):
        params[f"first_{at}"] = word
        parts.append(
            "SELECT * FROM (SELECT server_id, created_at_ms FROM match_words WHERE org_id = :org_id"
            f" AND word = :first_{at}{dates} ORDER BY created_at_ms DESC, server_id DESC LIMIT :max_found) AS part_{at}"
        )
    conditions = []
    for number, stored in enumerate(others):
        listed = ", ".join(f":other_{number}_{at}" for at in range(len(stored)))
        params |= {f"other_{number}_{at}": word for at, word in enumerate(stored)}
        # With EXISTS, PostgreSQL would join all matches that have the word, and the query would time out.
        conditions.append(
            f"(SELECT 1 FROM match_words AS more WHERE more.org_id = :org_id AND more.word IN ({listed})"
            " AND more.created_at_ms = rarest.created_at_ms AND more.server_id = rarest.server_id LIMIT 1) = 1"
        )
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    # UNION removes duplicates, because a match may have several of the words.
    sql = f"SELECT server_id AS labeled_id, created_at_ms AS labeled_ms FROM ({' UNION '.join(parts)}) AS rarest{where}"
    return sql, params


async def _expanded(db: Database, org_id: str, word: str) -> list[bytes]:
    """Return `word` if whole; else stored words with this prefix, and ids of players with such a word in their name."""
    if is_whole(word):
        return [word.encode()]
    params: dict[str, Value] = {
        "org_id": org_id,
        "least": word.encode(),
        "end": word.encode() + b"\xff",  # UTF-8 never contains this byte, so all words with this prefix are less
        "maximum": MAX_EXPANDED,
    }
    after = "(SELECT word FROM match_words WHERE org_id = :org_id AND word {} AND word < :end ORDER BY word LIMIT 1)"
    # The recursion takes one step per stored word, no matter how many matches have that word.
    found = await db.read(
        f"WITH RECURSIVE found (word, number) AS (SELECT {after.format('>= :least')}, 1 UNION ALL"
        f" SELECT {after.format('> found.word')}, number + 1 FROM found WHERE word IS NOT NULL AND number < :maximum)"
        " SELECT word FROM found WHERE word IS NOT NULL",
        params,
    )
    words = [stored for (stored,) in msgspec.convert(found, list[tuple[bytes]])]
    named = await db.read(
        "SELECT steam_id FROM player_names WHERE org_id = :org_id AND word >= :least AND word < :end"
        " ORDER BY word, steam_id LIMIT :maximum",
        params,
    )
    players = [steam_id.encode() for (steam_id,) in msgspec.convert(named, list[tuple[str]])]
    return list(dict.fromkeys([*words, *players]))


async def _count(db: Database, org_id: str, stored: Sequence[bytes]) -> int:
    listed = ", ".join(f":word_{at}" for at in range(len(stored)))
    params: dict[str, Value] = {f"word_{at}": word for at, word in enumerate(stored)}
    counted = f"SELECT 1 FROM match_words WHERE org_id = :org_id AND word IN ({listed}) LIMIT :compared"
    sql = f"SELECT COUNT(*) FROM ({counted}) AS counted"
    return await rows.read_number(db, sql, {**params, "org_id": org_id, "compared": COMPARED})
