"""Play matches whose first server is hostile: it is replaced, and goes on posting with the tokens of its attempt.

Each match has two servers of its own. The one that gets it first posts more than a match may store, then breaks a limit
of its console. From then on, or from when the next server plays, it sends another game of the same players to every
replica: log posts, in one segment and in two, and reports of all plugins. The match must end as it does without that.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from matchpod.core.model import MatchType, TeamRoster
from matchpod.service.ingest.posts import TOKEN_HEADER
from matchpod.service.ingest.urls import ANTICHEAT_PATH, LOGS_PATH, MATCH_PATH, REPORTS_PATH, SHOTS_PATH
from matchpod.service.match_log.entries import EntryKind
from tests.chaos.cluster import PATIENT_SPEED, Cluster
from tests.chaos.http_messages import Response, format_request, read_response, send
from tests.chaos.judge import comparable
from tests.chaos.plan import GameSpec
from tests.chaos.receivers import Receivers
from tests.chaos.releases import judge_result
from tests.chaos.replica import Replica
from tests.chaos.session import Reference, play_reference
from tests.chaos.static_servers import StaticServer, StaticServers
from tests.chaos.stores import Store, open_store
from tests.contract.same_result import differences
from tests.contract.simulator_process import PASSWORD
from tests.e2e.service.running_service import static_region
from tests.unit.service.match_log.test_fold import PLAYERS, RecordedMatch
from tests.unit.simulator.played_match import mode_settings


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How a hostile server behaves after it was replaced."""

    is_patient: bool
    """It is silent until the next one plays: a replica that sees its token meanwhile finds that it is no longer valid."""
    whole_share: float
    """Share of the posts that are sent in one segment; the others in two."""


MANNERS = {
    GameSpec("duel", 1): Manner(is_patient=True, whole_share=1.0),
    GameSpec("duel", 2): Manner(is_patient=True, whole_share=0.0),
    GameSpec("duel", 3): Manner(is_patient=False, whole_share=0.5),
}
"""By match."""
SPEED = 40
"""Each game lasts for a quarter of a minute."""
QUOTA_MB = 1
"""Most that a match may store: ten times what a game has."""
FLOOD_POSTS = 5
FLOOD_LINE = b'01/19/2026 - 19:00:08.015 - World triggered "Warmup_Start"\n'
PAUSE_S = 0.02
"""Between two rounds of posts, and between the two segments of one."""
BELIEVED_S = 4.0
"""Twice as long as a replica believes a token that it knows."""
POLL_S = 0.1
END_S = 240.0
TABLE: Final = (
    "| database | matches | posts | stored before the server was replaced | stored after | refused | disturbed |",
    "|---|---:|---:|---:|---:|---:|---:|",
)
STORED, REFUSED = 200, frozenset({401, 410})
_LOG_TOKEN: Final = re.compile(r'^logaddress_add_http ".*/ingest/logs/([0-9A-Za-z_-]+)"')
_REPORT_TOKEN: Final = re.compile(rf'^matchzy_loadmatch_url ".*" "{TOKEN_HEADER}" "([0-9A-Za-z_-]+)"')
_SHOTS = {
    "mapNumber": 1,
    "rounds": [
        {"roundNumber": 1, "players": [{"steamId": one, "shotsFired": 900, "shotsHit": 800} for one in PLAYERS]}
    ],
    "final": True,
}
_DETECTION = {"steamId": PLAYERS[0], "type": "aim", "reason": "41 degrees", "weapon": "weapon_awp"}
_ROWS = "SELECT id, phase, tries FROM servers"


class Sent(msgspec.Struct, frozen=True):
    """A post with the tokens of the first attempt."""

    at_s: float
    status: int
    """0 if there was no answer."""


class Seen(msgspec.Struct, kw_only=True):
    """What was seen of a match."""

    sent: list[Sent] = msgspec.field(default_factory=list)
    replaced_s: float | None = None
    """When the match was seen to have another server."""
    tries: int = 0
    """Attempts that failed."""
    callbacks: Sequence[bytes] = ()

    def count(self) -> Counter[str]:
        """Count posts by what became of them."""
        found = Counter(posts=len(self.sent))
        for one in self.sent:
            is_before = self.replaced_s is None or one.at_s < self.replaced_s
            if one.status == STORED:
                found["stored before" if is_before else "stored after"] += 1
            elif one.status in REFUSED:
                found["refused"] += 1
        return found


