"""Team names for the match plugin are safe in file names, and still identify the teams."""

from __future__ import annotations

import re

import msgspec
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cs2_protocol.game import Side, Team
from matchpod.core.match.match import Match
from matchpod.core.model import GameSettings, MatchType, StartSides, TeamRoster
from matchpod.core.requests.text_rules import team_name_fault
from matchpod.core.views.result import build_result
from matchpod.cs2.match_commands import matchzy_match
from matchpod.cs2.plugin_names import plain_name, plugin_name, shown_name
from matchpod.cs2.sides import SideTracker

LETTERS = st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"], exclude_characters='";\\%${}`')
NAMES = (
    st.text(LETTERS | st.sampled_from("./-_ 🎯𝐀٣²é日"), min_size=1, max_size=32)
    .map(str.strip)
    .filter(lambda name: not team_name_fault(name))
)
"""Names that callers may use."""


def settings_of(name1: str, name2: str) -> GameSettings:
    return GameSettings(
        match_type=MatchType.COMPETITIVE,
        maps=("de_nuke",),
        team1=TeamRoster(name1, ("76561198000000001",)),
        team2=TeamRoster(name2, ("76561198000000002",)),
    )


def sent_names(settings: GameSettings) -> tuple[str, str]:
    file = msgspec.convert(
        matchzy_match(settings, match_id=1, log_url="http://x", log_header_name="a", log_header_value="b"),
        dict[str, object],
    )
    team1, team2 = (msgspec.convert(file[team], dict[str, object]) for team in ("team1", "team2"))
    return str(team1["name"]), str(team2["name"])


def test_only_what_the_plugin_shows_is_sent() -> None:
    for name, sent in [
        ("Night Owls", "Night Owls"),
        ("../../etc/passwd", "etcpasswd"),
        (".hidden", "hidden"),
        ("a/b", "ab"),
        ("..", "Team 1"),
        ("O'Neill (2)", "ONeill 2"),
        ("日本 🎯", "日本"),
        ("𝐀-team", "-team"),
        ("x٣²", "x"),
    ]:
        assert plugin_name(Team.TEAM1, name) == sent


@given(NAMES, NAMES)
@example("../../x", "/")
@example(".", "..")
@example("a/../b", "C:")
def test_names_that_callers_may_use_are_safe_in_a_file_name_of_the_plugin(name1: str, name2: str) -> None:
    settings = settings_of(name1, name2)
    for sent in sent_names(settings):
        assert re.fullmatch(r"[\w -]{1,32}", sent)
        assert sent == sent.strip()
        assert plain_name(sent) == sent, "the plugin removes nothing more"
    result = msgspec.to_builtins(build_result(Match.create(settings, 0)))
    assert (result["team1"]["name"], result["team2"]["name"]) == (name1, name2)


@given(NAMES, NAMES)
@example("..", "Reds")
@example("?", "!")
def test_teams_are_identified_by_the_names_that_were_sent(name1: str, name2: str) -> None:
    settings = settings_of(name1, name2)
    sent1, sent2 = sent_names(settings)
    assume(sent1 != sent2)
    sides = SideTracker.of(settings)
    for team1_side, shown in ((Side.T, {Side.CT: sent2, Side.T: sent1}), (Side.CT, {Side.CT: sent1, Side.T: sent2})):
        sides.decide_start_side(shown)
        assert sides.team1_side is team1_side


def test_shown_names_are_the_callers_or_defaults_if_sides_are_given() -> None:
    named, unnamed = settings_of("Reds!", "Blues"), GameSettings(match_type=MatchType.WINGMAN, maps=("de_nuke",))
    assert [shown_name(named, team) for team in Team] == ["Reds!", "Blues"]
    assert [shown_name(unnamed, team) for team in Team] == ["", ""]
    with_sides = msgspec.structs.replace(unnamed, sides=(StartSides.TEAM1_T,))
    assert [shown_name(with_sides, team) for team in Team] == ["Team 1", "Team 2"]
