"""Define the console variables: name, kind, default and bounds.

The table contains the variables that a match may set, that the service sets or reads, or that a map load lists, and the
simulator's own variables. Defaults and bounds are from the game's published list of variables (2025). Where the list
has none, they are guesses without an effect in the simulator. Entries are `name=default` or `name=default:min:max`; an
empty bound means no bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType


class VariableKind(StrEnum):
    """How a variable parses and prints its value."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    TEXT = "text"
    RAW = "raw"
    """Text of a `sim_` variable, which `sim_settings` validates."""


_LEADING_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,2})?")
_MAX_INT = 2**31 - 1
_MAX_FLOAT = 3.4e38
_BOOLEANS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, slots=True)
class Variable:
    """One console variable. `default` has the format in which the server prints it."""

    name: str
    kind: VariableKind
    default: str
    minimum: float | None = None
    maximum: float | None = None
    is_hidden: bool = False
    """True for a developer-only variable: it is listed at a map load, but the console does not know it."""

    def normalize(self, value: str) -> str:
        """Return a value as the server prints it after it was set: clamped to the bounds, or 0 if not a number."""
        if self.kind is VariableKind.TEXT or self.kind is VariableKind.RAW:
            return value
        number = _number_in(value)
        if self.kind is VariableKind.BOOL:
            return "true" if number else "false"
        if self.minimum is not None:
            number = max(self.minimum, number)
        if self.maximum is not None:
            number = min(self.maximum, number)
        if self.kind is VariableKind.INT:
            return str(int(max(-_MAX_INT - 1, min(_MAX_INT, number))))
        return f"{max(-_MAX_FLOAT, min(_MAX_FLOAT, number)):.6f}"


def _number_in(value: str) -> float:
    boolean = _BOOLEANS.get(value.strip().lower())
    if boolean is not None:
        return boolean
    found = _LEADING_NUMBER.match(value)
    return float(found[0]) if found else 0.0


_ON = """
bot_allow_grenades bot_allow_machine_guns bot_allow_pistols bot_allow_rifles bot_allow_rogues bot_allow_shotguns
bot_allow_snipers bot_allow_sub_machine_guns bot_auto_vacate bot_controllable bot_defer_to_human_items
bot_join_after_player healthshot_allow_use_at_full inferno_ct_experiment mp_autokick mp_autoteambalance
mp_backup_restore_load_autopause mp_backup_round_auto mp_buy_allow_grenades mp_death_drop_c4 mp_death_drop_defuser
mp_death_drop_healthshot mp_death_drop_taser mp_deathcam_skippable mp_disconnect_kills_players mp_display_kill_assists
mp_dogtag_despawn_on_killer_death mp_drop_grenade_enable mp_endmatch_votenextmap mp_endmatch_votenextmap_keepcurrent
mp_footsteps_serverside mp_give_player_c4 mp_hostages_spawn_same_every_round mp_match_can_clinch
mp_only_cts_rescue_hostages mp_playercashawards mp_randomspawn_los mp_shorthanded_cash_bonus_ignore_kicked
mp_suicide_penalty mp_teamcashawards mp_warmup_online_enabled sv_accelerate_use_weapon_speed sv_allchat sv_allow_votes
sv_auto_adjust_bot_difficulty sv_auto_full_alltalk_during_warmup_half_end sv_competitive_minspec
sv_damage_prediction_allowed sv_health_approach_enabled sv_hibernate_when_empty sv_jump_precision_enable
sv_lagcompensationforcerestore sv_limit_buyrandom_per_life sv_log_roundstats sv_logecho sv_matchend_drops_enabled
sv_phys_enabled sv_phys_sleep_enable sv_phys_sound_disable_impact_sounds_under_hard_threshold
sv_playerradio_use_allowlist sv_pure_kick_clients sv_quantize_movement_input sv_server_verify_blood_on_player
sv_specnoclip sv_subtick_movement_view_angles sv_teamid_overhead sv_use_playercache sv_voiceenable
sv_vote_issue_kick_allowed sv_vote_issue_loadbackup_allowed tv_delaymapchange tv_relayvoice tv_show_allchat
weapon_accuracy_shotgun_spread_patterns weapon_near_empty_sound weapon_reticle_knife_show
"""