def judge_replaced(seen: Seen, expected: Mapping[str, Any]) -> Iterator[str]:
    """Yield how a match was disturbed, or why its trial proves nothing; `expected` is its undisturbed callback."""
    if seen.replaced_s is None or seen.tries != 1:
        yield f"its server was replaced {seen.tries} times, not once"
        return
    counts = seen.count()
    if not counts["stored before"] or not counts["refused"]:
        yield f"its first server sent nothing before and after it was replaced: {counts}"
    late = [one for one in seen.sent if one.status == STORED and one.at_s > seen.replaced_s + BELIEVED_S]
    if late:
        yield f"{len(late)} posts of the first server were stored {late[-1].at_s - seen.replaced_s:.1f} s later"
    if found := judge_result(list(seen.callbacks)):
        yield from found
        return
    unequal = differences(comparable(json.loads(seen.callbacks[0])), dict(expected))
    if unequal:
        yield f"{len(unequal)} fields of its callback differ, such as {dict(list(unequal.items())[:3])}"


@cache
def other_game() -> tuple[tuple[EntryKind, Mapping[str, str], bytes], ...]:
    """Posts and reports of another game of the same teams, with its end."""
    played = RecordedMatch(
        mode_settings(
            MatchType.COMPETITIVE,
            maps=("de_mirage",),
            max_rounds=4,
            team1=TeamRoster("Reds", PLAYERS[:2]),
            team2=TeamRoster("Blues", PLAYERS[2:]),
        )
    )
    assert played.play()
    decode = partial(msgspec.json.decode, type=dict[str, str])
    sent = [(EntryKind(one.kind), decode(one.headers), one.body) for one in played.entries]
    return (
        *sent,
        (EntryKind.SHOTS, {}, msgspec.json.encode(_SHOTS)),
        (EntryKind.DETECTION, {}, msgspec.json.encode(_DETECTION)),
    )


class Place:
    """A region with two servers, and the match on it."""

    def __init__(self, code: str, game: GameSpec, servers: Sequence[StaticServer]) -> None:
        self.code = code
        self.game = game
        self.servers = servers
        self.manner = MANNERS[game]
        self.server_id = ""
        self.log_token = self.report_token = ""
        """Those of the first attempt."""
        self.is_known = asyncio.Event()
        """Set once the hostile server has both."""
        self.hostile: StaticServer | None = None
        self.seen = Seen()
        for server in servers:
            server.on_command = partial(self._observe, server)

    def _observe(self, server: StaticServer, text: str) -> None:
        """Note the tokens that the first server gets; after that, it is silent until it breaks its console."""
        if self.is_known.is_set() or self.hostile not in (None, server):
            return
        if found := _LOG_TOKEN.match(text):
            self.hostile, self.log_token = server, found[1]
        if found := _REPORT_TOKEN.match(text):
            self.report_token = found[1]
            server.pause()
            self.is_known.set()


