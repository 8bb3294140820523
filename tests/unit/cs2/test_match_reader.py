"""Tests of reading a match from posts, reports and files."""

from __future__ import annotations

import json

import msgspec

from cs2_protocol.game import Team
from cs2_protocol.log_batches import LogPost
from cs2_protocol.log_clock import parse_stamp
from cs2_protocol.post_order import HOLD_MS
from matchpod.core import events as ev
from matchpod.core.effects import EndMatch, StartPlay
from matchpod.core.match.actions import ActionAnswer, ActionRequest, ActionType, ServerVerdict
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.roster import RosterRole
from matchpod.core.model import SeriesFormat, Winner
from matchpod.core.views.timeline_items import ActionItem, Person
from matchpod.cs2.anticheat_reports import PluginDetection
from matchpod.cs2.map_flow import CONFIRM_TIMEOUT_MS
from matchpod.cs2.match_reader import MatchReader, ReadResult
from matchpod.cs2.shots_report import PlayerShots, RoundShots, ShotsReport
from tests.unit.cs2.server_log import MAP, ServerLog, competitive, id64

RECEIVED_MS = 1_768_900_000_000
BO3 = msgspec.structs.replace(competitive(), series_format=SeriesFormat.BO3, maps=(MAP, "de_train", "de_mirage"))
STAMP = "01/20/2026 - 10:00:{:06.3f} - "


class LogPoster:
    """Posts texts to a reader, one post per call, with offsets as a server counts them."""

    def __init__(self, reader: MatchReader | None = None) -> None:
        self.reader = reader or MatchReader.create(competitive(), RECEIVED_MS)
        self.offset = 0
        self.game_map: str | None = None
        self.log = ServerLog()

    def post(self, *texts: str, skip: int = 0, token: str = "a1") -> ReadResult:
        body = "".join(f"{STAMP.format(1)}{text}\n" for text in texts).encode()
        begin = self.offset + skip
        self.offset = begin + len(body)
        reading = self.reader.read_post(
            LogPost(
                body=body,
                received_ms=RECEIVED_MS,
                begin=begin,
                end=self.offset,
                instance_token=token,
                game_map=self.game_map,
            )
        )
        # After skipped bytes, the post is held until they are considered lost.
        return self.reader.read_held(RECEIVED_MS + HOLD_MS) if self.reader.held.posts else reading

    def all_join(self) -> ReadResult:
        lines = []
        for account in (1, 2, 3, 4):
            name = self.log.token(account, "")
            lines += [f'{name} connected, address "x"', f"{name} STEAM USERID validated", f"{name} entered the game"]
            lines += [
                f'{self.log.token(account).rsplit("<", 1)[0]}" switched from team <Unassigned> to <{self.log.side[account]}>'
            ]
        return self.post(*lines)

    def decide_and_start(self, *texts: str, score: tuple[int, int] = (1, 0)) -> ev.RoundStarted:
        """Post the end of a round, these texts and the start of the next round, and return the latter."""
        ct, t = score
        end = f'Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "{ct}") (T "{t}")'
        events = self.post(end, "Starting Freeze period", *texts, 'World triggered "Round_Start"').events
        (start,) = [event for event in events if isinstance(event, ev.RoundStarted)]
        return start

    def go_live(self) -> ReadResult:
        self.all_join()
        return self.post(
            f'World triggered "Match_Start" on "{MAP}"',
            f'MatchStatus: Score: 0:0 on map "{MAP}" RoundsPlayed: 0',
            'World triggered "Round_Start"',
        )


def report(event: str, **fields: object) -> bytes:
    return json.dumps({"event": event, "matchid": 27, "map_number": 0} | fields).encode()


MAP_RESULT = report("map_result", team1={"score": 13}, team2={"score": 9}, winner={"side": "2", "team": "team1"})


def test_play_starts_when_the_last_listed_player_joins() -> None:
    assert LogPoster().all_join().effects == [StartPlay(1)]


def test_times_are_converted_to_utc_by_the_first_receive_time() -> None:
    poster = LogPoster()
    assert poster.go_live().events[-1].at_ms == RECEIVED_MS


