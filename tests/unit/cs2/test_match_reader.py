"""Bytes in, match out."""

from __future__ import annotations

import json

import msgspec

from matchpod.core import events as ev
from matchpod.core.effects import EndMatch, StartPlay
from matchpod.core.match import Phase
from matchpod.core.model import SeriesFormat, Winner
from matchpod.cs2.anticheat_reports import PluginDetection
from matchpod.cs2.log_batches import LogPost
from matchpod.cs2.map_flow import PATIENCE_MS
from matchpod.cs2.match_reader import MatchReader, Reading

from .server_log import MAP, ServerLog, competitive, id64

RECEIVED_MS = 1_768_900_000_000
BO3 = msgspec.structs.replace(competitive(), series_format=SeriesFormat.BO3, maps=(MAP, "de_train", "de_mirage"))
STAMP = "01/20/2026 - 10:00:{:06.3f} - "


class Wire:
    """Posts texts to a reader, one post a call, with offsets as a server counts them."""

    def __init__(self, reader: MatchReader | None = None) -> None:
        self.reader = reader or MatchReader.create(competitive(), RECEIVED_MS)
        self.offset = 0
        self.game_map: str | None = None
        self.log = ServerLog()

    def post(self, *texts: str, skip: int = 0, token: str = "a1") -> Reading:
        body = "".join(f"{STAMP.format(1)}{text}\n" for text in texts).encode()
        begin = self.offset + skip
        self.offset = begin + len(body)
        return self.reader.read_post(
            LogPost(
                body=body,
                received_ms=RECEIVED_MS,
                begin=begin,
                end=self.offset,
                instance_token=token,
                game_map=self.game_map,
            )
        )

    def all_join(self) -> Reading:
        lines = []
        for account in (1, 2, 3, 4):
            name = self.log.token(account, "")
            lines += [f'{name} connected, address "x"', f"{name} STEAM USERID validated", f"{name} entered the game"]
            lines += [
                f'{self.log.token(account).rsplit("<", 1)[0]}" switched from team <Unassigned> to <{self.log.side[account]}>'
            ]
        return self.post(*lines)

    def go_live(self) -> Reading:
        self.all_join()
        return self.post(
            f'World triggered "Match_Start" on "{MAP}"',
            f'MatchStatus: Score: 0:0 on map "{MAP}" RoundsPlayed: 0',
            'World triggered "Round_Start"',
        )


def report(event: str, **fields: object) -> bytes:
    return json.dumps({"event": event, "matchid": 27, "map_number": 0} | fields).encode()


MAP_RESULT = report("map_result", team1={"score": 13}, team2={"score": 9}, winner={"side": "2", "team": "team1"})


def test_the_last_listed_player_to_join_starts_play() -> None:
    assert Wire().all_join().effects == [StartPlay(1)]


def test_a_match_is_played_from_posts_alone() -> None:
    wire = Wire()
    wire.go_live()
    assert wire.reader.match.phase is Phase.LIVE
    reading = wire.post(
        'Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "1") (T "0")',
        f"Game Over: competitive  {MAP} score 1:0 after 1 min",
    )
    assert reading.effects == [EndMatch()]


def test_times_are_utc_by_the_clock_that_received_the_first_post() -> None:
    wire = Wire()
    assert wire.go_live().events[-1].at_ms == RECEIVED_MS


def test_lost_bytes_are_told() -> None:
    wire = Wire()
    wire.go_live()
    reading = wire.post("Match unpaused", skip=100)
    assert reading.events[0] == ev.LogGap(RECEIVED_MS, 100)
    assert not wire.reader.match.current_map.ledger.is_complete


def test_another_process_is_told_and_has_to_introduce_its_map() -> None:
    wire = Wire()
    wire.go_live()
    wire.offset = 0
    reading = wire.post(f'{wire.log.token(1)} [0 0 0] killed {wire.log.token(3)} [0 0 0] with "ak47"', token="b2")
    assert [type(event) for event in reading.events] == [ev.ServerRestarted]


def test_a_new_map_load_is_no_loss() -> None:
    wire = Wire()
    wire.go_live()
    wire.offset = 0
    assert [type(event) for event in wire.post(f'Loading map "{MAP}"').events] == [ev.MapLoading]


def test_unknown_lines_are_counted() -> None:
    wire = Wire()
    wire.post("what is this", "Starting Freeze period")
    assert (wire.reader.lines_read, wire.reader.lines_unknown) == (2, 1)


def test_lines_without_a_time_are_unknown() -> None:
    reader = MatchReader.create(competitive(), 0)
    reader.read_file([b"Starting Freeze period"])
    assert reader.lines_unknown == 1


