"""Matches are found by their words, and the finished apart from the canceled."""

from __future__ import annotations

import msgspec

from matchpod.core.effects import CancelReason
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import GameSettings, MatchType, TeamRoster
from matchpod.core.outcome import Outcome
from matchpod.core.requests.match_list_query import ListedOutcome, MatchListQuery, read_match_list_query
from matchpod.core.views.marks import encode_marks, read_marks
from matchpod.ports import Database, Statement
from matchpod.service.end_match import end_match
from matchpod.service.history.search_index import PER_TURN, index_some
from matchpod.storage import history, match_words, server_labels, servers
from matchpod.storage.history import MapRow, MapStats, MatchHistory
from matchpod.storage.match_lists import list_matches
from matchpod.storage.match_words import MAX_EXPANDED
from matchpod.storage.packed import pack
from matchpod.storage.servers import ServerRow
from tests.contract import databases
from tests.server_rows import server_row
from tests.vaults import stored_tokens

harness = databases.harness

ORG = "org_1"
ANN, BO, CY = "76561198000000001", "76561198000000002", "76561198000000003"


def match(number: int, external_id: str = "", *, org_id: str = ORG, **fields: object) -> ServerRow:
    settings = GameSettings(
        match_type=MatchType.COMPETITIVE,
        maps=("de_nuke",),
        team1=TeamRoster(name="Night Owls", players=(ANN,)),
        team2=TeamRoster(name=f"Björn {number}", players=(BO,)),
        spectators=(CY,),
    )
    return server_row(
        f"srv_{number}",
        org_id=org_id,
        created_at_ms=1_000 + number,
        external_match_id=external_id or None,
        settings=msgspec.json.encode(settings),
        marks=encode_marks({"event": "Grand Final", "table": str(number)}, is_simulated=False),
        **{**stored_tokens(f"log {number}", f"report {number}"), **fields},
    )


async def store(db: Database, *rows: ServerRow) -> None:
    for row in rows:
        labels = server_labels.insert(row.org_id, row.id, row.created_at_ms, read_marks(row.marks).labels or {})
        await servers.create(db, row, idempotency=None, also=labels)
    await index_all(db)


async def index_all(db: Database) -> None:
    while await index_some(db):
        pass


async def found(db: Database, search: str, **filters: str) -> list[str]:
    """Return what a search finds on its first page, as in an address."""
    query = read_match_list_query([("search", search), *filters.items()])
    total, listed = await list_matches(db, ORG, query)
    assert total == len(listed)
    return [row.id for row in listed]


async def test_each_kind_of_word_finds_its_matches_newest_first(db: Database) -> None:
    await store(db, match(1, "cup-2026/r1-m12"), match(2, "cup-2026/r2-m3"), match(3, org_id="org_2"))
    for search, ids in {
        "cup": ["srv_2", "srv_1"],
        "cup-2026/r1-m12": ["srv_1"],
        "R2-M": ["srv_2"],
        "owl nig": ["srv_2", "srv_1"],
        "bjorn 1": ["srv_1"],
        "Bjö": ["srv_2", "srv_1"],
        ANN: ["srv_2", "srv_1"],
        f"https://steamcommunity.com/profiles/{CY} r1": ["srv_1"],
        "event: grand final": ["srv_2", "srv_1"],
        "table:2": ["srv_2"],
        "r1 r2": [],
        "wls": [],
        "!": [],
        "unknown": [],
    }.items():
        assert await found(db, search) == ids, search


async def test_other_filters_and_pages_apply_to_what_is_found(db: Database) -> None:
    await store(db, *(match(number, f"cup {number}", region="eu" if number % 2 else "us") for number in range(9)))
    assert await found(db, "cup", region="eu") == ["srv_7", "srv_5", "srv_3", "srv_1"]
    assert await found(db, "cup", label="table:4") == ["srv_4"]
    assert await found(db, "cup", externalMatchId="cup 5") == ["srv_5"]
    dates = MatchListQuery(words=("cup",), from_ms=1_003, before_ms=1_006)
    assert [row.id for row in (await list_matches(db, ORG, dates))[1]] == ["srv_5", "srv_4", "srv_3"]
    for page, ids in ((1, ["srv_8", "srv_7", "srv_6", "srv_5"]), (3, ["srv_0"]), (4, [])):
        total, listed = await list_matches(db, ORG, MatchListQuery(words=("cup",), page=page, page_size=4))
        assert (total, [row.id for row in listed]) == (9, ids)


