"""Sample lines of every type, as servers print them, and the players in them."""

from __future__ import annotations

from cs2_protocol.log_lines.player_token import player_token

ANN = player_token("Ann", 1, "[U:1:101]", "CT")
BEN = player_token("Ben", 2, "[U:1:102]", "TERRORIST")

A = '"Ann<1><[U:1:101]><CT>"'
B = '"Ben<2><[U:1:102]><TERRORIST>"'
NEW = '"Ann<1><[U:1:101]><>"'
BARE = '"Ann<1><[U:1:101]>"'

STATS_ROW = (
    "                 101,      3,   8350,     12,      3,      4,1109.00,  41.67,   4.00,    158,      3,      0,"
    "    355,      0,      1,      0,      2,      0,      3,      2,      1,167.000000,264.000000,      3,      8,      0"
)

PLAYER_LINES = [
    f'{NEW} connected, address "203.0.113.9:62716"',
    f"{NEW} STEAM USERID validated",
    f"{NEW} entered the game",
    f"{BARE} switched from team <Unassigned> to <CT>",
    f"{BARE} switched from team <> to <Spectator>",
    f'{A} disconnected (reason "NETWORK_DISCONNECT_DISCONNECT_BY_USER")',
    f'{A} changed name to "Anna "the" Great"',
    f'{A} say "hello "all" <3"',
    f'{A} say ""',
    f'{A} say_team "!pause"',
    f'{A} [1227 468 -0] attacked {B} [-316 852 5] with "m4a1" (damage "108") (damage_armor "0") (health "0") (armor "0") (hitgroup "left arm")',
    f'{A} [1 2 3] attacked {A} [1 2 3] with "" (damage "1") (damage_armor "0") (health "0") (armor "0") (hitgroup "GENERIC")',
    f'{A} [1 2 3] killed {B} [4 5 6] with "m4a1_silencer"',
    f'{A} [1 2 3] killed {B} [4 5 6] with "awp" (headshot noscope)',
    f'{A} [1 2 3] killed other "chicken<145>" [4 5 6] with "knife"',
    f'{A} [1 2 3] killed other "prop_dynamic<9>" [4 5 6] with "deagle" (penetrated)',
    f'{A} [1 2 3] committed suicide with "world"',
    f"{A} [1 2 3] was killed by the bomb.",
    f"{A} [1 2 3] picked up a hostage",
    f"{A} [1 2 3] dropped off a hostage",
    f"{A} assisted killing {B}",
    f"{A} flash-assisted killing {B}",
    f"{A} blinded for 2.78 by {B} from flashbang entindex 552",
    f"{A} sv_throw_hegrenade 982.593 495.542 165.833 0.000 -927.381 44 3.000",
    f"{A} threw smokegrenade [1018 431 101]",
    f"{A} threw flashbang [22 567 356] flashbang entindex 552)",
    f'{A} triggered "Got_The_Bomb"',
    f'{A} triggered "Planted_The_Bomb" at bombsite A',
    f'{A} purchased "item_assaultsuit"',
    f'{A} picked up "knife"',
    f'{A} dropped "glock"',
    f"{A} money change 16000-1000 = $15000 (tracked) (purchase: item_assaultsuit)",
    f"{A} money change 100+300 = $400 (tracked)",
    f"{A} money change 500+300 = $800 (tracked) (acquire: sellback)",
    f"{A} money change 800-200 = $600 (purchase: weapon_hegrenade)",
    f"{A} money change 600+50 = $650",
    f"{A} left buyzone with [ weapon_knife weapon_m4a1 kevlar(100) helmet ]",
    f"{A} left buyzone with [ ]",
    '"Olaf<2><<none>><TERRORIST>" left buyzone with [ ]',
    '"Rex<6><BOT><>" connected, address "(unknown)"',
    '"Max<4><STEAM_1:0:4366><Unassigned>" changed name to "Maxim"',
    '"Cid<1><STEAM_ID_PENDING>" switched from team <TERRORIST> to <Unassigned>',
]

WORLD_LINES = [
    'World triggered "Round_Start"',
    'World triggered "Restart_Round_(4_seconds)"',
    'World triggered "Match_Start" on "de_inferno"',
    'World triggered "SFUI_Notice_Round_Draw" (CT "11") (T "0")',
    'Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "10") (T "2")',
    'Team "TERRORIST" triggered "SFUI_Notice_Target_Bombed" (CT "1") (T "2")',
    'Team "CT" scored "10" with "10" players',
    'Team playing "CT": Night Owls',
    'MatchStatus: Team playing "TERRORIST": a : b',
    'MatchStatus: Team "CT" is unset.',
    'MatchStatus: Score: 10:2 on map "de_inferno" RoundsPlayed: 12',
    'MatchStatus: Score: 0:0 on map "de_inferno" RoundsPlayed: -1',
    "Match pause is enabled - mp_pause_match",
    "Match pause is disabled - TimeOutTs",
    "Match unpaused",
    'Vote started "StartTimeOut " from #2 "Ben<2><[U:1:102]><TERRORIST><Area 1211>"',
    'Vote cast "StartTimeOut " from #2 "Ben<2><[U:1:102]><TERRORIST><Area 1211>" option0',
    'Vote failed "Kick Ben" ',
    'Vote failed "ChangeLevel de_cache"',
    'Vote succeeded "StartTimeOut " from #2 "Ben<2><[U:1:102]><TERRORIST><Area 1211>"',
    "Starting Freeze period",
    'Loading map "de_inferno"',
    'Started:  ""',
    'Started map "de_nuke" (CRC "1a2b")',
    "server cvars start",
    "server cvars end",
    '"sv_password" = "B3 "x" y"',
    'server_cvar: "mp_friendlyfire" "false"',
    'Log file started (file "logs/2025_08_19_181142.log") (game "csgo") (version "10521")',
    "Log file closed",
    'server_message: "quit"',
    "Game Over: competitive  de_inferno score 2:13 after 10 min",
    "Game Over: competitive mg_active de_inferno score 15:15 after 42 min",
    "Game Over: casual 125499116 workshop/125444404/cs_office score 8:3 after 11 min",
    "ACCOLADE, FINAL: {pistolkills},\tIc<3 wav<3><2>,\tVALUE: 5.000000,\tPOS: 1,\tSCORE: 8.095239",
    "Molotov projectile spawned at 2203.659912 2541.122559 187.350067, velocity -527.546997 420.109283 -28.762991",
    'rcon from "203.0.113.2:61688": command "say "hi"; mp_teamname_1 "x""',
    '"Console<0>" say "server "test" 1"',
    "JSON_BEGIN{",
    '"name": "round_stats",',
    '"round_number" : "8",',
    '"score_t" : "2",',
    '"map" : "de_inferno",',
    '"server" : "Server "#1"",',
    '"fields" : "             accountid,   team,  money"',
    '"players" : {',
    f'"player_9" : "{STATS_ROW}"',
    "}}JSON_END",
]