def test_lost_bytes_are_reported() -> None:
    poster = LogPoster()
    poster.go_live()
    result = poster.post("Match unpaused", skip=100)
    assert result.events[0] == ev.LogGap(RECEIVED_MS + HOLD_MS, 100)
    assert not poster.reader.match.current_map.ledger.is_complete


def test_new_server_process_is_reported_and_its_map_is_unknown() -> None:
    poster = LogPoster()
    poster.go_live()
    poster.offset = 0
    result = poster.post(f'{poster.log.token(1)} [0 0 0] killed {poster.log.token(3)} [0 0 0] with "ak47"', token="b2")
    assert [type(event) for event in result.events] == [ev.ServerRestarted]


def test_unknown_lines_are_counted() -> None:
    poster = LogPoster()
    poster.post("what is this", "Starting Freeze period")
    assert (poster.reader.lines_read, poster.reader.lines_unknown) == (2, 1)


def test_lines_without_a_time_stamp_are_unknown() -> None:
    reader = MatchReader.create(competitive(), 0)
    reader.read_file([b"Starting Freeze period"])
    assert reader.lines_unknown == 1


def test_plugin_ends_a_map_whose_last_lines_were_lost() -> None:
    poster = LogPoster()
    poster.go_live()
    poster.reader.read_report(MAP_RESULT, RECEIVED_MS)
    deadline = poster.reader.next_deadline_ms()
    assert deadline == RECEIVED_MS + CONFIRM_TIMEOUT_MS
    assert poster.reader.tick(deadline).effects == [EndMatch()]
    assert poster.reader.match.current_map.team1_score == 13
    assert poster.reader.next_deadline_ms() is None


def test_end_reported_by_the_plugin_uses_server_time_and_our_timeout() -> None:
    poster = LogPoster()
    poster.go_live()
    last_ms = poster.reader.match.current_map.last_event_at_ms
    assert last_ms is not None
    report_ms = RECEIVED_MS - 600_000  # a simulated server that runs faster is ahead of our clock
    poster.reader.read_report(MAP_RESULT, report_ms)
    assert poster.reader.next_deadline_ms() == report_ms + CONFIRM_TIMEOUT_MS
    poster.reader.tick(report_ms + CONFIRM_TIMEOUT_MS)
    assert poster.reader.match.current_map.finished_at_ms == last_ms


def test_timeout_of_game_over_uses_our_clock() -> None:
    poster = LogPoster()
    poster.go_live()
    poster.reader.clock.offset_ms += 3_600_000
    poster.post(f"Game Over: competitive  {MAP} score 13:2 after 20 min")
    assert poster.reader.next_deadline_ms() == RECEIVED_MS + CONFIRM_TIMEOUT_MS


def test_skipped_time_moves_all_deadlines() -> None:
    poster = LogPoster()
    poster.go_live()
    alarm_ms = poster.reader.next_deadline_ms()
    assert alarm_ms is not None
    poster.reader.skipped_ms = 3_600_000
    assert poster.reader.next_deadline_ms() == alarm_ms + 3_600_000
    poster.post(f"Game Over: competitive  {MAP} score 13:2 after 20 min")
    due_ms = RECEIVED_MS + CONFIRM_TIMEOUT_MS
    assert poster.reader.next_deadline_ms() == due_ms
    assert poster.reader.tick(due_ms - 1).effects == []
    assert poster.reader.tick(due_ms).effects == [EndMatch()]


def test_resume_puts_players_and_our_clock_in_doubt() -> None:
    poster = LogPoster()
    poster.reader.skipped_ms = 3_600_000
    poster.reader.mark_resumed(RECEIVED_MS)
    assert poster.reader.match.presence.doubt_since_ms == RECEIVED_MS - 3_600_000
    assert poster.reader.clock.is_ours_in_doubt