async def test_match_is_found_by_its_reason_and_the_names_of_its_players_when_it_has_ended(db: Database) -> None:
    first, second = match(1), match(2)
    await store(db, first, second)
    played = MapRow(
        id="map_1",
        server_id="srv_1",
        org_id=ORG,
        map_number=1,
        map_name="de_nuke",
        game_mode="competitive",
        server_name="x",
        status=MapStatus.FINISHED,
        is_final=True,
    )
    stats = [{"steamId": ANN, "name": "Änn <b>"}, {"steamId": "76561198000000099", "name": "late joiner"}]
    leaderboard = pack(msgspec.json.encode(stats))
    final = MatchHistory(
        (played,),
        None,
        (MapStats(map_id="map_1", stats_version=1, players=b"[]", anti_cheat=b"[]", leaderboard=leaderboard),),
    )
    await db.write(history.insert(final))
    await db.write(end_match(first, Outcome(at_ms=5_000), result=b"{}", fence=None, callback_id="cb_1", final=final))
    lost = Outcome(at_ms=5_000, reason=CancelReason.SERVER_LOST)
    await db.write(end_match(second, lost, fence=None, callback_id="cb_2"))
    assert await found(db, "lost") == await found(db, "joiner") == []
    await index_all(db)
    assert await found(db, "server lost") == ["srv_2"]
    assert await found(db, "late join") == ["srv_1"]
    assert await found(db, "ann") == ["srv_2", "srv_1"], "a player is found in all matches by a name of one"
    assert await found(db, "76561198000000099") == ["srv_1"]


async def test_match_that_ends_while_its_words_are_stored_gets_the_others_too(db: Database) -> None:
    row = match(1)
    await servers.create(db, row, idempotency=None)
    (unindexed,) = await match_words.unindexed(db, limit=5)
    lost = Outcome(at_ms=5_000, reason=CancelReason.SERVER_LOST)
    await db.write(end_match(row, lost, fence=None, callback_id="cb_1"))
    await db.write(match_words.insert(unindexed, ["owls"]))
    assert await found(db, "lost") == []
    await index_all(db)
    assert await found(db, "lost owls") == ["srv_1"]


async def test_matches_of_an_earlier_version_are_found_too(db: Database) -> None:
    rows = [match(number, "old") for number in range(PER_TURN + 1)]
    for row in rows:
        await servers.create(db, row, idempotency=None)
    await db.write([Statement("UPDATE servers SET settings = CAST('{}' AS BLOB), marks = NULL WHERE id = 'srv_0'")])
    assert await index_some(db) == PER_TURN
    assert await found(db, "old") == [row.id for row in rows[:0:-1]], "the newest are first"
    assert await index_some(db) == 1
    assert await index_some(db) == 0
    assert len(await found(db, "old", pageSize="100")) == PER_TURN + 1


async def test_beginning_of_many_words_stands_for_the_first_of_them(db: Database) -> None:
    await store(db, *(match(number, f"w{number:03}") for number in range(MAX_EXPANDED + 2)))
    assert await found(db, "w", pageSize="100") == [f"srv_{number}" for number in range(MAX_EXPANDED - 1, -1, -1)]
    assert await found(db, f"w{MAX_EXPANDED + 1:03}") == [f"srv_{MAX_EXPANDED + 1}"]


async def test_any_text_can_be_searched_for(db: Database) -> None:
    await store(db, match(1, "x"))
    for search in ("\u0130", "'", '"', "%", "_", "\\", "x" * 300, "Z\u0338\u0322", "🦉"):
        assert await found(db, search) in ([], ["srv_1"]), search


async def test_finished_canceled_and_failed_matches_are_listed_apart(db: Database) -> None:
    rows = [match(number, "cup", region="eu" if number < 6 else "us") for number in range(9)]
    for row in rows:
        await servers.create(db, row, idempotency=None)
    reasons = (None, CancelReason.CANCELED_BY_USER, CancelReason.SERVER_LOST, CancelReason.NO_PLAYERS_JOINED)
    for number, row in enumerate(rows[:8]):
        reason = reasons[number % 4]
        outcome = Outcome(at_ms=5_000, reason=reason)
        result = b"{}" if reason is None else None
        await db.write(end_match(row, outcome, result=result, fence=None, callback_id=f"cb_{number}"))
    await index_all(db)
    for ended, numbers in (
        (ListedOutcome.FINISHED, [4, 0]),
        (ListedOutcome.CANCELED, [7, 5, 3, 1]),
        (ListedOutcome.FAILED, [6, 2]),
    ):
        expected = [f"srv_{number}" for number in numbers]
        for query in (
            MatchListQuery(outcome=ended),
            MatchListQuery(outcome=ended, words=("cup",)),
            MatchListQuery(outcome=ended, external_match_id="cup"),
        ):
            total, listed = await list_matches(db, ORG, query)
            assert (total, [row.id for row in listed]) == (len(numbers), expected), query
        query = MatchListQuery(outcome=ended, region="eu", from_ms=1_001, before_ms=1_006)
        total, listed = await list_matches(db, ORG, query)
        assert [row.id for row in listed] == [f"srv_{number}" for number in numbers if 1 <= number < 6]
