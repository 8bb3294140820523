"""Test the store of backups."""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_simulator.play.flow.backups import MAX_BACKUPS, Backup, Backups


def backup(rounds_played: int, map_name: str = "de_nuke") -> Backup:
    return Backup(map_name, rounds_played, (rounds_played, 0), Side.CT, {}, {})


def test_files_are_named_by_prefix_and_rounds_played() -> None:
    backups = Backups()
    backups.write("match_7", backup(3))
    assert backups.names() == ["match_7_round03.txt"]


def test_overwritten_file_becomes_the_newest() -> None:
    backups = Backups()
    for rounds in (0, 1):
        backups.write("b", backup(rounds))
    backups.write("b", backup(0, "de_mirage"))
    assert backups.names() == ["b_round00.txt", "b_round01.txt"]
    found = backups.find("b_round00.txt")
    assert found is not None
    assert found.map_name == "de_mirage"


def test_oldest_file_is_dropped_above_the_limit() -> None:
    backups = Backups()
    for rounds in range(MAX_BACKUPS + 1):
        backups.write("b", backup(rounds))
    assert len(backups.names()) == MAX_BACKUPS
    assert backups.find("b_round00.txt") is None
