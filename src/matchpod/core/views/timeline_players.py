"""Add joining and leaving players and chat messages to a timeline, including those before and between maps."""

from __future__ import annotations

from cs2_protocol.game import PlayerId, is_human
from matchpod.core import events as ev
from matchpod.core.match.match import Match, MatchPhase
from matchpod.core.views import timeline_items as items
from matchpod.core.views.result import player_name
from matchpod.core.views.shown_text import sanitize
from matchpod.core.views.timeline_writer import TimelineWriter, named_person


def follow_arrival(
    timeline: TimelineWriter, event: ev.PlayerConnected | ev.PlayerEntered | ev.PlayerJoinedSide, match: Match
) -> None:
    """Add an item for a player who joins, and store the player's name."""
    if event.player_id in timeline.here:
        timeline.here[event.player_id] = event.name
    elif event.player_id in match.presence.connected:
        _add_arrival(timeline, event, match, event.player_id, name=event.name)


def follow_rename(timeline: TimelineWriter, event: ev.PlayerRenamed, _match: Match) -> None:
    """Store the new name of a player."""
    if event.player_id in timeline.here:
        timeline.here[event.player_id] = event.name


def follow_departure(timeline: TimelineWriter, event: ev.PlayerDisconnected, match: Match) -> None:
    """Add an item for a player who leaves."""
    # Outside play, the cause is probably a map change. The item is added later if the player does not return.
    is_map_change = event.is_map_change and match.phase is not MatchPhase.LIVE
    if event.player_id in timeline.here and not is_map_change:
        _add_departure(timeline, event, match, event.player_id, reason=event.reason)


def follow_console(timeline: TimelineWriter, event: ev.PlayersSeen, match: Match) -> None:
    """Add the arrivals and departures that the console's list of players shows."""
    presence = match.presence
    for player_id in [known for known in timeline.here if known in presence.unseen]:
        if player_id not in presence.connected:  # missing from the console's list for longer than a map load takes
            _add_departure(timeline, event, match, player_id)
    add_arrivals(timeline, event, match)


def add_chat(timeline: TimelineWriter, event: ev.ChatMessage, match: Match) -> None:
    """Add a chat message of a player, a spectator or a coach."""
    if not is_human(event.player_id) or match.presence.is_unlisted(event.player_id):
        return
    number, head = timeline.head_now(event, match)
    player = named_person(match, event.player_id, event.name)
    chat = items.ChatItem(**head, player=player, text=sanitize(event.text), team_only=event.is_team_only)
    timeline.add(number, chat)


def sync_players(timeline: TimelineWriter, event: ev.MapLive | ev.RoundRestored, match: Match) -> None:
    """Add items for missed joins, and for players who did not return after a map change or restart."""
    for player_id in [known for known in timeline.here if known not in match.presence.connected]:
        _add_departure(timeline, event, match, player_id)
    add_arrivals(timeline, event, match)
    timeline.is_paused = match.current_map.is_paused


def add_arrivals(timeline: TimelineWriter, event: ev.Event, match: Match) -> None:
    """Add items for all connected players whose connection has no item yet."""
    for player_id, connection in match.presence.connected.items():
        if player_id not in timeline.here:
            name = connection.name or player_name(match, player_id)
            _add_arrival(timeline, event, match, player_id, name=name)


def _add_arrival(timeline: TimelineWriter, event: ev.Event, match: Match, player_id: PlayerId, *, name: str) -> None:
    timeline.here[player_id] = name
    number, head = timeline.head_now(event, match)
    timeline.add(number, items.PlayerConnectedItem(**head, player=named_person(match, player_id, name)))


def _add_departure(
    timeline: TimelineWriter, event: ev.Event, match: Match, player_id: PlayerId, *, reason: str = ""
) -> None:
    player = named_person(match, player_id, timeline.here.pop(player_id))
    number, head = timeline.head_now(event, match)
    timeline.add(number, items.PlayerDisconnectedItem(**head, player=player, reason=sanitize(reason)))