def test_the_plugin_ends_a_map_whose_last_lines_never_came() -> None:
    wire = Wire()
    wire.go_live()
    wire.reader.read_report(MAP_RESULT, RECEIVED_MS)
    deadline = wire.reader.next_deadline_ms()
    assert deadline == RECEIVED_MS + PATIENCE_MS
    assert wire.reader.tick(deadline).effects == [EndMatch()]
    assert wire.reader.match.current_map.team1_score == 13
    assert wire.reader.next_deadline_ms() is None


def test_the_end_that_the_plugin_tells_has_the_time_of_the_server_and_the_patience_of_our_clock() -> None:
    wire = Wire()
    wire.go_live()
    last_ms = wire.reader.match.current_map.last_event_at_ms
    assert last_ms is not None
    heard_ms = RECEIVED_MS - 600_000  # a world that runs faster is ahead of us
    wire.reader.read_report(MAP_RESULT, heard_ms)
    assert wire.reader.next_deadline_ms() == heard_ms + PATIENCE_MS
    wire.reader.tick(heard_ms + PATIENCE_MS)
    assert wire.reader.match.current_map.finished_at_ms == last_ms


def test_a_game_over_is_waited_for_by_our_clock_also_where_the_log_is_ahead() -> None:
    wire = Wire()
    wire.go_live()
    wire.reader.clock.offset_ms += 3_600_000
    wire.post(f"Game Over: competitive  {MAP} score 13:2 after 20 min")
    assert wire.reader.next_deadline_ms() == RECEIVED_MS + PATIENCE_MS


def test_the_console_tells_who_came_where_the_log_lost_it() -> None:
    wire = Wire()
    wire.post("hello")
    wire.post("hello", skip=400)
    names = {id64(account): f"p{account}" for account in (1, 2, 3, 4)}
    load_ms = round(wire.reader.match.timers.client_load_s * 1000)
    wire.reader.read_presence(names, RECEIVED_MS)
    assert wire.reader.match.presence.missing() == ()
    wire.reader.read_presence(names, RECEIVED_MS + load_ms)
    assert wire.reader.match.presence.complete_since_ms() == RECEIVED_MS + load_ms
    ready_ms = wire.reader.next_deadline_ms()
    assert ready_ms is not None
    assert wire.reader.tick(ready_ms).effects == [StartPlay(1)]


def test_the_plugins_word_on_the_last_round_is_heard_after_the_end() -> None:
    wire = Wire()
    wire.go_live()
    wire.post(
        'Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "1") (T "0")',
        f'MatchStatus: Score: 1:0 on map "{MAP}" RoundsPlayed: 1',
        'World triggered "Round_End"',
    )
    wire.reader.read_report(MAP_RESULT, RECEIVED_MS)
    wire.reader.tick(RECEIVED_MS + PATIENCE_MS)
    assert wire.reader.match.phase is Phase.OVER
    player = {"steamid": id64(1), "name": "p1", "stats": {"mvp": 3}}
    teams = {"team1": {"score": 1, "players": [player]}, "team2": {"score": 0, "players": []}}
    late = report("round_end", round_number=1, reason=8, winner={"side": "3", "team": "team1"}, **teams)
    wire.reader.read_report(late, RECEIVED_MS + PATIENCE_MS + 500)
    mvps = {line.player_id: line.mvps for line in wire.reader.match.current_map.ledger.lines()}
    assert mvps[id64(1)] == 3


def test_a_garbage_report_is_nothing() -> None:
    assert Wire().reader.read_report(b"\xff{", RECEIVED_MS) == Reading([], [])


def test_a_plugins_detection_goes_through_the_same_door() -> None:
    wire = Wire()
    wire.go_live()
    by_id = PluginDetection(player_id=id64(1), name="?", kind="Aimbot", reason="41.2", weapon="ak47")
    by_name = PluginDetection(player_id=None, name="Cid", kind="Spinbot", reason="x")
    unknown = PluginDetection(player_id=None, name="nobody", kind="Spinbot", reason="x")
    for found in (by_id, by_name, unknown):
        wire.reader.read_detection(found, RECEIVED_MS)
    kept = [
        (found.player_id, found.kind, found.map_number, found.round_number) for found in wire.reader.match.detections
    ]
    assert kept == [(id64(1), "Aimbot", 1, 1), (id64(3), "Spinbot", 1, 1)]


def test_counted_shots_are_shown() -> None:
    wire = Wire()
    wire.go_live()
    wire.reader.read_shots(id64(1), fired=10, hit=4, received_ms=RECEIVED_MS)
    (line,) = [line for line in wire.reader.match.current_map.ledger.lines() if line.player_id == id64(1)]
    assert (line.shots_fired, line.shots_hit) == (10, 4)


