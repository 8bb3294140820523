"""Build the log lines of a map load, from `Loading map` to `Started`, all in one tick.

A load lists the current variables, with passwords in clear text. Then it runs the config of the game mode: each of its
variables that was listed is reset to the game's default, and then set to the mode's value. Each change is logged as a
line.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from cs2_protocol.log_lines.reader import Line
from cs2_protocol.log_lines.world_lines import CvarChanged, CvarListed, CvarsListed, LoadingMap, MapStarted
from cs2_simulator.mode_configs import MODE_CONFIGS
from cs2_simulator.play.arena import Arena
from cs2_simulator.scenarios import Scenario
from cs2_simulator.variables import Variables

SLOW_LOAD_MS = 90_000

WRONG_MAP = "de_dust2"
OTHER_WRONG_MAP = "de_mirage"
"""Map that the scenario `wrong_map` loads if the map `WRONG_MAP` was requested."""

WORKSHOP_NAMES = MappingProxyType({"125444404": "cs_office", "3070284539": "de_train", "3121217565": "de_thera"})
"""Names of some workshop maps by id, for the log lines of a map load."""

UNKNOWN_WORKSHOP_NAME = "de_workshop"

_LISTED = """
tv_enable_dynamic=false tv_enable=false tv_enable1=false sv_cheats=false sv_debug_overlays_broadcast=false
sv_voiceenable=true sv_password= sv_tags= sv_steamgroup= tv_password= tv_password1= tv_advertise_watchable=false
tv_relaypassword= sv_alltalk=false sv_stopspeed=80.000000 sv_noclipaccelerate=5.000000 sv_noclipspeed=1200.000000
sv_noclipfriction=4.000000 sv_specaccelerate=5.000000 sv_specspeed=1200.000000 sv_specnoclip=true
sv_maxspeed=320.000000 sv_accelerate=5.500000 sv_airaccelerate=12.000000 sv_wateraccelerate=10.000000
sv_waterfriction=1.000000 sv_footsteps=1.000000 sv_rollspeed=200.000000 sv_rollangle=0.000000 sv_friction=5.200000
sv_bounce=0.000000 sv_stepsize=18.000000 sv_mover_maxslope=0.700000 sv_allchat=true buddha=false
buddha_ignore_bots=false buddha_reset_hp=1 mp_teamplay=false mp_forcerespawn=true decalfrequency=10.000000
mp_friendlyfire=false mp_fadetoblack=false mp_weaponstay=false sv_autobuyammo=false mp_promoted_item_enabled=false
sv_accelerate_use_weapon_speed=true sv_accelerate_debug_speed=false cash_team_terrorist_win_bomb=3500
cash_team_elimination_hostage_map_t=1000 cash_team_elimination_hostage_map_ct=2000
cash_team_elimination_bomb_map=3250 cash_team_win_by_time_running_out_hostage=3250
cash_team_win_by_time_running_out_bomb=3250 cash_team_win_by_defusing_bomb=3250 cash_team_win_by_hostage_rescue=3500
cash_team_loser_bonus=1400 cash_team_loser_bonus_consecutive_rounds=500 cash_team_winner_bonus_consecutive_rounds=0
cash_team_rescued_hostage=0 cash_team_hostage_alive=0 cash_team_planted_bomb_but_defused=600
cash_team_hostage_interaction=500 cash_team_bonus_shorthanded=0 cash_player_killed_teammate=-300
cash_player_killed_enemy_factor=1.000000 cash_player_killed_enemy_default=300 cash_player_bomb_planted=300
cash_player_bomb_defused=300 cash_player_rescued_hostage=1000 cash_player_interact_with_hostage=150
cash_player_damage_hostage=-30 cash_player_killed_hostage=-1000 cash_player_respawn_amount=0
cash_player_get_killed=0 cash_team_per_dead_enemy=0 sv_competitive_minspec=true mp_teammates_are_enemies=false
mp_buy_anywhere=0 mp_buy_during_immunity=0 sv_kick_ban_duration=15.000000 sv_deadtalk=false sv_spec_hear=1
mp_c4timer=40 mp_roundtime=5.000000 mp_roundtime_hostage=0.000000 mp_roundtime_defuse=0.000000
mp_team_intro_time=6.500000 mp_freezetime=6 mp_limitteams=2 mp_tournament=false mp_timelimit=0.000000
mp_fraglimit=0 nextmode= nextlevel= sv_teamid_overhead_always_prohibit=false sv_show_team_equipment_prohibit=false
sv_teamid_overhead=true mp_autoteambalance=true mp_maxrounds=0 mp_winlimit=0 sv_gravity=800.000000
sv_vote_issue_kick_allowed=true sv_vote_kick_ban_duration=15.000000 sv_vote_issue_loadbackup_allowed=true
sv_vote_issue_loadbackup_spec_only=false sv_vote_issue_pause_match_spec_only=false
metamod_version=2.0.0-dev+1406
"""

LISTED = MappingProxyType({name: value for name, _, value in (pair.partition("=") for pair in _LISTED.split())})
"""The variables that a map load lists, in the order of a real server. Variables that are not simulated have their value
here."""


def load_ms(arena: Arena) -> int:
    if arena.scenario is Scenario.SLOW_MAP_LOAD:
        return SLOW_LOAD_MS
    return int(arena.variables.number("sim_map_load") * 1000)


def map_to_load(requested: str, scenario: Scenario) -> str:
    """Return the map that is actually loaded, as named in the log. A workshop map is requested by its id."""
    if scenario is Scenario.WRONG_MAP:
        return OTHER_WRONG_MAP if requested == WRONG_MAP else WRONG_MAP
    if requested.isascii() and requested.isdigit():
        return f"workshop/{requested}/{WORKSHOP_NAMES.get(requested, UNKNOWN_WORKSHOP_NAME)}"
    return requested


def is_hostage_map(map_name: str) -> bool:
    return map_name.rpartition("/")[2].startswith("cs_")


def run_load(variables: Variables, map_name: str) -> Iterator[Line]:
    """Apply the config of the game mode, and yield the log lines of the map load up to `Started`."""
    before = {name: variables.text(name) or value for name, value in LISTED.items()}
    variables.load_mode()
    yield LoadingMap(map_name)
    yield CvarsListed(is_start=True)
    for name, value in before.items():
        yield CvarListed(name, value)
    yield CvarsListed(is_start=False)
    defaults = Variables()
    mode_names = [name for name in LISTED if name in MODE_CONFIGS[variables.mode_name]]
    for name in mode_names:
        if before[name] != defaults.text(name):
            yield CvarChanged(name, defaults.text(name))
    for name in mode_names:
        if variables.text(name) != defaults.text(name):
            yield CvarChanged(name, variables.text(name))
    yield MapStarted()
