"""Register the console commands of Metamod and CounterStrikeSharp that list their plugins.

The output of CounterStrikeSharp is copied from its source code, that of Metamod from examples in issue trackers.
"""

from __future__ import annotations

from cs2_simulator.console.console import Console
from cs2_simulator.console.parts import lines
from cs2_simulator.play.arena import Arena
from cs2_simulator.scenarios import Scenario

CSS_VERSION = "v1.0.371 @ 60a7239"
MATCHZY_VERSION = "0.8.15"

_CSS_USAGE = "Valid usage: css_plugins [option]"
_META_USAGE = "usage: meta <command> [arguments]"


def has_metamod(arena: Arena) -> bool:
    return arena.setup_fault is None or arena.setup_fault.has_metamod


def has_css(arena: Arena) -> bool:
    return arena.setup_fault is None or arena.setup_fault.has_css


def has_matchzy(arena: Arena) -> bool:
    """False if a setup fault or the scenario `plugin_missing` prevents MatchZy from being loaded."""
    fault = arena.setup_fault
    return arena.scenario is not Scenario.PLUGIN_MISSING and (fault is None or fault.has_matchzy)


def register_lists(arena: Arena, console: Console) -> None:
    """Register `meta` and `css_plugins`.

    Without Metamod or CounterStrikeSharp, the server does not know their command.
    """

    def meta(arguments: list[str]) -> str:
        if not has_metamod(arena):
            return console.unknown_command("meta")
        if arguments[:1] != ["list"]:
            return lines(_META_USAGE)
        css = f"CounterStrikeSharp ({CSS_VERSION}) by Roflmuffin" if has_css(arena) else "<ERROR>"
        return lines("Listing 1 plugin:", f"  [01] {css}")

    def css_plugins(arguments: list[str]) -> str:
        if not has_css(arena):
            return console.unknown_command("css_plugins")
        if arguments[:1] != ["list"]:
            return lines(_CSS_USAGE)
        count = int(has_matchzy(arena))
        head = f"  List of all plugins currently loaded by CounterStrikeSharp: {count} plugins loaded."
        if not count:
            return lines(head)
        return lines(
            head,
            f'  [#1:LOADED]: "MatchZy" ({MATCHZY_VERSION}) by WD- (https://github.com/shobhit-pathak/)',
            "    A plugin for running and managing CS2 practice/pugs/scrims/matches!",
        )

    console.register("meta", meta)
    console.register("css_plugins", css_plugins)