def test_plugin_report_of_the_last_round_is_applied_after_the_end() -> None:
    poster = LogPoster()
    poster.go_live()
    poster.post(
        'Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "1") (T "0")',
        f'MatchStatus: Score: 1:0 on map "{MAP}" RoundsPlayed: 1',
        'World triggered "Round_End"',
    )
    result = report("map_result", team1={"score": 1}, team2={"score": 0}, winner={"side": "3", "team": "team1"})
    poster.reader.read_report(result, RECEIVED_MS)
    poster.reader.tick(RECEIVED_MS + CONFIRM_TIMEOUT_MS)
    assert poster.reader.match.phase is MatchPhase.OVER
    player = {"steamid": id64(1), "name": "p1", "stats": {"mvp": 1}}
    teams = {"team1": {"score": 1, "players": [player]}, "team2": {"score": 0, "players": []}}
    late = report("round_end", round_number=1, reason=8, winner={"side": "3", "team": "team1"}, **teams)
    poster.reader.read_report(late, RECEIVED_MS + CONFIRM_TIMEOUT_MS + 500)
    mvps = {line.player_id: line.mvps for line in poster.reader.match.current_map.ledger.lines()}
    assert mvps[id64(1)] == 1


def test_invalid_report_is_ignored() -> None:
    assert LogPoster().reader.read_report(b"\xff{", RECEIVED_MS) == ReadResult([], [])


def test_plugin_detection_is_added_to_the_match() -> None:
    poster = LogPoster()
    poster.go_live()
    detection = PluginDetection(player_id=id64(1), name="?", kind="Aimbot", reason="41.2", weapon="ak47")
    poster.reader.read_detection(detection, RECEIVED_MS)
    kept = [
        (found.player_id, found.kind, found.map_number, found.round_number) for found in poster.reader.match.detections
    ]
    assert kept == [(id64(1), "Aimbot", 1, 1)]


def shots_report(fired: dict[int, int], sequence: int | None) -> ShotsReport:
    """A report of one player's shots by round; a round with 0 has no players yet."""
    rounds = tuple(
        RoundShots(round_number=number, players=(PlayerShots(id64(1), count, 0),) if count else ())
        for number, count in fired.items()
    )
    return ShotsReport(map_number=1, rounds=rounds, sequence=sequence)


def test_report_of_shots_that_was_overtaken_is_ignored() -> None:
    """As seen around a restored backup: round 2 is played again, and reports are sent over several connections."""
    poster = LogPoster()
    poster.go_live()
    shots = poster.reader.match.current_map.ledger.shots
    for fired, sequence in (({1: 10}, 1), ({1: 10}, 3), ({1: 10, 2: 44}, 2), ({1: 10, 2: 0}, 4)):
        poster.reader.read_shots(shots_report(fired, sequence), RECEIVED_MS)
        assert not shots.get(2), "not the shots of the round that was undone"
    poster.reader.read_shots(shots_report({1: 10, 2: 7}, 5), RECEIVED_MS)
    assert {number: shots[number][id64(1)].fired for number in shots} == {1: 10, 2: 7}
    poster.reader.read_shots(shots_report({1: 10}, 6), RECEIVED_MS)
    assert not shots[2], "a backup was restored again"


def test_clock_is_anchored_by_the_time_stamp_of_the_post() -> None:
    reader = MatchReader.create(competitive(), RECEIVED_MS)
    body = f'{STAMP.format(1)}Loading map "{MAP}"\n'.encode()
    sent_ms = 1_768_903_200_000  # 01/20/2026 - 10:00:00, one second before the line
    result = reader.read_post(LogPost(body=body, received_ms=RECEIVED_MS, begin=0, sent_ms=sent_ms))
    assert result.events[0].at_ms == RECEIVED_MS + 1000


def test_map_first_seen_after_a_gap_is_not_the_previous_map() -> None:
    poster = LogPoster(MatchReader.create(BO3, RECEIVED_MS))
    poster.game_map = MAP
    poster.go_live()
    poster.game_map, poster.offset = "de_train", 5000
    result = poster.post(
        'Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "2") (T "1")',
        'MatchStatus: Score: 2:1 on map "de_train" RoundsPlayed: 3',
    )
    assert [type(event) for event in result.events] == [ev.LogGap, ev.MapLoading, ev.MapLive]
    first, second = poster.reader.match.maps
    assert (first.is_finished, first.winner, first.team1_score, first.team2_score) == (True, None, 0, 0)
    assert (second.number, second.name, second.latest_round) == (2, "de_train", 3)
    assert (second.team1_score, second.team2_score) == (0, 0), "no player showed which team is on which side"


