"""Define the commands of MatchZy's config files: warmup.cfg, knife.cfg, live.cfg and live_wingman.cfg.

Only variables that the simulated game uses or a caller may read are included. The files overwrite values that were set
over RCON before. That is why a match file can contain variables, which the plugin sets again a second after live.cfg.
"""

from __future__ import annotations

WARMUP_CFG = """
bot_kick; bot_quota 0; mp_autokick 0; mp_autoteambalance 0; mp_buy_anywhere 0; mp_buytime 15; mp_death_drop_gun 0;
mp_free_armor 0; mp_ignore_round_win_conditions 0; mp_limitteams 0; mp_respawn_on_death_ct 0;
mp_respawn_on_death_t 0; mp_solid_teammates 0; mp_spectators_max 20; mp_maxmoney 16000; mp_startmoney 16000;
mp_timelimit 0; sv_hibernate_when_empty 0; sv_infinite_ammo 0; sv_cheats 0; mp_maxrounds 24
"""
"""warmup.cfg without `mp_warmup_start`. That command is in `WARMUP_HOLD`."""

WARMUP_HOLD = "mp_warmup_start; mp_warmup_pausetimer 1; mp_warmuptime 9999"

KNIFE_CFG = """
mp_free_armor 1; mp_freezetime 10; mp_give_player_c4 0; mp_maxmoney 0; mp_respawn_immunitytime 0;
mp_respawn_on_death_ct 0; mp_respawn_on_death_t 0; mp_roundtime 1.92; mp_roundtime_defuse 1.92;
mp_roundtime_hostage 1.92; mp_round_restart_delay 3; mp_team_intro_time 0
"""

_LIVE_BOTH = """
bot_quota 0; mp_afterroundmoney 0; mp_autokick 0; mp_autoteambalance 0; mp_backup_round_auto 1; mp_buy_anywhere 0;
mp_buytime 20; mp_c4timer 40; mp_death_drop_defuser 1; mp_death_drop_grenade 2; mp_death_drop_gun 1;
mp_defuser_allocation 0; mp_endmatch_votenextmap 0; mp_free_armor 0; mp_friendlyfire 1; mp_give_player_c4 1;
mp_halftime 1; mp_halftime_duration 15; mp_halftime_pausetimer 0; mp_ignore_round_win_conditions 0; mp_limitteams 0;
mp_match_can_clinch 1; mp_overtime_enable 1; mp_overtime_halftime_pausetimer 0; mp_playercashawards 1;
mp_randomspawn 0; mp_respawn_immunitytime 0; mp_respawn_on_death_ct 0; mp_respawn_on_death_t 0;
mp_solid_teammates 1; mp_starting_losses 1; mp_startmoney 800; mp_teamcashawards 1; mp_timelimit 0;
mp_weapons_allow_map_placed 1; mp_weapons_allow_zeus 1; sv_infinite_ammo 0
"""

LIVE_CFG = f"""{_LIVE_BOTH}
mp_backup_restore_load_autopause 1; mp_freezetime 18; mp_match_end_restart 0; mp_maxmoney 16000; mp_maxrounds 24;
mp_overtime_maxrounds 6; mp_overtime_startmoney 10000; mp_round_restart_delay 5; mp_roundtime 1.92;
mp_roundtime_defuse 1.92; mp_roundtime_hostage 1.92; mp_team_timeout_max 3; mp_team_timeout_ot_max 1;
mp_team_timeout_ot_add_each 1; mp_team_timeout_time 30; mp_spectators_max 20; mp_team_intro_time 0
"""

LIVE_WINGMAN_CFG = f"""{_LIVE_BOTH}
mp_backup_restore_load_autopause 0; mp_freezetime 10; mp_match_end_restart 1; mp_maxmoney 8000; mp_maxrounds 16;
mp_overtime_maxrounds 4; mp_overtime_startmoney 8000; mp_round_restart_delay 7; mp_roundtime 1.5;
mp_roundtime_defuse 1.5; mp_roundtime_hostage 1.5
"""
