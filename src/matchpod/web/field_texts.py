"""What does each field of an answer mean? One sentence for the documentation; a type may have its own for a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FIELDS: Final[Mapping[str, str]] = {
    # servers and matches
    "serverId": "Names the server in get and cancel.",
    "gameId": "A UUID of this session; the `sessionId` of callbacks.",
    "region": "The code of the region.",
    "status": "Players may connect while it is `running`; `stopped` and `failed` are final.",
    "ip": "Where players connect; null until the server is running.",
    "port": "The game port; null until the server is running.",
    "callbackUrl": "As given at creation.",
    "externalMatchId": "As given at creation.",
    "gameType": "Always `cs2`.",
    "createdAt": "ISO 8601 in UTC, with milliseconds.",
    "rconPassword": "The console's password; null for keys that cannot create matches, for servers whose password is "
    "their operator's, and once the server has ended.",
    "match": "The match as it stands; null unless the server is running. Left out of the answer to a creation.",
    "result": "Null while in progress and when canceled; else the `result` of the `match_over` callback.",
    "ok": "Always true.",
    # regions
    "code": "The `region` of a new match.",
    "location": "Where its servers stand.",
    "isActive": "Whether it takes new matches now.",
    # errors and health
    "statusCode": "The HTTP status.",
    "error": "A code for programs.",
    "message": "One sentence to act on.",
    "details": "All faults of the request, where there are any to list.",
    "requestId": "Finds the request in our log; also the header `X-Request-Id`.",
    "path": "The field, as in `gameSettings.maxRounds`.",
    "version": "The version of the service.",
    # matches and maps
    "game": "Always `cs2`.",
    "gameMode": "What was played.",
    "matchType": "What is played.",
    "format": "`bo1`, `bo3` or `bo5`.",
    "winner": "`team1`, `team2` or `tie`; null when undecided.",
    "team1": "The first team.",
    "team2": "The second team.",
    "score": "Rounds won on this map; left out for a deathmatch.",
    "map": "The name of the map.",
    "maps": "One entry a map that was played.",
    "mapName": "The name of the map.",
    "mapNumber": "Its place in the series, from 1.",
    "team1Score": "Rounds won by the first team.",
    "team2Score": "Rounds won by the second team.",
    "duration": "Seconds; null when unknown.",
    "seriesScore": "Maps won.",
    "totalRounds": "Rounds won over all maps.",
    "overall": "Each player over all maps, most kills first.",
    "players": "Each player, most kills first.",
    "antiCheat": "What the anti-cheat saw, for people to look at: leads, not proof.",
    "winnerSteamId": "The player who won; null when nobody did.",
    # players
    "steamId": "The 64-bit player ID.",
    "name": "The player's name.",
    "team": "`team1` or `team2`; null when it cannot be told.",
    "kills": "Enemies killed.",
    "deaths": "Times died.",
    "assists": "Kills assisted, as on the scoreboard.",
    "headshots": "Kills by headshot.",
    "hsPercent": "Headshots of all kills, in percent.",
    "kdRatio": "Kills by deaths.",
    "adr": "Average damage a round.",
    "damageDealt": "Damage to enemies.",
    "utilityDamage": "Of it by grenades and fire.",
    "pistolKills": "Kills with pistols.",
    "sniperKills": "Kills with AWP, SSG, SCAR and G3SG1.",
    "knifeKills": "Kills with the knife.",
    "chickenKills": "Chickens killed.",
    "extraStats": "More numbers, each of which may be missing; null when there are none.",
    "roundsPlayed": "Rounds the player took part in.",
    "mvps": "Rounds as most valuable player; null when nobody counted.",
    "flashAssists": "Kills of teammates on enemies the player had blinded.",
    "enemiesFlashed": "Enemies blinded.",
    "firstKills": "Opening kills of a round.",
    "firstDeaths": "Opening deaths of a round.",
    "entryKills": "Round-opening kills.",
    "entryDeaths": "Times first to die in a round.",
    "tradeKills": "Kills that traded a teammate's death.",
    "bombPlants": "Bombs planted.",
    "bombDefuses": "Bombs defused.",
    "clutchWins": "Rounds won as the last one alive.",
    "clutch1v1": "Rounds won alone against one.",
    "clutch1v2": "Rounds won alone against two.",
    "clutch1v3": "Rounds won alone against three.",
    "clutch1v4": "Rounds won alone against four.",
    "clutch1v5": "Rounds won alone against five.",
    "doubleKills": "Rounds with exactly 2 kills.",
    "tripleKills": "Rounds with exactly 3 kills.",
    "quadKills": "Rounds with exactly 4 kills.",
    "aces": "Rounds with 5 kills.",
    "kastPercent": "Rounds with a kill, assist, survival or trade, in percent.",
    "impactRating": "Impact rating.",
    "kpm": "Kills a minute.",
    "shotsFired": "Shots fired; left out where nobody counts them.",
    "shotsHit": "Shots that hit an enemy; left out where nobody counts them.",
    "accuracyPercent": "Hits of all shots, in percent; left out where nobody counts them.",
    # detections
    "type": "Which kind of cheat is suspected.",
    "reason": "The evidence, in short.",
    "weapon": "What the player held; `unknown` when it cannot be told.",
    "roundNumber": "The round, if known.",
    "detectedAt": "ISO 8601 in UTC, with milliseconds.",
}

OF_TYPE: Final[Mapping[tuple[str, str], str]] = {
    ("RegionView", "name"): "The region's name for people.",
    ("TeamEntry", "name"): "The team's name.",
    ("Health", "status"): "`ok` or `ready`.",
    ("Fault", "message"): "What would be right.",
    ("Score", "team1"): "Rounds won by the first team.",
    ("Score", "team2"): "Rounds won by the second team.",
}


def text_of(type_name: str, field: str) -> str:
    """The sentence for a field; LookupError for one that nobody explained."""
    return OF_TYPE.get((type_name, field)) or FIELDS[field]
