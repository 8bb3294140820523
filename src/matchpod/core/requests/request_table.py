"""Define the fields of a create-match body: their rules, meanings and labels.

Validation, the JSON Schemas in the API documentation and the form of the console are driven by these tables. A field is
added here, read in `validation.py`, and placed on the page in `console/match_form.py`. Rules that need several fields
are in `validation.py`, such as that a person is listed only once.
"""

from __future__ import annotations

from typing import Final

from cs2_protocol.game import Team
from matchpod.core.faults import Fault, FaultCode
from matchpod.core.labels import MAX_LABELS
from matchpod.core.model import GAME_TYPE, MAX_LISTED_PLAYERS, DmSubMode, MatchType, OnNoShow, SeriesFormat, StartSides
from matchpod.core.requests import field_rules as rules
from matchpod.core.requests import text_rules
from matchpod.core.requests.json_fields import AnyField, RequestField

MAX_ROUNDS_PER_MAP: Final = 200
"""Highest `maxRounds`: about eight hours of play, more than any match needs."""

MAX_FREEZE_TIME_S: Final = 60
"""Highest `freezeTime`: the game's own limit for `mp_freezetime`."""

MAX_DM_MINUTES: Final = 1440
"""Highest `dmRoundMinutes`: one day."""

MIN_JOIN_S: Final = 60
"""Lowest `joinSeconds`: the time that a slow client needs to load the map."""

MAX_JOIN_S: Final = 3600
"""Highest `joinSeconds`: one hour, during which the server is occupied."""

MAX_OVERTIME_ROUNDS: Final = 30
"""Highest `overtime.maxRounds`: as many rounds as the regulation of a map in the MR15 format."""

MAX_MONEY: Final = 65_535
"""Highest `overtime.startMoney`: the game's own limit for `mp_startmoney`."""

MAX_MAP_POOL: Final = 64
"""Maximum number of maps in the caller's list, more than any map pool in use. A series plays at most five maps."""

MAX_CVAR_BYTES: Final = 8192
"""Maximum size of `customCvars`, which is stored with the match: enough for a commented tournament configuration."""

MAX_CVAR_LINES: Final = 200
"""Maximum number of lines in `customCvars`. Each setting costs a round trip to the server after every map load."""

SERIES_TYPES: Final = tuple(match_type for match_type in MatchType if match_type.has_series)
_DEATHMATCH: Final = (MatchType.DEATHMATCH,)


def _game_type_fault(game_type: str) -> Fault | None:
    return None if game_type == GAME_TYPE else Fault(FaultCode.WRONG_GAME, {"game_type": GAME_TYPE})


def side_fault(side: str) -> Fault | None:
    return None if side in _SIDES else _NOT_A_SIDE


_SIDES: Final = frozenset(StartSides)
_NOT_A_SIDE: Final = rules.not_a_choice(StartSides)
_MAP_NAME: Final = rules.text(text_rules.map_fault, pattern=f"^({text_rules.MAP})$", example="de_dust2")
_PLAYERS: Final = rules.texts(
    rules.text(text_rules.player_id_fault, pattern=f"^{text_rules.PLAYER_ID}$", example="76561198000000001"),
    maxItems=MAX_LISTED_PLAYERS,
    uniqueItems=True,
)

# --- a team -------------------------------------------------------------------------------------------------------

TEAM_NAME: Final = RequestField(
    name="name",
    label="Name",
    rule=rules.text(text_rules.team_name_fault, longest=text_rules.MAX_TEAM_NAME, format="team-name"),
    meaning='Trimmed, without " ; \\ % $ { } ` // and without control, format and line-separator characters.',
)
TEAM_PLAYERS: Final = RequestField(name="players", label="Players", rule=_PLAYERS, meaning="Its players.")
TEAM_COACHES: Final = RequestField(
    name="coaches",
    label="Coaches",
    rule=_PLAYERS,
    meaning="Its coaches: let in, but not awaited and in no statistics.",
)
TEAM: Final[tuple[AnyField, ...]] = (TEAM_NAME, TEAM_PLAYERS, TEAM_COACHES)

LISTED_TEAMS: Final = {
    team: RequestField(name=team.value, rule=rules.nested("ListedTeam", TEAM), is_required=True) for team in Team
}

# --- rules of a match ---------------------------------------------------------------------------------------------

OVERTIME_ENABLED: Final = RequestField(
    name="enabled",
    label="Overtime",
    rule=rules.boolean(),
    meaning="Whether a tie after all rounds leads to overtime. If not, the map ends as a tie. Default: true.",
)
OVERTIME_ROUNDS: Final = RequestField(
    name="maxRounds",
    label="Overtime rounds",
    rule=rules.even(2, MAX_OVERTIME_ROUNDS),
    meaning="Rounds of each overtime, an even number.",
)
OVERTIME_MONEY: Final = RequestField(
    name="startMoney",
    label="Overtime money",
    rule=rules.integer(0, MAX_MONEY),
    meaning="What each player has at the beginning of each half of overtime.",
)
OVERTIME_RULES: Final[tuple[AnyField, ...]] = (OVERTIME_ENABLED, OVERTIME_ROUNDS, OVERTIME_MONEY)

