"""Define the variables that each game mode sets at a map load, from the game's `gamemode_*.cfg` files.

A real file sets every variable of a mode, so that no value of the previous mode remains. For the same reason, all
configs here set the same variables. The values are from the files shipped with the game. Rounds and economy are those
of CS2: 24 rounds in competitive (30 in CS:GO), 16 in wingman, 8 in retakes. A real server logged the competitive values
at a map load.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DEFAULT_MODE = "casual"
"""Mode for combinations of game type and game mode that are not listed."""

ALIASES: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "casual": (0, 0),
        "competitive": (0, 1),
        "wingman": (0, 2),
        "retakes": (0, 5),
        "deathmatch": (1, 2),
        "custom": (3, 0),
    }
)
"""Game type and game mode by alias, as accepted by `game_alias` and `map … gamemode=`."""

_MODES = {pair: alias for alias, pair in ALIASES.items()} | {ALIASES["wingman"]: "scrimcomp2v2"}

# The casual file sets mp_friendlyfire 1 but reduces its damage to nothing. So friendly fire is off here.
_CASUAL = """
bot_quota 10  bot_quota_mode fill  bot_difficulty 1  bot_chatter normal  bot_defer_to_human_goals 0
cash_player_bomb_defused 200  cash_player_bomb_planted 200  cash_player_damage_hostage -30
cash_player_interact_with_hostage 300  cash_player_killed_enemy_default 200  cash_player_killed_enemy_factor 0.5
cash_player_killed_hostage -1000  cash_player_killed_teammate -300  cash_player_rescued_hostage 1000
cash_team_bonus_shorthanded 0  cash_team_elimination_bomb_map 2700  cash_team_elimination_hostage_map_ct 2300
cash_team_elimination_hostage_map_t 2000  cash_team_hostage_alive 0  cash_team_hostage_interaction 500
cash_team_loser_bonus 2400  cash_team_loser_bonus_consecutive_rounds 0  cash_team_planted_bomb_but_defused 200
cash_team_rescued_hostage 0  cash_team_terrorist_win_bomb 2700  cash_team_win_by_defusing_bomb 2700
cash_team_win_by_hostage_rescue 3000  cash_team_win_by_time_running_out_bomb 2700
cash_team_win_by_time_running_out_hostage 2000
ff_damage_reduction_bullets 0  ff_damage_reduction_grenade 0  ff_damage_reduction_grenade_self 0
ff_damage_reduction_other 0
ammo_grenade_limit_flashbang 1  ammo_grenade_limit_total 3
mp_afterroundmoney 0  mp_autokick 1  mp_autoteambalance 1  mp_buy_allow_grenades 1  mp_buy_anywhere 0
mp_buy_during_immunity 0  mp_buytime 45  mp_c4timer 40  mp_ct_default_melee weapon_knife
mp_ct_default_secondary weapon_hkp2000  mp_death_drop_c4 1  mp_death_drop_defuser 1  mp_death_drop_grenade 2
mp_death_drop_gun 1  mp_default_team_winner_no_objective -1  mp_defuser_allocation 2  mp_dm_teammode 0
mp_force_pick_time 15  mp_forcecamera 0  mp_free_armor 2  mp_freezetime 5  mp_friendlyfire 0  mp_halftime 0
mp_halftime_duration 15  mp_halftime_pausetimer 0  mp_ignore_round_win_conditions 0  mp_limitteams 2
mp_match_can_clinch 1  mp_maxmoney 10000  mp_maxrounds 15  mp_overtime_enable 0  mp_overtime_maxrounds 6
mp_overtime_startmoney 10000  mp_playercashawards 1  mp_randomspawn 0  mp_randomspawn_los 0
mp_respawn_immunitytime 0  mp_respawn_on_death_ct 0  mp_respawn_on_death_t 0  mp_round_restart_delay 10
mp_roundtime 3  mp_roundtime_defuse 2.25  mp_roundtime_hostage 2  mp_solid_teammates 2  mp_starting_losses 0
mp_startmoney 1000  mp_t_default_melee weapon_knife  mp_t_default_secondary weapon_glock  mp_teamcashawards 1
mp_teammates_are_enemies 0  mp_timelimit 0  mp_warmup_pausetimer 0  mp_warmuptime 90
mp_warmuptime_all_players_connected 0  mp_weapons_allow_map_placed 1  mp_weapons_allow_typecount 2
mp_weapons_allow_zeus 2  mp_win_panel_display_time 3
spec_freeze_time 3  sv_allow_votes 1  sv_auto_full_alltalk_during_warmup_half_end 1  sv_deadtalk 0
sv_ignoregrenaderadio 0  sv_infinite_ammo 0  sv_talk_enemy_dead 1  sv_talk_enemy_living 0  tv_delay 30
"""

# Values that a real server logged at the load of a competitive map, such as mp_friendlyfire 1 and mp_roundtime 1.92.
_COMPETITIVE = """
bot_difficulty 2  bot_defer_to_human_goals 1
cash_player_bomb_defused 300  cash_player_bomb_planted 300  cash_player_killed_enemy_default 300
cash_player_killed_enemy_factor 1  cash_team_bonus_shorthanded 1000  cash_team_elimination_bomb_map 3250
cash_team_elimination_hostage_map_ct 3000  cash_team_elimination_hostage_map_t 3000
cash_team_hostage_interaction 600  cash_team_loser_bonus 1400  cash_team_loser_bonus_consecutive_rounds 500
cash_team_planted_bomb_but_defused 600  cash_team_rescued_hostage 600  cash_team_terrorist_win_bomb 3500
cash_team_win_by_defusing_bomb 3500  cash_team_win_by_hostage_rescue 2900
cash_team_win_by_time_running_out_bomb 3250  cash_team_win_by_time_running_out_hostage 3250
ff_damage_reduction_bullets 0.33  ff_damage_reduction_grenade 0.85  ff_damage_reduction_grenade_self 1
ff_damage_reduction_other 0.4
ammo_grenade_limit_flashbang 2  ammo_grenade_limit_total 4
mp_buytime 20  mp_defuser_allocation 0  mp_forcecamera 1  mp_free_armor 0  mp_freezetime 15  mp_friendlyfire 1
mp_halftime 1  mp_maxmoney 16000  mp_maxrounds 24  mp_round_restart_delay 7  mp_roundtime 1.92
mp_roundtime_defuse 1.92  mp_roundtime_hostage 1.92  mp_solid_teammates 1  mp_starting_losses 1  mp_startmoney 800
mp_warmuptime 300  mp_warmuptime_all_players_connected 60  mp_weapons_allow_typecount 5  mp_weapons_allow_zeus 5
sv_auto_full_alltalk_during_warmup_half_end 0  sv_deadtalk 1  sv_talk_enemy_dead 0  tv_delay 105
"""

_WINGMAN = """
bot_quota 4  cash_team_bonus_shorthanded 0  cash_team_elimination_bomb_map 2750
cash_team_elimination_hostage_map_ct 2500  cash_team_elimination_hostage_map_t 2500  cash_team_loser_bonus 2000
cash_team_loser_bonus_consecutive_rounds 300  cash_team_terrorist_win_bomb 3000
cash_team_win_by_defusing_bomb 3000  cash_team_win_by_time_running_out_bomb 2750
cash_team_win_by_time_running_out_hostage 2750
mp_freezetime 10  mp_maxmoney 8000  mp_maxrounds 16  mp_respawn_immunitytime -1  mp_roundtime 1.5
mp_roundtime_defuse 1.5  mp_roundtime_hostage 1.5  mp_starting_losses 0  tv_delay 60
"""

_RETAKES = """
ammo_grenade_limit_flashbang 2  mp_buy_anywhere 1  mp_death_drop_c4 0  mp_forcecamera 1  mp_free_armor 0
mp_freezetime 7  mp_maxmoney 0  mp_maxrounds 8  mp_playercashawards 0  mp_round_restart_delay 5  mp_teamcashawards 0
mp_warmuptime_all_players_connected 6  mp_weapons_allow_zeus 1  sv_auto_full_alltalk_during_warmup_half_end 0
sv_deadtalk 1  sv_talk_enemy_dead 0
"""

_NO_MONEY = """
cash_player_bomb_defused 0  cash_player_bomb_planted 0  cash_player_damage_hostage 0
cash_player_interact_with_hostage 0  cash_player_killed_enemy_default 0  cash_player_killed_enemy_factor 0
cash_player_killed_hostage 0  cash_player_killed_teammate 0  cash_player_rescued_hostage 0
cash_team_elimination_bomb_map 0  cash_team_elimination_hostage_map_ct 0  cash_team_elimination_hostage_map_t 0
cash_team_hostage_interaction 0  cash_team_loser_bonus 0  cash_team_planted_bomb_but_defused 0
cash_team_terrorist_win_bomb 0  cash_team_win_by_defusing_bomb 0  cash_team_win_by_hostage_rescue 0
cash_team_win_by_time_running_out_bomb 0  cash_team_win_by_time_running_out_hostage 0
mp_maxmoney 0  mp_playercashawards 0  mp_startmoney 0  mp_teamcashawards 0
"""

_DEATHMATCH = """
bot_chatter off  bot_difficulty 2  mp_buy_allow_grenades 0  mp_buy_anywhere 1  mp_buy_during_immunity 1  mp_buytime 0
mp_death_drop_c4 0  mp_death_drop_defuser 0  mp_death_drop_grenade 0  mp_death_drop_gun 0  mp_defuser_allocation 0
mp_free_armor 2  mp_freezetime 0  mp_match_can_clinch 0  mp_maxrounds 0  mp_randomspawn 1  mp_randomspawn_los 1
mp_respawn_immunitytime 10  mp_respawn_on_death_ct 1  mp_respawn_on_death_t 1  mp_roundtime 10
mp_roundtime_defuse 0  mp_roundtime_hostage 0  mp_solid_teammates 0  mp_timelimit 10  mp_warmuptime 20
mp_weapons_allow_map_placed 0  mp_weapons_allow_typecount -1  mp_weapons_allow_zeus 1  mp_win_panel_display_time 6
spec_freeze_time 2  sv_deadtalk 1  sv_ignoregrenaderadio 1  sv_infinite_ammo 2  sv_talk_enemy_living 1
"""

_CUSTOM = """
bot_chatter off  bot_difficulty 2  ff_damage_reduction_bullets 0.1  ff_damage_reduction_grenade 0.4
ff_damage_reduction_other 0.4  mp_buytime 0  mp_death_drop_defuser 0  mp_death_drop_grenade 0  mp_death_drop_gun 0
mp_defuser_allocation 0  mp_free_armor 1  mp_freezetime 0  mp_friendlyfire 1  mp_match_can_clinch 0  mp_maxrounds 0
mp_randomspawn 1  mp_randomspawn_los 1  mp_respawn_immunitytime 6  mp_round_restart_delay 7  mp_roundtime 10
mp_roundtime_defuse 0  mp_roundtime_hostage 0  mp_solid_teammates 0  mp_timelimit 10  mp_warmuptime 20
mp_weapons_allow_zeus 1  spec_freeze_time 2  sv_deadtalk 1  sv_ignoregrenaderadio 1  sv_infinite_ammo 2
sv_talk_enemy_living 1
"""


def mode_of(game_type: int, game_mode: int) -> str:
    """Return the name of a game mode, as printed in the `Game Over` line."""
    return _MODES.get((game_type, game_mode), DEFAULT_MODE)


def _config(*parts: str) -> Mapping[str, str]:
    """Parse strings of name-value pairs into a config. Later strings override earlier ones."""
    words = " ".join(parts).split()
    return MappingProxyType(dict(zip(words[::2], words[1::2], strict=True)))


MODE_CONFIGS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "casual": _config(_CASUAL),
        "competitive": _config(_CASUAL, _COMPETITIVE),
        "scrimcomp2v2": _config(_CASUAL, _COMPETITIVE, _WINGMAN),
        # The game runs gamemode_casual first, then gamemode_retakecasual.
        "retakes": _config(_CASUAL, _RETAKES),
        "deathmatch": _config(_CASUAL, _NO_MONEY, _DEATHMATCH),
        "custom": _config(_CASUAL, _NO_MONEY, _CUSTOM),
    }
)
"""Config of each mode by name."""