def test_end_of_the_next_map_does_not_end_the_map_before_the_gap() -> None:
    poster = LogPoster(MatchReader.create(BO3, RECEIVED_MS))
    poster.game_map = MAP
    poster.go_live()
    poster.game_map, poster.offset = "de_train", 5000
    poster.post("Game Over: competitive  de_train score 13:5 after 30 min")
    poster.reader.accept_unconfirmed_end(RECEIVED_MS + CONFIRM_TIMEOUT_MS)
    assert not any(played.winner for played in poster.reader.match.maps)


def test_plugin_ends_a_series_whose_log_was_lost() -> None:
    poster = LogPoster(MatchReader.create(BO3, RECEIVED_MS))
    poster.go_live()
    over = {"team1_series_score": 0, "team2_series_score": 2, "winner": {"team": "team2"}}
    assert poster.reader.read_report(report("series_end", **over), RECEIVED_MS).effects == []
    assert poster.reader.tick(RECEIVED_MS + CONFIRM_TIMEOUT_MS).effects == [EndMatch()]
    match = poster.reader.match
    assert (match.winner, match.series_score) == (Winner.TEAM2, (0, 2))
    assert [one.winner for one in match.maps] == [Winner.TEAM2, Winner.TEAM2]


# --- server setup ---------------------------------------------------------------------------------------------------


def phase_of(poster: LogPoster) -> MatchPhase:
    return poster.reader.match.phase


def test_play_during_setup_does_not_count() -> None:
    poster = LogPoster()
    poster.reader.mark_setup(is_done=False)
    poster.go_live()
    assert (phase_of(poster), len(poster.reader.match.presence.connected)) == (MatchPhase.STARTING, 4)
    poster.reader.mark_setup(is_done=True)
    old_game = (
        f'MatchStatus: Score: 3:1 on map "{MAP}" RoundsPlayed: 4',
        f"Game Over: competitive  {MAP} score 3:1 after 5 min",
    )
    poster.post(*old_game)
    assert phase_of(poster) is MatchPhase.STARTING
    poster.go_live()
    assert phase_of(poster) is MatchPhase.LIVE
    assert poster.reader.match.current_map.team1_score == 0


def test_map_goes_live_even_if_the_match_start_was_lost() -> None:
    poster = LogPoster()
    poster.reader.mark_setup(is_done=False)
    poster.all_join()
    poster.reader.mark_setup(is_done=True)
    poster.post(f'MatchStatus: Score: 1:0 on map "{MAP}" RoundsPlayed: 1', skip=500)
    assert phase_of(poster) is MatchPhase.LIVE


def test_repeated_end_of_setup_changes_nothing() -> None:
    poster = LogPoster()
    poster.go_live()
    poster.reader.mark_setup(is_done=True)
    assert poster.reader.interpreter.flow.is_map_open


def test_log_address_that_was_added_again_is_a_gap() -> None:
    poster = LogPoster()
    poster.game_map = MAP
    poster.go_live()
    poster.offset = 0
    result = poster.post('World triggered "Round_End"')
    assert [type(event) for event in result.events] == [ev.LogGap]
    assert poster.reader.interpreter.flow.sides.is_doubtful
    assert not poster.reader.match.current_map.is_complete


def test_map_load_is_no_gap() -> None:
    poster = LogPoster()
    poster.game_map = MAP
    poster.go_live()
    poster.offset, poster.game_map = 0, "de_train"
    result = poster.post('Loading map "de_train"')
    assert [type(event) for event in result.events] == [ev.MapLoading]


def test_player_whose_leaving_was_lost_is_in_no_line_up() -> None:
    poster = LogPoster()
    poster.go_live()
    poster.post('World triggered "Round_End"', skip=100)
    seen = [f'{poster.log.token(account)} picked up "knife"' for account in (1, 2, 3)]
    start = poster.decide_and_start(*seen)
    assert (start.team1, start.team2, start.unseen) == ((id64(1), id64(2)), (id64(3),), (id64(4),))
    names = {id64(account): "x" for account in (1, 2, 3)}
    shrunk = [
        event
        for seconds in (60, 120)  # a player counts as gone if two lists lack them
        for event in poster.reader.read_presence(names, RECEIVED_MS + seconds * 1000).events
        if isinstance(event, ev.LineupShrunk)
    ]
    assert [event.player_id for event in shrunk] == [id64(4)]
    assert id64(4) not in poster.reader.match.presence.connected
    assert poster.decide_and_start(score=(2, 0)).unseen == ()
    (played,) = poster.reader.match.maps
    assert played.missing_rounds == (1, 2), "it is not known when the player left"