MAPS_GIVEN: Final = {
    team: RequestField(
        name=team.value,
        label=f"Maps given to team {team[-1]}",
        rule=rules.integer(0, max(series_format.wins_needed for series_format in SeriesFormat) - 1),
        meaning="Less than the series needs. Default: 0.",
    )
    for team in Team
}

# --- the settings of a match --------------------------------------------------------------------------------------

MATCH_TYPE: Final = RequestField(name="matchType", label="Match type", rule=rules.choice(MatchType), is_required=True)
MAP: Final = RequestField(
    name="map",
    label="First map",
    rule=_MAP_NAME,
    meaning="The first map: a name, or workshop/ and the id of an item.",
    is_required=True,
)
MAPS: Final = RequestField(
    name="maps",
    label="Maps",
    rule=rules.texts(_MAP_NAME, maxItems=MAX_MAP_POOL),
    meaning="The maps after the first; the list repeats if the series needs more.",
)
SERIES_FORMAT: Final = RequestField(
    name="seriesFormat",
    label="Series",
    rule=rules.choice(SeriesFormat),
    meaning="Default: bo1.",
    match_types=SERIES_TYPES,
)
SIDES: Final = RequestField(
    name="sides",
    label="Sides",
    rule=rules.texts(
        rules.text(side_fault, enum=[sides.value for sides in StartSides]),
        minItems=1,
        maxItems=max(series_format.length for series_format in SeriesFormat),
    ),
    meaning="On which sides the teams begin, one entry for each map to play: `team1_ct`, `team1_t`, or `knife` "
    "for a knife round, whose winner chooses; that needs listed players. Default: `team1_ct` on the first map, then "
    "alternating; on the last map of a bo3 or bo5 `knife`, or drawn if no player is listed.",
    match_types=SERIES_TYPES,
)
TEAMS: Final = RequestField(
    name="teams",
    label="Teams",
    rule=rules.nested("ListedTeams", tuple(LISTED_TEAMS.values())),
    meaning="The two teams. If any player is listed, only listed players may connect.",
    match_types=SERIES_TYPES,
)
SPECTATORS: Final = RequestField(
    name="spectators",
    label="Spectators",
    rule=_PLAYERS,
    meaning="Casters and referees: let in, but not awaited and in no statistics. "
    f"Players, coaches and spectators together: at most {MAX_LISTED_PLAYERS}, each listed once.",
    match_types=SERIES_TYPES,
)
JOIN_SECONDS: Final = RequestField(
    name="joinSeconds",
    label="Time to join in seconds",
    rule=rules.integer(MIN_JOIN_S, MAX_JOIN_S),
    meaning="Seconds for all players to join: first, and again before play and between maps if some have left. "
    "Default: 300.",
)
ON_NO_SHOW: Final = RequestField(
    name="onNoShow",
    label="If players do not come",
    rule=rules.choice(OnNoShow),
    meaning="What happens if listed players are missing when the time to join ends: `cancel`, or `forfeit`, with which "
    "a complete team wins against an incomplete team. That needs listed players in both teams. Default: cancel.",
    match_types=SERIES_TYPES,
)
AUTO_START: Final = RequestField(
    name="autoStart",
    label="Start of play",
    rule=rules.boolean(),
    meaning="Whether play starts when all listed players have joined. If false, the players start each map by being "
    "ready, which needs listed players in both teams, or an action starts it. Default: true.",
    match_types=SERIES_TYPES,
)
RECORD_DEMO: Final = RequestField(
    name="recordDemo",
    label="Demo",
    rule=rules.boolean(),
    meaning="Whether each map is recorded and its demo kept for download. The match plugin records, so it needs listed "
    "players; and the service needs a storage for demos. Default: as the region is configured, if players are listed.",
    match_types=SERIES_TYPES,
)
PLAYERS: Final = RequestField(
    name="players",
    label="Players",
    rule=_PLAYERS,
    meaning="The players who may connect; play starts when all have joined.",
    match_types=_DEATHMATCH,
)
DM_SUB_MODE: Final = RequestField(
    name="dmSubMode",
    label="Deathmatch mode",
    rule=rules.choice(DmSubMode),
    meaning="Default: ffa.",
    match_types=_DEATHMATCH,
)
DM_ROUND_MINUTES: Final = RequestField(
    name="dmRoundMinutes",
    label="Minutes",
    rule=rules.number(1, MAX_DM_MINUTES),
    meaning="The duration in minutes. Default: 10.",
    match_types=_DEATHMATCH,
)
SERVER_PASSWORD: Final = RequestField(
    name="serverPassword",
    label="Server password",
    rule=rules.text(text_rules.password_fault, longest=text_rules.MAX_PASSWORD, format="server-password"),
    meaning="The password to connect: no quotes, semicolons or control characters, and not the word none.",
)
FREEZE_TIME: Final = RequestField(
    name="freezeTime",
    label="Freeze time in seconds",
    rule=rules.integer(0, MAX_FREEZE_TIME_S),
    meaning="Seconds before each round.",
)
OVERTIME: Final = RequestField(
    name="overtime",
    rule=rules.nested("Overtime", OVERTIME_RULES),
    meaning="Overtime. Default: with listed players, as the match plugin is configured, which is on, with 6 rounds and "
    "10000 money (wingman: 4 and 8000); without them, as the server is configured.",
    match_types=SERIES_TYPES,
)
MAPS_WON: Final = RequestField(
    name="mapsWon",
    rule=rules.nested("MapsWon", tuple(MAPS_GIVEN.values())),
    meaning="Maps that the teams have won before the series: they count in its score, and fewer are played.",
    match_types=SERIES_TYPES,
)
MAX_ROUNDS: Final = RequestField(
    name="maxRounds",
    label="Rounds per map",
    rule=rules.integer(1, MAX_ROUNDS_PER_MAP),
    meaning="Maximum number of rounds per map.",
)
CUSTOM_CVARS: Final = RequestField(
    name="customCvars",
    label="Console variables",
    rule=rules.text(maxLength=MAX_CVAR_BYTES, format="console-variables"),
    meaning=f"Console variables, one `name value` per line, at most {MAX_CVAR_LINES} lines; // starts a comment. "
    "Unknown names are rejected with line and reason.",
)
LABELS: Final = RequestField(
    name="labels",
    label="Labels",
    rule=rules.texts_by_name(
        text_rules.label_name_fault,
        rules.text(text_rules.label_value_fault, longest=text_rules.MAX_LABEL_VALUE, format="label-value"),
        names=text_rules.LABEL_NAME,
        maximum=MAX_LABELS,
    ),
    meaning="Your own labels, such as an event, a round or a table, to find and group matches by: at most "
    f"{MAX_LABELS}. Names have A-Z a-z 0-9 _ . -. Values have no whitespace at their ends, and no control, format and "
    "line-separator characters.",
)
SETTINGS: Final[tuple[AnyField, ...]] = (
    MATCH_TYPE,
    MAP,
    MAPS,
    SERIES_FORMAT,
    MAPS_WON,
    SIDES,
    TEAMS,
    SPECTATORS,
    ON_NO_SHOW,
    AUTO_START,
    RECORD_DEMO,
    PLAYERS,
    DM_SUB_MODE,
    DM_ROUND_MINUTES,
    JOIN_SECONDS,
    SERVER_PASSWORD,
    FREEZE_TIME,
    MAX_ROUNDS,
    OVERTIME,
    CUSTOM_CVARS,
    LABELS,
)