_OFF = """
bot_auto_follow bot_crouch bot_defer_to_human_goals bot_dont_shoot bot_flipout bot_freeze bot_ignore_enemies
bot_ignore_players bot_randombuy bot_show_battlefront bot_show_nav bot_show_occupy_time bot_walk bot_zombie buddha
buddha_ignore_bots ff_damage_decoy_explosion inferno_debug mp_anyone_can_pickup_c4 mp_c4_cannot_be_defused
mp_damage_headshot_only mp_disconnect_kills_bots mp_drop_knife_enable mp_friendlyfire mp_halftime
mp_hostages_spawn_farthest mp_hostages_takedamage mp_ignore_round_win_conditions mp_logdetail_items mp_logmoney
mp_match_end_changelevel mp_match_end_restart mp_overtime_enable mp_plant_c4_anywhere mp_promoted_item_enabled
mp_require_gun_use_to_acquire mp_respawn_on_death_ct mp_respawn_on_death_t mp_solid_enemies mp_teammates_are_enemies
mp_warmup_items_nocost mp_warmup_offline_enabled mp_weapons_allow_map_placed rcon_connected_clients_allow
spec_replay_bot sv_accelerate_debug_speed sv_alltalk sv_autobunnyhopping sv_autobuyammo sv_autoexec_mapname_cfg
sv_buymenu_open_prevents_opportunistic_pickup sv_cheats sv_coaching_enabled sv_deadtalk sv_debug_overlays_broadcast
sv_disable_immunity_alpha sv_disable_observer_interpolation sv_disable_teamselect_menu sv_enablebunnyhopping
sv_extract_ammo_from_dropped_weapons sv_fade_player_visibility_farz sv_full_alltalk sv_gameinstructor_disable
sv_grenade_trajectory_prac_pipreview sv_ignoregrenaderadio sv_invites_only_mainmenu sv_lan sv_legacy_jump
sv_lightquery_debug sv_load_forced_client_names_file sv_log_http_record_before_any_listeners sv_log_onefile sv_logbans
sv_logblocks sv_logfile sv_logflush sv_matchpause_auto_5v5 sv_noclipduringpause sv_outofammo_indicator sv_party_mode
sv_phys_debug_callback_entities sv_prime_accounts_only sv_pvs_shadows_include_env sv_ragdoll_lru_debug
sv_record_item_time_data sv_regeneration_force_on sv_reliableavatardata sv_show_move_collisions
sv_show_team_equipment_force_on sv_show_team_equipment_prohibit sv_show_teammate_death_notification
sv_show_voip_indicator_for_enemies sv_spec_use_tournament_content_standards sv_steamgroup_exclusive
sv_strafing_inaccuracy_enabled sv_surf_sounds sv_talk_enemy_dead sv_talk_enemy_living
sv_teamid_overhead_always_prohibit sv_turning_inaccuracy_enabled sv_usercmd_custom_random_seed sv_vote_allow_in_warmup
sv_vote_allow_spectators sv_vote_count_spectator_votes sv_vote_disallow_kick_on_match_point
sv_vote_issue_loadbackup_spec_only sv_vote_issue_pause_match_spec_only sv_vote_issue_restart_game_allowed
tv_advertise_watchable tv_autorecord tv_broadcast tv_enable tv_enable1 tv_enable_dynamic weapon_accuracy_nospread
weapon_accuracy_reset_on_deploy
"""