def test_a_reader_stored_in_the_middle_goes_on_as_before() -> None:
    wire = Wire()
    wire.go_live()
    wire.reader.read_report(MAP_RESULT, RECEIVED_MS)
    stored = msgspec.msgpack.encode(wire.reader)
    restored = msgspec.msgpack.decode(stored, type=MatchReader)
    assert restored == wire.reader


def test_the_clock_is_set_by_the_time_the_server_put_on_the_post() -> None:
    reader = MatchReader.create(competitive(), RECEIVED_MS)
    body = f'{STAMP.format(1)}Loading map "{MAP}"\n'.encode()
    sent_ms = 1_768_903_200_000  # 01/20/2026 - 10:00:00: the line is a second younger than the post says
    reading = reader.read_post(LogPost(body=body, received_ms=RECEIVED_MS, begin=0, sent_ms=sent_ms))
    assert reading.events[0].at_ms == RECEIVED_MS + 1000


def test_a_name_two_players_share_accuses_neither() -> None:
    wire = Wire()
    wire.go_live()
    wire.post(f'{wire.log.token(2)} changed name to "Cid"')
    wire.reader.read_detection(PluginDetection(player_id=None, name="Cid", kind="Spinbot", reason="x"), RECEIVED_MS)
    assert wire.reader.match.detections == []


def test_a_map_that_was_joined_in_its_middle_after_a_loss_is_not_the_one_before() -> None:
    wire = Wire(MatchReader.create(BO3, RECEIVED_MS))
    wire.game_map = MAP
    wire.go_live()
    wire.game_map, wire.offset = "de_train", 5000
    reading = wire.post(
        'Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "2") (T "1")',
        'MatchStatus: Score: 2:1 on map "de_train" RoundsPlayed: 3',
    )
    assert [type(event) for event in reading.events] == [ev.LogGap, ev.MapLoading, ev.MapLive]
    first, second = wire.reader.match.maps
    assert (first.is_finished, first.winner, first.team1_score, first.team2_score) == (True, None, 0, 0)
    assert (second.number, second.name, second.team1_score + second.team2_score) == (2, "de_train", 3)


def test_the_end_of_another_map_does_not_end_the_one_that_was_lost() -> None:
    wire = Wire(MatchReader.create(BO3, RECEIVED_MS))
    wire.game_map = MAP
    wire.go_live()
    wire.game_map, wire.offset = "de_train", 5000
    wire.post("Game Over: competitive  de_train score 13:5 after 30 min")
    wire.reader.settle(RECEIVED_MS + PATIENCE_MS)
    assert wire.reader.match.map_winners == []


def test_the_plugin_ends_a_series_of_which_the_rest_was_lost() -> None:
    wire = Wire(MatchReader.create(BO3, RECEIVED_MS))
    wire.go_live()
    over = {"team1_series_score": 0, "team2_series_score": 2, "winner": {"team": "team2"}}
    assert wire.reader.read_report(report("series_end", **over), RECEIVED_MS).effects == []
    assert wire.reader.tick(RECEIVED_MS + PATIENCE_MS).effects == [EndMatch()]
    match = wire.reader.match
    assert (match.winner, match.series_score) == (Winner.TEAM2, (0, 2))
    assert [one.winner for one in match.maps] == [Winner.TEAM2, Winner.TEAM2]


# --- the set-up -----------------------------------------------------------------------------------------------------


def phase_of(wire: Wire) -> Phase:
    return wire.reader.match.phase


def test_what_is_played_while_the_server_is_set_up_does_not_count() -> None:
    wire = Wire()
    wire.reader.configure(is_done=False)
    wire.go_live()
    assert (phase_of(wire), len(wire.reader.match.presence.connected)) == (Phase.STARTING, 4)
    wire.reader.configure(is_done=True)
    old_game = (
        f'MatchStatus: Score: 3:1 on map "{MAP}" RoundsPlayed: 4',
        f"Game Over: competitive  {MAP} score 3:1 after 5 min",
    )
    wire.post(*old_game)
    assert phase_of(wire) is Phase.STARTING
    wire.go_live()
    assert phase_of(wire) is Phase.LIVE
    assert wire.reader.match.current_map.team1_score == 0


def test_a_start_that_may_be_among_lost_lines_is_not_waited_for() -> None:
    wire = Wire()
    wire.reader.configure(is_done=False)
    wire.all_join()
    wire.reader.configure(is_done=True)
    wire.post(f'MatchStatus: Score: 1:0 on map "{MAP}" RoundsPlayed: 1', skip=500)
    assert phase_of(wire) is Phase.LIVE


def test_a_set_up_that_is_told_twice_changes_nothing() -> None:
    wire = Wire()
    wire.go_live()
    wire.reader.configure(is_done=True)
    assert wire.reader.interpreter.flow.is_told
