"""Matches from a pasted sheet."""

from __future__ import annotations

import pytest

from matchpod.console.match_form import read_body
from matchpod.console.match_sheet import EXAMPLE, KNOWN_COLUMNS, MAX_ROWS, read_sheet, row_keys

ANN, BO = "76561198000000001", "76561198000000002"
COMMON = {"region": "sandbox", "matchType": "competitive", "seriesFormat": "bo1", "map1": "de_mirage"}


def body(sheet: str, row: int = 0) -> dict[str, object]:
    return read_body(read_sheet(sheet, COMMON).rows[row].values)


@pytest.mark.parametrize("separator", ["\t", ";", ","])
def test_sheet_of_any_program_is_read(separator: str) -> None:
    lines = [
        ["Match", "Team 1", "Players 1", "Team 2", "Players 2", "Best of", "Maps", "Label: table"],
        ["m1", "Owls", f"Ann {ANN}", "Foxes", BO, "3", "de_nuke de_train de_inferno", "4"],
    ]
    assert body("\r\n".join(map(separator.join, lines)) + "\r\n\r\n") == {
        "region": "sandbox",
        "gameType": "cs2",
        "externalMatchId": "m1",
        "gameSettings": {
            "matchType": "competitive",
            "seriesFormat": "bo3",
            "map": "de_nuke",
            "maps": ["de_train", "de_inferno"],
            "teams": {"team1": {"name": "Owls", "players": [ANN]}, "team2": {"name": "Foxes", "players": [BO]}},
            "labels": {"table": "4"},
        },
    }


def test_cells_in_quotes_may_have_separators_and_lines() -> None:
    sheet = f'match,team1,players1\n"cup, 1","Owls ""A""","{ANN}\n{BO}"\nm2,Foxes,{BO}\n'
    rows = read_sheet(sheet, COMMON).rows
    assert [(row.number, row.external_id) for row in rows] == [(2, "cup, 1"), (3, "m2")]
    assert rows[0].values["team1Players"].split() == [ANN, BO]
    assert rows[0].values["team1Name"] == 'Owls "A"'


def test_columns_of_the_same_field_are_added_up_and_empty_cells_have_the_common_value() -> None:
    common = {**COMMON, "labels": "event: cup"}
    sheet = read_sheet(f"players1;players1;map;label table\n{ANN};{BO};;7\n;;de_nuke;\n", common)
    first, second = (row.values for row in sheet.rows)
    assert first["team1Players"].split() == [ANN, BO]
    assert (first["map1"], second["map1"]) == ("de_mirage", "de_nuke")
    assert (first["labels"].split("\n"), second["labels"]) == (["event: cup", "table: 7"], "event: cup")


def test_example_and_usual_headings_are_known() -> None:
    assert [row.external_id for row in read_sheet(EXAMPLE, COMMON).rows] == ["cup-r1-m1", "cup-r1-m2"]
    assert read_sheet("\t".join(KNOWN_COLUMNS) + "\n" + "x\t" * (len(KNOWN_COLUMNS) - 1), COMMON).faults == ()


@pytest.mark.parametrize(
    ("sheet", "fault"),
    [
        ("", "Paste a sheet"),
        (" \n\n", "Paste a sheet"),
        ("match\n", "no match below"),
        ("match,plyers1\nx,y", "“plyers1” is not a field of a match. Is it players1?"),
        ("qqqqqqqq\nx", "“qqqqqqqq” is not a field of a match. Usual headings: match, team1"),
        ("match,,map\nx,y,z", "A column has no heading."),
        ("<img src=x>\nx", "“<img src=x>” is not a field"),
        ("match\n" + "x\n" * (MAX_ROWS + 1), f"has {MAX_ROWS + 1} matches. Create at most {MAX_ROWS}"),
    ],
)
def test_sheet_that_cannot_be_read_says_why(sheet: str, fault: str) -> None:
    found = read_sheet(sheet, COMMON)
    assert fault in found.faults[0]
    assert found.rows == ()


def test_row_that_does_not_fit_or_repeats_an_id_is_named() -> None:
    sheet = read_sheet("match,map\nm1,de_nuke\nm2,de_nuke,x\nm1,de_train\n,de_nuke\n,de_nuke", COMMON)
    assert sheet.by_row == {
        3: ["The row has 3 cells, but there are 2 headings."],
        4: ["External id: “m1” is already in row 2."],
    }


def test_keys_depend_on_the_rows_and_not_on_their_places() -> None:
    keys = row_keys("form", [b"a", b"b", b"a"])
    assert len(set(keys)) == 3
    assert row_keys("form", [b"b", b"a", b"a"]) == [keys[1], keys[0], keys[2]]
    assert not set(row_keys("another", [b"a", b"b"])) & set(keys)
    assert all(len(key) < 128 for key in keys)
