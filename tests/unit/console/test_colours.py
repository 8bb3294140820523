"""The colours of the console: blue is CT, orange is T, teams are neutral, and all can be read."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterator
from importlib import resources

import pytest

SHEETS = {
    name: (resources.files("matchpod.console") / "assets" / name).read_text(encoding="utf-8")
    for name in ("console.css", "wall.css", "charts.css")
}
BLUE, ORANGE = (200, 225), (15, 38)
"""Hues in degrees."""
MAX_NEUTRAL = 0.15
"""Difference between the strongest and the weakest channel of a grey."""
TEXT, GRAPHIC = 4.5, 3.0
"""The contrast that WCAG 2.2 AA demands."""
SIDE_COLOUR = re.compile(r"var\(--(?:ct|t)(?:-ground)?\)")
TEAM_COLOUR = re.compile(r"var\(--team[12]\)")


def palettes() -> dict[str, dict[str, str]]:
    """Return the variables of the light and the dark page, and of the overlay, which is dark."""
    blocks = [dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{3,6});", block)) for block in bodies("--team1:")]
    light, dark, overlay = blocks
    return {"light": light, "dark": {**light, **dark}, "overlay": {**light, **dark, **overlay}}


def bodies(part: str) -> list[str]:
    """Return the bodies of the rules of the main sheet that contain a text."""
    return [body for _, body in rules(SHEETS["console.css"]) if part in body]


def rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Return all rules as selector and body."""
    plain = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    for selector, body in re.findall(r"([^{}]+)\{([^{}]*)\}", plain):
        yield selector.strip(), body


def channels(colour: str) -> tuple[float, float, float]:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    red, green, blue = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    return red, green, blue


def hue(colour: str) -> float:
    return 360 * colorsys.rgb_to_hls(*channels(colour))[0]


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels(colour)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", ["light", "dark", "overlay"])
def test_sides_are_blue_and_orange_and_teams_are_neutral(name: str) -> None:
    colours = palettes()[name]
    for variable, (least, most) in (("ct", BLUE), ("ct-ground", BLUE), ("t", ORANGE), ("t-ground", ORANGE)):
        assert least <= hue(colours[variable]) <= most, variable
    for variable in ("team1", "team2"):
        values = channels(colours[variable])
        assert max(values) - min(values) <= MAX_NEUTRAL, variable


@pytest.mark.parametrize("name", ["light", "dark", "overlay"])
def test_sides_and_teams_can_be_read(name: str) -> None:
    colours = palettes()[name]
    for side in ("ct", "t"):
        assert contrast(colours[side], colours[f"{side}-ground"]) >= TEXT
        assert contrast(colours[side], colours["surface"]) >= TEXT  # a won round: surface on the colour of its side
    assert contrast(colours["team1"], colours["surface"]) >= TEXT  # the letter in the mark of a team
    for ground in ("surface", "ground"):
        assert contrast(colours["team2"], colours[ground]) >= GRAPHIC


@pytest.mark.parametrize("sheet", SHEETS.values(), ids=SHEETS)
def test_colours_of_sides_are_used_for_sides_only(sheet: str) -> None:
    for selector, body in rules(sheet):
        if SIDE_COLOUR.search(body):
            assert re.search(r"\.(?:ct|t)$", selector), selector
        if TEAM_COLOUR.search(body):
            assert re.search(r"\.team[12]\b|\.mark\b", selector), selector


def test_teams_differ_by_more_than_a_colour() -> None:
    marks = {selector: body for selector, body in rules(SHEETS["console.css"]) if selector.startswith(".mark.")}
    assert "background" in marks[".mark.team1"]
    assert "background" not in marks[".mark.team2"]
    bars = {selector: body for selector, body in rules(SHEETS["charts.css"]) if ".bar.team" in selector}
    assert "stroke" not in bars[".drawing .bar.team1"]
    assert "stroke" in bars[".drawing .bar.team2"]


def test_charts_use_colours_of_the_main_sheet_and_load_nothing() -> None:
    variables = {"ink", "muted", "line", "surface", "team1", "team2", "ct", "t", "good", "bad", "accent"}
    assert set(re.findall(r"var\(--([a-z0-9]+)\)", SHEETS["charts.css"])) <= variables
    assert not re.search(r"#[0-9a-f]{3,8}\b|\brgba?\(|\bhsla?\(|url\(|@import", SHEETS["charts.css"])