# --- a game that runs faster than our clock -------------------------------------------------------------------------


def fast_post(reader: MatchReader, *, game_s: float, our_s: float, token: str = "a1", number: int = 0) -> list[int]:
    """Post a chat line of a game that runs fast, and return the times of its events in our time, since the start."""
    body = f'{STAMP.format(game_s)}"ann<1><[U:1:1]><CT>" say "hi"\n'.encode()
    stamp = parse_stamp(STAMP.format(game_s).removesuffix(" - "))
    post = LogPost(
        body=body,
        received_ms=RECEIVED_MS + round(our_s * 1000),
        begin=number * len(body),
        end=(number + 1) * len(body),
        instance_token=token,
        sent_ms=stamp,
    )
    times = reader.match.times
    return [times.ours(event.at_ms) - RECEIVED_MS for event in reader.read_post(post).events]


def fast_reader() -> MatchReader:
    reader = MatchReader.create(competitive(), RECEIVED_MS)
    reader.clock.is_real_time = False
    return reader


def test_events_of_a_fast_game_have_the_time_of_their_post() -> None:
    reader = fast_reader()
    assert fast_post(reader, game_s=0, our_s=0) == [0]
    assert fast_post(reader, game_s=30, our_s=1, number=1) == [1_000]
    assert reader.match.times.until_ms == RECEIVED_MS + 30_000


def test_time_of_a_fast_game_goes_on_after_a_restart_of_its_server() -> None:
    reader = fast_reader()
    fast_post(reader, game_s=0, our_s=0)
    fast_post(reader, game_s=50, our_s=2, number=1)
    assert set(fast_post(reader, game_s=3, our_s=3, token="b2")) == {2_000}
    assert fast_post(reader, game_s=33, our_s=4, token="b2", number=1) == [4_000]


def test_detection_during_a_fast_game_has_the_time_of_the_game() -> None:
    reader = fast_reader()
    fast_post(reader, game_s=0, our_s=0)
    fast_post(reader, game_s=45, our_s=2, number=1)
    reported = PluginDetection(player_id=id64(1), name="ann", kind="Aimbot", reason="x")
    (found,) = reader.read_detection(reported, RECEIVED_MS + 2_100).events
    assert found.at_ms == RECEIVED_MS + 45_000


def test_input_that_is_lost_is_a_gap_also_without_offsets() -> None:
    reader = MatchReader.create(competitive(), RECEIVED_MS)
    reading = reader.lose_entry(b"a line\n", RECEIVED_MS)
    assert reading.events == [ev.LogGap(RECEIVED_MS, 7)]
    assert reader.match.presence.is_doubtful


def test_posts_that_are_held_are_lost_with_the_input_with_which_they_are_read() -> None:
    reader = MatchReader.create(competitive(), RECEIVED_MS)
    held = LogPost(body=b"a line\n", received_ms=RECEIVED_MS, begin=900, end=907, instance_token="a1")
    assert reader.read_post(held).events == []
    assert reader.lose_entry(b"", RECEIVED_MS).events == [ev.LogGap(RECEIVED_MS, 7)]
    assert reader.next_deadline_ms() == MatchReader.create(competitive(), RECEIVED_MS).next_deadline_ms()
    assert reader.lose_entry(b"", RECEIVED_MS).events == [], "nothing was lost"


def test_end_that_the_plugin_reports_comes_after_the_posts_that_were_received_before_it_and_are_held() -> None:
    poster = LogPoster()
    poster.go_live()
    body = f'{STAMP.format(5)}World triggered "Round_Start"\n'.encode()
    begin = poster.offset + 100  # what is missing is on its way, or lost
    held = LogPost(body=body, received_ms=RECEIVED_MS, begin=begin, end=begin + len(body), instance_token="a1")
    assert poster.reader.read_post(held).events == []
    assert poster.reader.read_report(MAP_RESULT, RECEIVED_MS).events == []
    poster.reader.read_held(RECEIVED_MS + HOLD_MS)
    assert poster.reader.match.phase is MatchPhase.LIVE
    effects = poster.reader.accept_unconfirmed_end(RECEIVED_MS + HOLD_MS + CONFIRM_TIMEOUT_MS).effects
    assert effects == [EndMatch()]
    assert poster.reader.match.winner is Winner.TEAM1