_INTS = """
ammo_338mag_max=30 ammo_357sig_max=52 ammo_357sig_min_max=12 ammo_357sig_p250_max=26 ammo_357sig_small_max=24
ammo_45acp_max=100 ammo_50AE_max=35 ammo_556mm_box_max=200 ammo_556mm_max=90 ammo_556mm_small_max=40 ammo_57mm_max=100
ammo_762mm_max=90 ammo_9mm_max=120 ammo_buckshot_max=32 ammo_grenade_limit_default=1 ammo_grenade_limit_flashbang=1
ammo_grenade_limit_total=3 ammo_item_limit_adrenaline=5 ammo_item_limit_healthshot=4 bot_debug=0 bot_debug_target=0
bot_difficulty=1 bot_mimic=0 bot_quota=10 bot_traceview=0 buddha_reset_hp=1 cash_player_bomb_defused=300
cash_player_bomb_planted=300 cash_player_damage_hostage=-30 cash_player_get_killed=0
cash_player_interact_with_hostage=150 cash_player_killed_enemy_default=300 cash_player_killed_hostage=-1000
cash_player_killed_teammate=-300 cash_player_rescued_hostage=1000 cash_player_respawn_amount=0
cash_team_bonus_shorthanded=0 cash_team_elimination_bomb_map=3250 cash_team_elimination_hostage_map_ct=2000
cash_team_elimination_hostage_map_t=1000 cash_team_hostage_alive=0 cash_team_hostage_interaction=500
cash_team_loser_bonus=1400 cash_team_loser_bonus_consecutive_rounds=500 cash_team_per_dead_enemy=50
cash_team_planted_bomb_but_defused=600 cash_team_rescued_hostage=0 cash_team_terrorist_win_bomb=3500
cash_team_win_by_defusing_bomb=3250 cash_team_win_by_hostage_rescue=3500 cash_team_win_by_time_running_out_bomb=3250
cash_team_win_by_time_running_out_hostage=3250 cash_team_winner_bonus_consecutive_rounds=0 game_mode=1 game_type=0
healthshot_health=50 hostport=27015 inferno_child_spawn_max_depth=4 inferno_damage=40 inferno_damage_ct=40
inferno_max_flames=16 mp_afterroundmoney=0 mp_buy_allow_guns=255:0:255 mp_buy_anywhere=0 mp_buy_during_immunity=0
mp_c4timer=40:10: mp_consecutive_loss_aversion=1:0: mp_consecutive_loss_max=4:0: mp_coopmission_bot_difficulty_offset=0
mp_death_drop_grenade=2:0:2 mp_death_drop_gun=1:0:2 mp_default_team_winner_no_objective=-1 mp_defuser_allocation=0:0:2
mp_dm_bonus_length_max=30 mp_dm_bonus_length_min=30 mp_dm_bonus_percent=50:0: mp_dm_bonusweapon_dogtags=0
mp_dm_dogtag_score=0:0: mp_dm_healthshot_killcount=3 mp_dm_kill_base_score=10:0: mp_dm_taser_bonus_streak_max=0
mp_dm_teammode=0 mp_dm_teammode_bonus_score=1 mp_dm_teammode_dogtag_score=0 mp_dm_teammode_kill_score=1
mp_dm_time_between_bonus_max=40 mp_dm_time_between_bonus_min=30 mp_dogtag_despawn_time=120:0: mp_dogtag_pickup_rule=0
mp_economy_reset_rounds=0 mp_endmatch_votenextmap_wargames_nummaps=3 mp_endmatch_votenextmap_wargames_nummodes=1
mp_endwarmup_player_count=0 mp_equipment_reset_rounds=0 mp_forcecamera=0 mp_fraglimit=0 mp_free_armor=0
mp_freezetime=6:0:60 mp_guardian_target_site=-1 mp_halftime_pausematch=0 mp_halftime_pausetimer=0 mp_hostages_max=2
mp_limitteams=2:0:30 mp_logdetail=0:0:3 mp_match_restart_delay=25:1:9999 mp_max_armor=2 mp_maxmoney=16000:0:
mp_maxrounds=0:0: mp_overtime_halftime_pausetimer=0 mp_overtime_limit=0 mp_overtime_maxrounds=6
mp_overtime_startmoney=10000 mp_playerid=0:0:2 mp_randomspawn=0 mp_randomspawn_dist=0 mp_restartgame=0
mp_retake_ct_count=4 mp_retake_max_consecutive_rounds_same_target_site=2 mp_retake_t_count=3
mp_shorthanded_cash_bonus_round_delay=2 mp_solid_teammates=1 mp_spectators_max=2:0: mp_starting_losses=0:0:
mp_startmoney=800:0: mp_td_dmgtokick=300 mp_td_dmgtowarn=200 mp_td_spawndmgthreshold=50 mp_team_timeout_max=1
mp_team_timeout_ot_add_each=0 mp_team_timeout_ot_add_once=0 mp_team_timeout_ot_max=1 mp_team_timeout_time=60
mp_teamprediction_pct=0 mp_teamscore_1=0 mp_teamscore_2=0 mp_teamscore_max=0:0:7 mp_technical_timeout_duration_s=0
mp_technical_timeout_per_team=0 mp_tkpunish=0 mp_use_respawn_waves=0 mp_warmup_items_drop_policy=247
mp_warmup_items_nocount_policy=42 mp_warmup_pausetimer=0 mp_weapons_allow_heavy=-1 mp_weapons_allow_pistols=-1
mp_weapons_allow_rifles=-1 mp_weapons_allow_smgs=-1 mp_weapons_allow_typecount=5 mp_weapons_allow_zeus=1
mp_weapons_max_gun_purchases_per_weapon_per_match=-1:-1:1 spec_replay_enable=0 sv_allow_annotations_access_level=0
sv_auto_cstrafe_attempt_window=1:1:1000 sv_auto_cstrafe_logging=0:0:2 sv_auto_cstrafe_min_attempts=1:1:1000
sv_auto_cstrafe_sequence_length=1:1:1000 sv_auto_cstrafe_success_threshold=1:1:1000 sv_bots_get_easier_each_win=0
sv_buy_status_override=-1 sv_clockcorrection_msecs=30 sv_cq_trim_bloat_remainder=1 sv_cq_trim_bloat_space=0
sv_cq_trim_catchup_remainder=1 sv_disable_radar=0 sv_dz_cash_bundle_size=50 sv_dz_cash_mega_bundle_size=13
sv_dz_contractkill_reward=10 sv_dz_hostage_rescue_reward=18 sv_dz_squad_wipe_reward=2 sv_ent_showonlyhitbox=-1
sv_game_mode_flags=0 sv_guardian_spawn_health_ct=100 sv_guardian_spawn_health_t=100 sv_hibernate_postgame_delay=5
sv_human_autojoin_team=0 sv_infinite_ammo=0 sv_kick_players_with_cooldown=1 sv_late_commands_allowed=5
sv_max_deathmatch_respawns_per_tick=0 sv_max_queries_sec=3 sv_maxrate=0:0:1000000 sv_minimum_desired_chicken_count=0
sv_minrate=5000:0:1000000 sv_parallel_checktransmit=0 sv_pausable=0 sv_predictable_damage_tag_ticks=2 sv_region=-1
sv_showbullethits=0 sv_showhitregistration=0 sv_showimpacts=0 sv_showimpacts_penetration=0 sv_skirmish_id=0
sv_spec_hear=1 sv_steamauth_enforce=2 sv_versus_screen_scene_id=0 sv_visiblemaxplayers=-1 sv_watchtransmit=-2
sv_weapon_swap_difficulty_near_hi_pri=2 tv_delay=120:0:960 tv_delay1=15:0:960 tv_maxclients=128:0:255 tv_port=27020
weapon_max_before_cleanup=0
"""