class Replaced:
    """One trial."""

    def __init__(self, cluster: Cluster, receivers: Receivers, store: Store, places: Sequence[Place]) -> None:
        self._cluster = cluster
        self._receivers = receivers
        self._store = store
        self._places = places
        self._random = Random(0)

    async def run(self) -> None:
        async with asyncio.timeout(END_S), asyncio.TaskGroup() as group:
            for place in self._places:
                group.create_task(self._play(place))

    async def _play(self, place: Place) -> None:
        body = place.game.body(speed=SPEED, is_lockstep=True)
        body |= {"region": place.code, "externalMatchId": place.code, "callbackUrl": self._receivers.url(place.code)}
        place.server_id = await self._cluster.create(body)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._wait_until_replaced(place))
            group.create_task(self._be_hostile(place))
        _, place.seen.tries = await self._row(place)
        place.seen.callbacks = [one.request.body for one in self._receivers.at(place.code)]

    async def _row(self, place: Place) -> tuple[str, int]:
        """Return the phase of a match, and the attempts that failed."""
        rows = msgspec.convert(await self._store.rows(_ROWS), list[tuple[str, str, int]])
        return next((phase, tries) for server_id, phase, tries in rows if server_id == place.server_id)

    async def _wait_until_replaced(self, place: Place) -> None:
        await place.is_known.wait()
        while (await self._store.log_tokens()).get(place.server_id) == place.log_token:
            await asyncio.sleep(POLL_S)
        place.seen.replaced_s = time.monotonic()

    async def _be_hostile(self, place: Place) -> None:
        await place.is_known.wait()
        assert place.hostile is not None
        replicas = self._cluster.replicas
        answer = await send(replicas[0].port, format_request("GET", MATCH_PATH, {TOKEN_HEADER: place.report_token}))
        match_id = str(answer.json["matchid"]).encode()
        flood = FLOOD_LINE * (QUOTA_MB * 1_200_000 // FLOOD_POSTS // len(FLOOD_LINE))
        for number in range(FLOOD_POSTS):
            replica = replicas[number % len(replicas)]
            await self._send(place, replica, EntryKind.LOG, {}, flood)
            await self._send(place, replica, EntryKind.DETECTION, {}, b"[]")
        place.hostile.break_console()
        while place.manner.is_patient and (await self._row(place))[0] != "running":
            await asyncio.sleep(POLL_S)
        while True:
            for kind, headers, body in other_game():
                for replica in replicas:
                    sent = body.replace(b'"matchid":27', b'"matchid":' + match_id)
                    is_whole = self._random.random() < place.manner.whole_share
                    await self._send(place, replica, kind, headers, sent, is_whole=is_whole)
                await asyncio.sleep(PAUSE_S)
                if self._receivers.at(place.code):
                    return

    async def _send(
        self,
        place: Place,
        replica: Replica,
        kind: EntryKind,
        headers: Mapping[str, str],
        body: bytes,
        *,
        is_whole: bool = True,
    ) -> None:
        path, own = {
            EntryKind.LOG: (LOGS_PATH.format(token=place.log_token), headers),
            EntryKind.REPORT: (REPORTS_PATH, {TOKEN_HEADER: place.report_token}),
            EntryKind.SHOTS: (SHOTS_PATH.format(token=place.report_token), {}),
            EntryKind.DETECTION: (ANTICHEAT_PATH.format(token=place.report_token), {}),
        }[kind]
        own = {name: value for name, value in own.items() if name not in ("host", "content-length")}
        raw, status = format_request("POST", path, own, body), 0
        with suppress(OSError, asyncio.IncompleteReadError):
            status = (await _send_parts(replica.port, [raw] if is_whole else [raw[: -len(body)], body])).status
        place.seen.sent.append(Sent(time.monotonic(), status))


async def _send_parts(port: int, parts: Sequence[bytes]) -> Response:
    """Send a request in segments."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for number, part in enumerate(parts):
            await asyncio.sleep(PAUSE_S if number else 0)
            writer.write(part)
            await writer.drain()
        return await read_response(reader)
    finally:
        writer.close()


async def measure_replaced(
    folder: Path, databases: Sequence[str], say: Callable[[str], None]
) -> tuple[bool, list[str]]:
    """Play the games on each database; return True if every match was undisturbed, and the figures."""
    say(f"playing {len(MANNERS)} games without faults, for comparison")
    reference = await play_reference(folder / "reference", MANNERS)
    lines, is_clean = list(TABLE), True
    for database in databases:
        seen = await _play(folder / database, database)
        disturbed = _judge(seen, reference, say)
        counts = sum((one.count() for one in seen.values()), Counter())
        figures = [counts[name] for name in ("posts", "stored before", "stored after", "refused")]
        name = {"sqlite": "SQLite", "postgres": "PostgreSQL"}[database]
        lines.append(f"| {name} | {len(seen)} | {' | '.join(f'{one:,}' for one in figures)} | {disturbed} |")
        say(lines[-1])
        is_clean &= not disturbed
    return is_clean, lines


def _judge(seen: Mapping[GameSpec, Seen], reference: Reference, say: Callable[[str], None]) -> int:
    """Report how matches were disturbed; return how many were."""
    disturbed = {game: list(judge_replaced(one, reference[game])) for game, one in seen.items()}
    for game, texts in disturbed.items():
        for text in texts:
            say(f"VIOLATION: {game.kind} {game.seed}: {text[:1000]}")
    return sum(map(bool, disturbed.values()))


async def _play(folder: Path, database: str) -> dict[GameSpec, Seen]:
    folder.mkdir()
    async with (
        open_store(folder, database) as store,
        Receivers() as receivers,
        StaticServers(2 * len(MANNERS)) as static,
    ):
        places = [
            Place(f"place{number}", game, static.servers[2 * number : 2 * number + 2])
            for number, game in enumerate(MANNERS)
        ]
        regions = "".join(
            static_region(place.code, [one.address for one in place.servers], PASSWORD, speed=PATIENT_SPEED)
            for place in places
        )
        replicas, settings = 1 if database == "sqlite" else 2, {"max_match_log_mb": str(QUOTA_MB)}
        async with Cluster(folder, store, replicas=replicas, regions=regions, settings=settings) as cluster:
            await Replaced(cluster, receivers, store, places).run()
    return {place.game: place.seen for place in places}
