"""Add the items of play to a timeline: maps, rounds, sides, pauses, combat and the bomb."""

from __future__ import annotations

from matchpod.core import events as ev
from matchpod.core.match.match import Match
from matchpod.core.match.played_map import MapStatus
from matchpod.core.match.start_sides import decided_by
from matchpod.core.views import timeline_items as items
from matchpod.core.views.shown_text import sanitize
from matchpod.core.views.timeline_players import add_arrivals, sync_players
from matchpod.core.views.timeline_writer import TimelineWriter, score_of, team1_side_of


def add_map_live(timeline: TimelineWriter, event: ev.MapLive, match: Match) -> None:
    """Add the start of a map, after the ends of all earlier maps."""
    add_map_ends(timeline, match)  # the start of this map may have ended an earlier map
    sync_players(timeline, event, match)
    number, head = timeline.head_in_play(event, match)
    name, side, score = sanitize(event.map_name), team1_side_of(event, match), score_of(match.current_map)
    by = None if event.rounds_played else decided_by(match.settings, number, side)
    timeline.add(number, items.MapLiveItem(**head, map_name=name, team1_side=side, sides_by=by, score=score))


def add_round_start(timeline: TimelineWriter, event: ev.RoundStarted, match: Match) -> None:
    rounds = match.current_map.ledger.rounds
    if not rounds or (rounds[-1].team1, rounds[-1].team2) != (event.team1, event.team2):
        timeline.people.clear()
    add_arrivals(timeline, event, match)  # players in the line-up whose connect lines were lost
    number, head = timeline.head_in_play(event, match)
    timeline.add(number, items.RoundStartItem(**head, team1_side=team1_side_of(event, match)))


def add_round_end(timeline: TimelineWriter, event: ev.RoundDecided, match: Match) -> None:
    played = match.current_map
    end = items.RoundEndItem(
        **timeline.head(match, played.number, event.at_ms, event.round_number),
        winner=None if match.settings.is_free_for_all else event.winner,
        winner_side=event.winner_side,
        reason=event.reason,
        score=score_of(played),
    )
    timeline.add(played.number, end)


def add_restore(timeline: TimelineWriter, event: ev.RoundRestored, match: Match) -> None:
    sync_players(timeline, event, match)
    number, head = timeline.head_in_play(event, match)
    score = score_of(match.current_map)
    timeline.add(number, items.RoundRestoredItem(**head, rounds_kept=event.rounds_kept, score=score))


def add_side_swap(timeline: TimelineWriter, event: ev.SidesSwapped, match: Match) -> None:
    number, head = timeline.head_in_play(event, match)
    timeline.add(number, items.SideSwapItem(**head, team1_side=team1_side_of(event, match)))


def add_pause(timeline: TimelineWriter, event: ev.Paused | ev.Unpaused, match: Match) -> None:
    # The server logs the end of a pause twice: when the end is requested, and when play resumes.
    if match.current_map.is_paused is timeline.is_paused:
        return
    timeline.is_paused = match.current_map.is_paused
    number, head = timeline.head_in_play(event, match)
    if isinstance(event, ev.Unpaused):
        timeline.add(number, items.UnpausedItem(**head, by=sanitize(event.by)))
    else:
        caller = None if event.caller is None else timeline.fighter(match, event.caller)
        timeline.add(number, items.PausedItem(**head, by=sanitize(event.by), called_by=caller))


def add_kill(timeline: TimelineWriter, event: ev.Kill, match: Match) -> None:
    # Half of all items are kills, so this function avoids the overhead of the helper methods.
    played = match.maps[-1]
    if not played.ledger.keeps_kills:
        return
    kill = items.KillItem(
        seq=timeline.seqs.get(played.number, 0) + 1,
        timestamp=timeline.stamp.text(match.times.ours(event.at_ms)),
        round_number=played.round_number or played.latest_round,
        killer=timeline.fighter(match, event.killer),
        victim=timeline.fighter(match, event.victim),
        weapon=sanitize(event.weapon),
        team_kill=not event.is_enemy,
        headshot=event.is_headshot,
        wallbang=event.is_wallbang,
        through_smoke=event.is_through_smoke,
        attacker_blind=event.is_blind,
        noscope=event.is_noscope,
        in_air=event.is_in_air,
        distance=event.distance,
    )
    timeline.add(played.number, kill)


def add_death(timeline: TimelineWriter, event: ev.Death, match: Match) -> None:
    """Add a death without a killer, and the assist of an enemy if the game credits their earlier damage."""
    # The ledger has already applied the event. A death in freeze time, or of a player who was out, does not count.
    ledger, death = match.maps[-1].ledger, (event.at_ms, event.player_id)
    record = ledger.open_round
    if record is None or death == timeline.last_death or not ledger.keeps_kills:
        return
    fall = record.death_by(event.cause, *death)
    if record.has_respawns or fall is not None:
        timeline.last_death = death
        number, head = timeline.head_in_play(event, match)
        player = timeline.fighter(match, event.player_id)
        timeline.add(number, items.DeathItem(**head, player=player, cause=sanitize(event.cause)))
        if fall is not None and fall.helper is not None:
            add_assist(
                timeline, ev.Assist(event.at_ms, fall.helper, event.player_id, is_flash=False, is_enemy=True), match
            )


def add_assist(timeline: TimelineWriter, event: ev.Assist, match: Match) -> None:
    # Damage by a teammate is not an assist.
    if event.is_enemy and match.maps[-1].ledger.keeps_kills:
        number, head = timeline.head_in_play(event, match)
        player, victim = timeline.fighter(match, event.player_id), timeline.fighter(match, event.victim)
        timeline.add(number, items.AssistItem(**head, player=player, victim=victim, flash=event.is_flash))


def add_plant(timeline: TimelineWriter, event: ev.BombPlanted, match: Match) -> None:
    number, head = timeline.head_in_play(event, match)
    site = None if event.site is None else sanitize(event.site)
    timeline.add(number, items.BombPlantedItem(**head, player=timeline.fighter(match, event.player_id), site=site))


def add_defuse(timeline: TimelineWriter, event: ev.BombDefused, match: Match) -> None:
    """Add a defuse; the player may be unknown."""
    number, head = timeline.head_in_play(event, match)
    player = None if event.player_id is None else timeline.fighter(match, event.player_id)
    timeline.add(number, items.BombDefusedItem(**head, player=player))


def add_explosion(timeline: TimelineWriter, event: ev.BombExploded, match: Match) -> None:
    number, head = timeline.head_in_play(event, match)
    timeline.add(number, items.BombExplodedItem(**head))


def add_map_ends(timeline: TimelineWriter, match: Match) -> None:
    """Add an item for each map that has ended. A map may end without an event: by a timeout, or with its match."""
    last = match.maps[-1]
    if last.status is MapStatus.LIVE:
        timeline.ended_map = min(timeline.ended_map, last.number - 1)
    for played in match.maps[timeline.ended_map :]:
        if played.started_at_ms is None or played.status is MapStatus.LIVE:
            continue  # never played, or still live
        timeline.ended_map = played.number
        head = timeline.head(match, played.number, played.finished_at_ms or 0, played.latest_round)
        # The end may have been inferred later, and its time may be before that of the newest items.
        head["timestamp"] = max(head["timestamp"], timeline.stamps.get(played.number, ""))
        end = items.MapEndItem(**head, status=played.status, winner=played.winner, score=score_of(played))
        timeline.add(played.number, end)