_FLOATS = """
bot_autodifficulty_threshold_high=5:-20:20 bot_autodifficulty_threshold_low=-2:-20:20
bot_coop_idle_max_vision_distance=1400:-1: bot_eco_limit=2000 bot_max_visible_smoke_length=200
bot_max_vision_distance_override=-1:-1: bot_mimic_yaw_offset=180 cash_player_killed_enemy_factor=1
ff_damage_bullet_penetration=0:0:1 ff_damage_reduction_bullets=0.1 ff_damage_reduction_grenade=0.25
ff_damage_reduction_grenade_self=1 ff_damage_reduction_other=0.25 healthshot_healthboost_damage_multiplier=1
healthshot_healthboost_speed_multiplier=1 healthshot_healthboost_time=1 inferno_child_spawn_interval_multiplier=0.1
inferno_flame_lifetime=7 inferno_flame_lifetime_incendiary=5.5 inferno_flame_spacing=42
inferno_forward_reduction_factor=0.9 inferno_friendly_fire_duration=6 inferno_initial_spawn_interval=0.02
inferno_max_child_spawn_interval=0.5 inferno_max_range=150 inferno_max_range_ct=110 inferno_per_flame_spawn_duration=3
inferno_smoke_volume_density=0.03 inferno_spawn_angle=45 inferno_spread_speed_mult=1 inferno_spread_speed_mult_ct=10
inferno_surface_offset=15 inferno_velocity_decay_factor=0.2 inferno_velocity_factor=0.003
inferno_velocity_factor_ct=0.003 inferno_velocity_normal_factor=0 molotov_throw_detonate_time=2
molotov_usethrow_direction=1 mp_buytime=90:0: mp_competitive_endofmatch_extra_time=15 mp_damage_scale_ct_body=1
mp_damage_scale_ct_head=1 mp_damage_scale_t_body=1 mp_damage_scale_t_head=1 mp_damage_vampiric_amount=0
mp_endmatch_votenextleveltime=20 mp_force_pick_time=15 mp_global_damage_per_second=0:0: mp_halftime_duration=15:0:300
mp_hostages_rescuetime=1 mp_hostages_run_speed_modifier=1:0.1:1.5 mp_join_grace_time=0:0:30
mp_min_halftime_duration=8.5:0:300 mp_playerid_delay=0.4:0:1 mp_playerid_hold=0.1:0:1 mp_respawn_immunitytime=4
mp_respawnwavetime_ct=10 mp_respawnwavetime_t=10 mp_round_restart_delay=7:0: mp_roundtime=5:0.1:60
mp_roundtime_defuse=0:0:60 mp_roundtime_hostage=0:0:60 mp_spawnprotectiontime=5 mp_tagging_scale=1
mp_taser_recharge_time=30 mp_team_intro_time=6.5:0: mp_teammatchstat_cycletime=45 mp_teammatchstat_holdtime=5
mp_timelimit=0 mp_warmuptime=30:5: mp_warmuptime_all_players_connected=0 mp_warmuptime_match_cancelled=5
mp_weapon_next_owner_touch_time=1.3 mp_weapon_prev_owner_touch_time=1.5 mp_weapon_self_inflict_amount=0
mp_win_panel_display_time=3 spec_freeze_deathanim_time=0.8 spec_freeze_time=3 spec_freeze_time_lock=1
spec_freeze_traveltime=0.3 spec_replay_round_delay=0 spec_replay_winddown_time=2 sv_accelerate=5.5
sv_air_max_wishspeed=30 sv_airaccelerate=12 sv_auto_cstrafe_lower_overlap_pct_threshold=0:0:100
sv_auto_cstrafe_upper_overlap_pct_threshold=0:0:100 sv_bhop_time_window=0.015625 sv_bot_buy_decoy_weight=1:0:
sv_bot_buy_flash_weight=1:0: sv_bot_buy_grenade_chance=33:0:100 sv_bot_buy_hegrenade_weight=6:0:
sv_bot_buy_molotov_weight=1:0: sv_bot_buy_smoke_weight=1:0: sv_bounce=0 sv_chat_proximity=-1
sv_cs_player_speed_has_hostage=200 sv_disconnected_player_data_hold_time=60
sv_disconnected_players_cleanup_delay=0:0:300 sv_falldamage_scale=1 sv_falldamage_to_below_player_multiplier=1
sv_falldamage_to_below_player_ratio=0 sv_flashed_amount_for_blind_kill=0.7 sv_friction=5.2 sv_gravity=800
sv_grenade_trajectory_prac_trailtime=0:0:8 sv_grenade_trajectory_time_spectator=0:0:8 sv_health_approach_speed=10
sv_hegrenade_damage_multiplier=1 sv_hegrenade_radius_multiplier=1 sv_hide_roundtime_until_seconds=0
sv_highlight_distance=500 sv_highlight_duration=3.5 sv_jump_impulse=301.993:0: sv_jump_spam_penalty_time=0.015625
sv_kick_ban_duration=15 sv_kill_players_at_coord_min=0 sv_ladder_scale_speed=0.78:0:1 sv_ladder_slack_z_mult=0.026
sv_lagcomp_filterbyviewangle=0 sv_maxspeed=320 sv_maxunlag=1:0:1 sv_maxunlag_player=0.2 sv_maxuptimelimit=0
sv_maxvelocity=3500 sv_min_jump_landing_sound=260 sv_noclipaccelerate=5 sv_noclipfriction=4 sv_noclipspeed=1200
sv_pushaway_hostage_force=20000 sv_pushaway_max_hostage_force=1000 sv_radio_throttle_window=10
sv_showimpacts_time=4:0:10 sv_spawn_afk_bomb_drop_time=15 sv_specaccelerate=5 sv_specspeed=1200
sv_staminajumpcost=0.08:0: sv_staminalandcost=0.05:0: sv_staminamax=80:0:100 sv_staminarecoveryrate=60:0:
sv_standable_normal=0.7 sv_step_move_vel_min=64 sv_stopspeed=80 sv_strafing_inaccuracy_bias=0.5
sv_strafing_inaccuracy_scale=0.1 sv_talk_after_dying_time=0 sv_teamid_overhead_maxdist=0
sv_teamid_overhead_maxdist_spec=0 sv_timebetweenducks=0.4:0:2 sv_turning_inaccuracy_angle_min=4
sv_turning_inaccuracy_decay=0.8 sv_use_hi_pri_context_switch_time=1 sv_voice_proximity=-1 sv_vote_command_delay=2::4.5
sv_vote_creation_timer=120 sv_vote_failure_timer=300 sv_vote_kick_ban_duration=15 sv_vote_quorum_ratio=0.501:0.01:1
sv_vote_timer_duration=15 sv_walkable_normal=0.7 sv_warmup_to_freezetime_delay=4:3:20 sv_water_slow_amount=0.9
sv_wateraccelerate=10 sv_waterfriction=1 sv_weapon_require_use_grace_period=1 weapon_accuracy_forcespread=0
weapon_air_spread_scale=1:0: weapon_auto_cleanup_time=0 weapon_sound_falloff_multiplier=1
"""