def test_reports_wait_only_for_posts_that_were_received_before_them() -> None:
    poster = LogPoster()
    poster.go_live()
    missing = f"{STAMP.format(4)}Match unpaused\n".encode()
    begin = poster.offset + len(missing)
    for number, received_ms in enumerate((RECEIVED_MS, RECEIVED_MS + 2)):
        body = f'{STAMP.format(5)}World triggered "Round_Start"\n'.encode()
        if number:  # between them, the report is received
            assert poster.reader.read_report(MAP_RESULT, RECEIVED_MS + 1).events == []
            begin += len(body) + 50
        poster.reader.read_post(
            LogPost(body=body, received_ms=received_ms, begin=begin, end=begin + len(body), instance_token="a1")
        )
    first = LogPost(body=missing, received_ms=RECEIVED_MS + 3, begin=poster.offset, instance_token="a1")
    events = poster.reader.read_post(msgspec.structs.replace(first, end=poster.offset + len(missing))).events
    assert [type(event) for event in events] == [ev.Unpaused, ev.RoundStarted, ev.ResultReported]
    assert len(poster.reader.held.posts) == 1


def items_of(reader: MatchReader) -> list[tuple[str, str]]:
    return [(one.item.action, one.item.state) for one in reader.timeline.drain() if isinstance(one.item, ActionItem)]


def test_actions_are_in_the_timeline_when_they_are_requested_done_or_failed() -> None:
    poster = LogPoster()
    reader = poster.reader
    poster.all_join()
    reader.request_action(ActionRequest(id="action_1", type=ActionType.SAY, text="Hello"), RECEIVED_MS)
    reader.request_action(ActionRequest(id="action_2", type=ActionType.PAUSE), RECEIVED_MS)
    assert items_of(reader) == [("say", "requested"), ("pause", "requested"), ("pause", "failed")]
    reader.match.note_action_sent("action_1")
    poster.post('"Console<0>" say "Hello"')
    assert items_of(reader) == [("say", "done")]
    added = ActionRequest(id="action_3", type=ActionType.ADD_PLAYER, steam_id=id64(9), role=RosterRole.TEAM1)
    reader.request_action(added, RECEIVED_MS)
    assert reader.interpreter.flow.sides.team_of(id64(9)) is Team.TEAM1
    refused = ActionAnswer(action_id="action_3", verdict=ServerVerdict.REFUSED)
    reader.answer_action(refused, RECEIVED_MS)
    assert reader.interpreter.flow.sides.team_of(id64(9)) is None
    assert items_of(reader) == [("addPlayer", "requested"), ("addPlayer", "failed")]


def test_actions_are_looked_for_only_when_one_has_changed() -> None:
    poster = LogPoster()
    reader = poster.reader
    poster.all_join()
    reader.request_action(ActionRequest(id="action_1", type=ActionType.SAY, text="Hello"), RECEIVED_MS)
    people = reader.timeline.people[id64(1)] = Person(steam_id=id64(1), name="Ann", team=None)
    reader.tick(RECEIVED_MS)
    assert reader.timeline.people.get(id64(1)) is people


def test_restore_waits_while_the_teams_change_sides() -> None:
    reader = MatchReader.create(msgspec.structs.replace(competitive(), max_rounds=2), RECEIVED_MS)
    log = ServerLog().go_live()
    played = log.file()
    reader.read_file(played.encode().splitlines())
    restore = ActionRequest(id="action_1", type=ActionType.RESTORE, round=1)
    assert reader.obstacle_to(restore) is None
    log.round_end("CT")
    reader.read_file(log.file()[len(played) :].encode().splitlines())
    found = reader.obstacle_to(restore)
    assert found is not None
    assert found.retry_after_s is not None
