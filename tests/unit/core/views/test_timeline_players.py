"""Items of players who join, leave and write."""

from __future__ import annotations

import msgspec

from cs2_protocol.game import Team
from matchpod.core import events as ev
from matchpod.core.model import MatchType, SeriesFormat
from matchpod.core.views import timeline_items as items
from matchpod.core.views.timeline_items import Person
from tests.unit.core.match_driver import ANN, BEN, CAT, MAPS, open_match
from tests.unit.core.timeline_driver import TimelineDriver, timeline_duel

# --- players ------------------------------------------------------------------------------------------------------


def test_connected_and_disconnected_items_alternate() -> None:
    driver = TimelineDriver(open_match()).connect(ANN).enter(ANN).join_side(ANN).leave(ANN).leave(ANN)
    driver.enter(ANN)
    assert driver.types() == ["player_connected", "player_disconnected", "player_connected"]
    (left,) = driver.of(items.PlayerDisconnectedItem)
    assert (left.player, left.reason) == (Person(steam_id=ANN, name="name of 1", team=None), "gone")


def test_disconnected_item_has_the_latest_name() -> None:
    driver = TimelineDriver(open_match()).join(ANN)
    driver.apply(ev.PlayerRenamed(driver.now_ms, ANN, "Anna"))
    driver.apply(ev.PlayerRenamed(driver.now_ms, BEN, "nobody")).leave(ANN)
    assert driver.of(items.PlayerDisconnectedItem)[0].player.name == "Anna"


def test_map_change_adds_no_disconnected_items() -> None:
    driver = timeline_duel(SeriesFormat.BO3).end_map().change_map(MAPS[1], ANN, BEN).live(MAPS[1])
    assert driver.types(2) == ["map_live"]


def test_player_who_does_not_return_from_a_map_change_is_disconnected_when_the_next_map_is_live() -> None:
    driver = TimelineDriver(msgspec.structs.replace(open_match(MatchType.COMPETITIVE), series_format=SeriesFormat.BO3))
    driver.join(ANN, BEN).live().end_map().change_map(MAPS[1], ANN).live(MAPS[1])
    assert driver.types(2) == ["player_disconnected", "map_live"]
    (left,) = driver.of(items.PlayerDisconnectedItem, 2)
    assert (left.player.steam_id, left.player.name, left.reason) == (BEN, "name of 2", "")


def test_player_who_does_not_return_after_a_crash_is_disconnected_on_restore() -> None:
    driver = timeline_duel().start_round()
    driver.apply(ev.ServerRestarted(driver.now_ms)).join(ANN).restore(0, 0, 0)
    assert driver.types()[4:] == ["player_disconnected", "round_restored"]


def test_leaving_during_play_adds_an_item_even_with_a_map_change_reason() -> None:
    driver = timeline_duel().leave(ANN, is_map_change=True)
    assert driver.types()[3:] == ["player_disconnected"]


def test_leaving_between_maps_adds_an_item_to_the_next_map() -> None:
    driver = timeline_duel(SeriesFormat.BO3).end_map().leave(ANN)
    assert driver.types(2) == ["player_disconnected"]
    assert driver.of(items.PlayerDisconnectedItem, 2)[0].round_number is None


def test_player_in_the_line_up_gets_a_connected_item_if_the_connect_line_was_lost() -> None:
    driver = TimelineDriver(open_match()).join(ANN).live().start_round()
    assert driver.types() == ["player_connected", "map_live", "player_connected", "round_start"]
    assert driver.of(items.PlayerConnectedItem)[1].player == Person(steam_id=BEN, name="", team=Team.TEAM2)


def test_changes_found_by_the_console_add_items() -> None:
    driver = TimelineDriver(open_match()).join(ANN, CAT)
    driver.apply(ev.LogGap(driver.now_ms, 100))
    names = {ANN: "Ann", BEN: "Ben"}
    driver.apply(ev.PlayersSeen(driver.now_ms, names, 30_000))
    assert driver.types() == ["player_connected", "player_connected", "player_connected"]
    assert driver.of(items.PlayerConnectedItem)[2].player.name == "Ben"
    driver.after(31)
    driver.apply(ev.PlayersSeen(driver.now_ms, names, 30_000))
    (left,) = driver.of(items.PlayerDisconnectedItem)
    assert (left.player.steam_id, left.reason) == (CAT, "")


def test_console_list_does_not_disconnect_players_during_a_map_change() -> None:
    driver = TimelineDriver(open_match()).join(ANN).load()
    driver.apply(ev.LogGap(driver.now_ms, 100))
    driver.apply(ev.PlayersSeen(driver.now_ms, {}, 0))
    assert driver.types() == ["player_connected"]


# --- chat and other untrusted text --------------------------------------------------------------------------------


def test_chat_of_bots_adds_no_items() -> None:
    driver = timeline_duel().chat("BOT:Han")
    assert driver.of(items.ChatItem) == []