_TEXTS = """
bot_chatter=normal bot_join_team=any bot_loadout= bot_prefix= bot_quota_mode=normal bot_stop=0 hostname=
logaddress_token_secret= mapgroup= mp_backup_round_file=backup mp_backup_round_file_last=
mp_backup_round_file_pattern=%prefix%_round%round%.txt mp_bot_ai_bt= mp_ct_default_grenades=
mp_ct_default_melee=weapon_knife mp_ct_default_primary= mp_ct_default_secondary=weapon_hkp2000
mp_endmatch_votenextmap_wargames_modes= mp_guardian_bomb_plant_custom_x_mark_location=
mp_hostages_spawn_force_positions= mp_hostages_spawn_force_positions_xyz= mp_humanteam=any mp_items_prohibited=
mp_retake_ct_loadout_bonus_card= mp_retake_ct_loadout_bonus_card_availability=1,2
mp_retake_ct_loadout_default_pistol_round= mp_retake_ct_loadout_enemy_card= mp_retake_ct_loadout_full_buy_round=
mp_retake_ct_loadout_light_buy_round= mp_retake_ct_loadout_upgraded_pistol_round= mp_retake_t_loadout_bonus_card=
mp_retake_t_loadout_bonus_card_availability=1,1,2 mp_retake_t_loadout_default_pistol_round=
mp_retake_t_loadout_enemy_card= mp_retake_t_loadout_full_buy_round= mp_retake_t_loadout_light_buy_round=
mp_retake_t_loadout_upgraded_pistol_round= mp_t_default_grenades= mp_t_default_melee=weapon_knife mp_t_default_primary=
mp_t_default_secondary=weapon_glock mp_teamflag_1= mp_teamflag_2= mp_teamlogo_1= mp_teamlogo_2= mp_teammatchstat_1=
mp_teammatchstat_2= mp_teammatchstat_txt= mp_teamname_1= mp_teamname_2= nextlevel= nextmode= rcon_password=
sv_give_item= sv_guardian_extra_equipment_ct= sv_guardian_extra_equipment_t=
sv_guardian_refresh_ammo_for_items_on_waves= sv_logsdir=logs sv_password= sv_phys_stop_at_collision=
sv_server_graphic1= sv_server_graphic2= sv_steamgroup= sv_tags= tv_broadcast_url=http://localhost:8080 tv_name=SourceTV
tv_password= tv_password1= tv_relaypassword= tv_title=SourceTV
"""