# --- the body -----------------------------------------------------------------------------------------------------

REGION: Final = RequestField(
    name="region",
    label="Region",
    rule=rules.text(format="region-code"),
    meaning="The `code` of an active region, as listed by `GET /api/v1/regions`.",
    example="sandbox",
    is_required=True,
)
GAME: Final = RequestField(name="gameType", rule=rules.text(_game_type_fault, enum=[GAME_TYPE]), is_required=True)
GAME_SETTINGS: Final = RequestField(
    name="gameSettings",
    rule=rules.nested("GameSettings", SETTINGS),
    meaning="What to play; the fields depend on matchType.",
    is_required=True,
)
CALLBACK_URL: Final = RequestField(
    name="callbackUrl",
    label="Callback URL",
    rule=rules.text(text_rules.callback_url_fault, longest=text_rules.MAX_URL, format="http-url"),
    meaning="Absolute http or https URL in printable ASCII, without user name. It receives one POST when the match "
    "ends or is canceled. Unless the service allows it, it must not be at a private address.",
)
CALLBACK_AUTH_TOKEN: Final = RequestField(
    name="callbackAuthToken",
    label="Callback auth token",
    rule=rules.text(
        text_rules.auth_token_fault, longest=text_rules.MAX_AUTH_TOKEN, pattern=f"^{text_rules.HEADER_VALUE}$"
    ),
    meaning="Sent as the Authorization header of callbacks; never returned.",
)
EXTERNAL_MATCH_ID: Final = RequestField(
    name="externalMatchId",
    label="External id",
    rule=rules.text(text_rules.external_id_fault, longest=text_rules.MAX_EXTERNAL_ID, pattern=text_rules.NO_CONTROL),
    meaning="Your own id for the match; need not be unique.",
)
BODY: Final[tuple[AnyField, ...]] = (
    REGION,
    GAME,
    GAME_SETTINGS,
    CALLBACK_URL,
    CALLBACK_AUTH_TOKEN,
    EXTERNAL_MATCH_ID,
)
