"""Judge what API and console show of a match by what really happens. Pure: times are in seconds, monotonic.

What is shown is right if it was true at some time within the last seconds: `SLACK_S` for an answer of the API, and
`WALL_SLACK_S` for the console, which reads once per second.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final

import msgspec

from tests.e2e.service.running_service import Json
from tests.real_time.games import JOIN_S, STALL_S, Game
from tests.real_time.truth import History, Truth
from tests.real_time.wall import Card, WallPage

SLACK_S: Final = 3.0
WALL_SLACK_S: Final = 5.0
AHEAD_S: Final = 1.0
"""The service may know a post a little earlier than we do."""
MAP_LOAD_S: Final = 30.0
"""Players are disconnected at most this long before the log says that the next map was loaded."""
MAP_CHANGE_S: Final = 130.0
"""For this long after a map load players may be elsewhere without having left."""
UNSEEN_S: Final = 100.0
"""Who left in a lost post is found missing by the console: a minute after it was first asked, which is after the gap."""
ROSTER_S: Final = 120.0
"""People are warned of missing players when this much of the time to join is left."""
WARNED_S: Final = 18.0
"""When people must have been warned of a silent server: 14 s, 2 s for other replicas, and 2 s to see it."""

OPEN_PHASES: Final = ("live", "paused")


class Played(msgspec.Struct, kw_only=True):
    """A match that is being played, and what is known of it apart from the service."""

    game: Game
    server_id: str
    truth: Truth
    created_s: float
    running_s: float = float("inf")
    stalled_s: tuple[float, float] | None = None
    """When its server was stopped, and when it went on."""
    deadlines: list[tuple[float, float]] = []
    """The times until which players have to join, and when each was first shown."""

    def lost_at(self, post: str) -> float | None:
        """When the service did not get one of the posts that are lost."""
        return self.truth.events_s.get(post) if post in self.game.lost.split(",") else None

    def is_unsure(self, at_s: float) -> bool:
        """True if a lost post explains that the service does not know the score: until the next round has ended."""
        for post in ("restore", "end"):
            lost_s = self.lost_at(post)
            if lost_s is not None and lost_s <= at_s:
                known_s = next((one for one in self.truth.scored_s if one > lost_s + 1), float("inf"))
                if at_s <= known_s + SLACK_S:
                    return True
        return False

    def missing(self, from_s: float, until_s: float) -> set[int]:
        """How many listed players were not on the server, at all times of this span."""
        return self._without(self.truth.here, from_s, until_s)

    def awaited(self, from_s: float, until_s: float) -> set[int]:
        """How many listed players were not on the server or still loading, at all times of this span."""
        return self._without(self.truth.entered, from_s, until_s)

    def _without(self, players: History[frozenset[str]], from_s: float, until_s: float) -> set[int]:
        return {len(set(self.game.players) - some) for some in players.during(from_s, until_s)}

    def is_loading(self, at_s: float) -> bool:
        """True around a map load during the match, when players are disconnected and come back."""
        return any(-MAP_LOAD_S <= at_s - one <= MAP_CHANGE_S for one in self.truth.loads_s[1:])

    def join_deadlines(self, from_s: float, until_s: float) -> list[float]:
        """Return the ends of the time to join that were shown in this span."""
        shown = [shown_s for _, shown_s in self.deadlines]
        current = max(bisect_right(shown, from_s) - 1, 0)
        return [until for until, _ in self.deadlines[current : bisect_right(shown, until_s)]]

    def has_unseen_leaver(self, at_s: float) -> bool:
        """True while the service cannot know who left."""
        lost_s = self.lost_at("disconnect")
        return lost_s is not None and 0 <= at_s - lost_s <= UNSEEN_S

    def is_stalled(self, from_s: float, until_s: float) -> bool:
        """True if its server was stopped in this span."""
        return self.stalled_s is not None and self.stalled_s[0] <= until_s and from_s <= self.stalled_s[1]


# --- the API --------------------------------------------------------------------------------------------------------


def judge_server(view: Json, played: Played, at_s: float, monotonic: Callable[[str], float]) -> Iterator[str]:
    """Yield what is wrong in the view of a running server; `monotonic` converts its times."""
    if view["status"] != "running":
        return
    yield from _judge_roster(view, played, at_s)
    yield from _judge_numbers(view, played, at_s)
    yield from _judge_phase(view, played, at_s)
    yield from _judge_deadline(view, played, at_s, monotonic)
    yield from _judge_last_heard(view, played, at_s, monotonic)


def _judge_roster(view: Json, played: Played, at_s: float) -> Iterator[str]:
    if played.has_unseen_leaver(at_s):
        return
    during = played.truth.here.during(at_s - SLACK_S, at_s + AHEAD_S)
    for player in view["roster"]:
        is_connected = player["state"] == "connected"
        was = {player["steamId"] in here for here in during}
        if is_connected not in was and not (is_connected and played.is_loading(at_s)):
            yield f"roster says {player['state']} of {player['steamId']}, who is {'' if True in was else 'not '}there"


def _judge_numbers(view: Json, played: Played, at_s: float) -> Iterator[str]:
    if view["phase"] not in OPEN_PHASES or played.is_unsure(at_s):
        return
    truth, span = played.truth, (at_s - SLACK_S, at_s + AHEAD_S)
    score = sorted(view["match"]["score"].values())
    if tuple(score) not in truth.score.during(*span):
        yield f"score {score}, but the log says {truth.score.during(*span)}"
    rounds = truth.rounds_played.during(*span)
    if view["round"] is not None and not {view["round"], view["round"] - 1} & set(rounds):
        yield f"round {view['round']}, but the log says that {rounds} were played"
    kills = {player["steamId"]: player["kills"] for player in view["match"]["players"] if player["kills"]}
    if kills not in truth.kills.during(*span):
        yield f"kills {kills}, but the log says {truth.kills.during(*span)[-1]}"


def _judge_phase(view: Json, played: Played, at_s: float) -> Iterator[str]:
    had_round = set(played.truth.has_round.during(at_s - SLACK_S, at_s + AHEAD_S))
    if had_round == {True} and view["phase"] not in OPEN_PHASES and not played.is_unsure(at_s):
        yield f"phase {view['phase']} while rounds are played"
    never = not any(played.truth.has_round.during(float("-inf"), at_s + AHEAD_S))
    if never and view["phase"] in OPEN_PHASES and not set(played.truth.rounds_played.during(0, at_s)) - {-1}:
        yield f"phase {view['phase']} before the first round"


def _judge_deadline(view: Json, played: Played, at_s: float, monotonic: Callable[[str], float]) -> Iterator[str]:
    deadline, waits = view["deadline"], view["phase"] == "waiting_for_players"
    awaited = played.awaited(at_s - SLACK_S, at_s + AHEAD_S)
    if deadline is None:
        if waits and 0 not in awaited and not played.truth.loads_s[1:]:
            yield f"no deadline while {sorted(awaited)} players are missing or loading"
        return
    until_s = monotonic(deadline["until"])
    if until_s < at_s - SLACK_S:
        yield f"deadline {deadline} is over since {at_s - until_s:.0f} s"
    is_empty = frozenset() in played.truth.here.during(at_s - SLACK_S, at_s + AHEAD_S)
    if deadline["waitingFor"] == "players_to_return" and not is_empty:
        yield f"deadline {deadline} while players are there"
    if deadline["waitingFor"] == "players_to_join":
        if awaited == {0} and not played.has_unseen_leaver(at_s):
            yield f"deadline {deadline} while all players are in the game"
        if until_s > at_s + JOIN_S + SLACK_S:
            yield f"deadline {deadline} is more than {JOIN_S:.0f} s away"
        yield from _judge_move(played, until_s, at_s)


def _judge_move(played: Played, until_s: float, at_s: float) -> Iterator[str]:
    """The time to join is one time until all have joined; after that, it begins when one leaves."""
    last_s, since_s = played.deadlines[-1] if played.deadlines else (until_s, at_s)
    if played.deadlines and abs(until_s - last_s) <= SLACK_S:
        return
    here = played.truth.here.during(since_s, at_s + AHEAD_S)
    has_begun = frozenset() in here and bool(here[-1])  # until then it counts from the creation, not the allocation
    slack_s = SLACK_S + (played.running_s - played.created_s if has_begun else 0.0)
    were_complete = 0 in played.missing(since_s, at_s + AHEAD_S) or bool(played.truth.loads_s[1:])
    if abs(until_s - last_s) > slack_s and not were_complete:
        yield f"the time to join has moved by {until_s - last_s:.0f} s although players were missing all the while"
    played.deadlines.append((until_s, at_s))


def _judge_last_heard(view: Json, played: Played, at_s: float, monotonic: Callable[[str], float]) -> Iterator[str]:
    if view["lastHeardAt"] is None or played.running_s > at_s - SLACK_S:
        return
    heard_s, posts = monotonic(view["lastHeardAt"]), played.truth.posts_s.during(at_s - SLACK_S, at_s + AHEAD_S)
    is_lost = any(abs(at_s - lost) < 60 for post in ("restore", "disconnect", "end") if (lost := played.lost_at(post)))
    if posts[0] > float("-inf") and not is_lost and not any(abs(heard_s - one) <= SLACK_S for one in posts):
        yield f"last heard {at_s - heard_s:.0f} s ago, but the last post was {at_s - posts[-1]:.0f} s ago"


# --- the console ----------------------------------------------------------------------------------------------------


def judge_reason(reason: str, played: Played, at_s: float) -> str | None:
    """Return why a reason for attention is true; None if it is false."""
    span = (at_s - WALL_SLACK_S, at_s + AHEAD_S)
    missing = played.missing(*span)
    count = int(reason.split(" ")[0]) if reason[:1].isdigit() else 0
    if reason.startswith("nothing heard") and played.is_stalled(*span):
        return "its server was stopped"
    if "time left" in reason and min(played.join_deadlines(*span), default=at_s + JOIN_S) - at_s <= ROSTER_S + SLACK_S:
        if "missing" in reason:
            return "they are not there" if count in missing else None
        return "they are loading" if 0 in missing and played.awaited(*span) != {0} else None
    if ("gone for" in reason or "missing on a live map" in reason) and count in missing:
        if True in played.truth.has_round.during(*span):
            return "they left"
        lost_s = played.lost_at("end")
        return "they left, and the post with the end was lost" if lost_s is not None and lost_s <= at_s else None
    if reason.startswith("log gap"):
        lost = [post for post in ("restore", "disconnect", "end") if (at := played.lost_at(post)) and at <= at_s]
        return f"a post was lost: {lost[0]}" if lost else None
    return None


def judge_card(card: Card, played: Played, at_s: float) -> Iterator[str]:
    """Yield what is wrong in the numbers of a card."""
    if card.is_ended:
        return
    truth, span = played.truth, (at_s - WALL_SLACK_S, at_s + AHEAD_S)
    if card.round is not None and card.score is not None and not played.is_unsure(at_s):
        if (min(card.score), max(card.score)) not in truth.score.during(*span):
            yield f"the card says {card.score}, but the log says {truth.score.during(*span)}"
        rounds = truth.rounds_played.during(*span)
        if not {card.round, card.round - 1} & set(rounds):
            yield f"the card says round {card.round}, but the log says that {rounds} were played"
    if card.here is not None and not played.is_loading(at_s) and not played.has_unseen_leaver(at_s):
        missing = played.missing(*span)
        if card.here[1] - card.here[0] not in range(min(missing), max(missing) + 1):
            yield f"the card says {card.here[0]} of {card.here[1]} are there, but {sorted(missing)} are missing"


def judge_wall(wall: WallPage, servers: int, taken: set[int], region: str) -> Iterator[str]:
    """Yield what is wrong in the wall as a whole; `taken` are the numbers of servers that may be in use."""
    if sum(wall.groups.values()) != len(wall.cards):
        yield f"groups {wall.groups}, but {len(wall.cards)} cards"
    urgent = sum(card.is_urgent for card in wall.cards)
    if wall.attention != urgent:
        yield f"{wall.attention} need attention, but {urgent} cards are marked"
    free, every = wall.free.get(region, (-1, -1))
    if every != servers or servers - free not in taken:
        yield f"{free} of {every} servers are free, but {sorted(taken)} are in use"


def judge_missed(played: Played, seen: Mapping[str, list[float]], until_s: float) -> Iterator[str]:
    """Yield alarms that were not shown in time; `seen` is when "nothing heard" was shown by each replica."""
    if played.stalled_s is None or played.stalled_s[0] + WARNED_S > until_s:
        return
    stopped_s = played.stalled_s[0]
    for replica, times in seen.items():
        if not any(stopped_s <= at_s <= stopped_s + WARNED_S for at_s in times):
            yield f"{replica} did not say that nothing is heard of a server that was stopped for {STALL_S:.0f} s"


def parse_time(text: str) -> float:
    """Return a time of the API in seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()