_RAWS = """
sim_absent= sim_arrival=25 sim_casters= sim_client_load=0 sim_coaches= sim_console_chat=1 sim_demo_faults=
sim_demo_mb=0 sim_demo_rate=12.5 sim_lockstep=0 sim_lost_posts= sim_map_load=6 sim_players= sim_quiet=0
sim_rcon_drop=1 sim_report_faults=0 sim_roster_delay=20 sim_scenario=full_match sim_seed=1 sim_speed=1
sim_substitutes= sim_unpause=10 sim_unready=
"""

# Developer-only variables: each map load lists them, but the console does not know them.
_HIDDEN_ON = "mp_forcerespawn"
_HIDDEN_OFF = "mp_fadetoblack mp_teamplay mp_tournament mp_weaponstay"
_HIDDEN_INTS = "mp_winlimit=0:0:"
_HIDDEN_FLOATS = """
decalfrequency=10 r_AirboatViewDampenDamp=1 r_AirboatViewDampenFreq=7 r_AirboatViewZHeight=0 r_JeepViewDampenDamp=1
r_JeepViewDampenFreq=7 r_JeepViewZHeight=10 sv_footsteps=1 sv_mover_maxslope=0.7 sv_mover_pogodampingratio=1
sv_mover_pogofrequency=10 sv_rollangle=0 sv_rollspeed=200 sv_stepsize=18
"""


def _values(packed: str, kind: VariableKind, value: str = "", *, is_hidden: bool = False) -> Iterator[Variable]:
    for entry in packed.split():
        name, _, rest = entry.partition("=")
        rest = rest or value
        # A text may contain colons, so it cannot have bounds.
        default, minimum, maximum = (
            (rest, "", "") if kind in (VariableKind.TEXT, VariableKind.RAW) else (*rest.split(":"), "", "")[:3]
        )
        variable = Variable(name, kind, default, _bound(minimum), _bound(maximum), is_hidden)
        yield replace(variable, default=variable.normalize(default))


def _bound(text: str) -> float | None:
    return float(text) if text else None


def _table() -> Iterator[Variable]:
    yield from _values(_ON, VariableKind.BOOL, "true")
    yield from _values(_OFF, VariableKind.BOOL, "false")
    yield from _values(_INTS, VariableKind.INT)
    yield from _values(_FLOATS, VariableKind.FLOAT)
    yield from _values(_TEXTS, VariableKind.TEXT)
    yield from _values(_RAWS, VariableKind.RAW)
    yield from _values(_HIDDEN_ON, VariableKind.BOOL, "true", is_hidden=True)
    yield from _values(_HIDDEN_OFF, VariableKind.BOOL, "false", is_hidden=True)
    yield from _values(_HIDDEN_INTS, VariableKind.INT, is_hidden=True)
    yield from _values(_HIDDEN_FLOATS, VariableKind.FLOAT, is_hidden=True)


VARIABLES: Mapping[str, Variable] = MappingProxyType({variable.name: variable for variable in _table()})
"""All variables by their exact names."""
