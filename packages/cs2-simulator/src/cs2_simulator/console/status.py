"""Print the output of `status`, `status_json` and `version`.

The formats are those of CS2 1.41.2.8. `status` prints user ids but no Steam ids, `status_json` the reverse. Both list
the free slots below the highest used slot. `status` does not escape quotes in names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from cs2_simulator.agenda import TICKS_PER_S
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.player import Player
from cs2_simulator.setup_faults import SetupFault

BUILD = 10603
"""Build number. The first line of a log file prints it as the version."""

OLD_BUILD = 10521
"""Build number if the setup fault is `old_build`. It is from logs of a real server; the version text of this build is
invented."""

VERSION = "1.41.2.8"
OLD_VERSION = "1.40.9.0"
PROTOCOL = 14128
BUILD_VERSION = 2000696
SOURCE_REVISION = "10299884"

VERSION_TEXT = (
    f"Protocol version {PROTOCOL} [{BUILD}/{BUILD}]\nExe version {VERSION} (csgo)\nExe build: ({BUILD}) (730)\n"
)
"""Output of `version`."""

LOADING_ID_OFFSET = 65280
"""0xFF00: `status` adds it to the user id of a player who is still loading."""

RATE = 786432

_FIRST_SERVER_ID64 = 85568392920039424
"""The SteamID64 of `[G:1:0]`."""
_FIRST_BOT_ID64 = 90071996842377216
"""The SteamID64 of `[A:1:0:1]`."""
_SERVER_ACCOUNT = 15572258
_ANONYMOUS = "[A:1:2404786178:50561] (90288866155659266)"
_EMPTY_ROW = "65535 [NoChan]    0    0 challenging      0unknown ''"
_LUMPS = (
    "prefabs/misc/counterterrorist_team_intro",
    "prefabs/misc/terrorist_team_intro",
    "prefabs/misc/terrorist_team_intro_variant2",
    "prefabs/misc/counterterrorist_team_intro_variant2",
    "prefabs/misc/counterterrorist_wingman_intro",
    "prefabs/misc/terrorist_wingman_intro",
    "prefabs/misc/end_of_match",
    "prefabs/misc/team_select",
)
"""Spawn groups that every map loads in addition to its own."""


def status_text(arena: Arena) -> str:
    return "\n".join([*_header(arena), *_spawn_groups(arena), *_table(arena), "#end", ""])


def _header(arena: Arena) -> Iterator[str]:
    port = arena.variables.text("hostport")
    humans, bots = _counts(arena)
    yield f"Server:  Running [0.0.0.0:{port}]"
    yield "Client:  Disconnected"
    yield "----- Status -----"
    yield "@ Current  :  game"
    yield "source   : console"
    yield f"hostname : {arena.variables.text('hostname')}"
    yield f"spawn    : {arena.map_number + 2}"
    is_old = arena.setup_fault is SetupFault.OLD_BUILD
    version, build = (OLD_VERSION, OLD_BUILD) if is_old else (VERSION, BUILD)
    yield f"version  : {version}/{PROTOCOL} {build} secure  public"
    # Only a server with a login token has an account of its own. The id of the anonymous account is from a real log
    # post.
    is_anonymous = arena.setup_fault is SetupFault.NO_LOGIN_TOKEN
    account = f"[G:1:{_SERVER_ACCOUNT}] ({_FIRST_SERVER_ID64 + _SERVER_ACCOUNT})"
    yield f"steamid  : {_ANONYMOUS if is_anonymous else account}"
    yield f"udp/ip   : 0.0.0.0:{port} (public 127.0.0.1:{port})"
    yield "os/type  : Linux dedicated"
    sleep = "hibernating" if is_hibernating(arena) else "not hibernating"
    yield f"players  : {humans} humans, {bots} bots (0 max) ({sleep}) (unreserved)"


def _spawn_groups(arena: Arena) -> Iterator[str]:
    yield "---------spawngroups----"
    # A workshop map is printed without its path; `status_json` does the same.
    yield f"loaded spawngroup(  1)  : SV:  [1: {_short_map(arena)} | main lump | mapload]"
    for number, lump in enumerate(_LUMPS, start=2):
        yield f"loaded spawngroup({number:3d})  : SV:  [{number}: {lump} | main lump | mapload | point_prefab]"


def _table(arena: Arena) -> Iterator[str]:
    yield "---------players--------"
    yield "  id     time ping loss      state   rate adr name"
    for player in _slots(arena):
        yield _EMPTY_ROW if player is None else _row(player, arena.agenda.now_ms)


def _row(player: Player, now_ms: int) -> str:
    person = player.person
    if person.is_bot:
        return f"{player.user_id:4d}      BOT    0    0     active      0 '{person.name}'"
    number = player.user_id if player.is_in_game else LOADING_ID_OFFSET + player.user_id
    state = "active" if player.is_in_game else "spawning"
    clock = _clock(max(0, now_ms - player.connected_at_ms) // 1000)
    ping = 15 + person.account % 50
    return f"{number:4d} {clock:>8} {ping:4d}    0 {state:>10} {RATE:6d} {person.address} '{person.name}'"


def _clock(seconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes:02d}:{seconds:02d}"


def _slots(arena: Arena) -> Iterator[Player | None]:
    """Yield the player of each user id from 0 on, or None for an unused id."""
    by_number = {player.user_id: player for player in arena.players}
    for number in range(max(by_number, default=-1) + 1):
        yield by_number.get(number)


def _counts(arena: Arena) -> tuple[int, int]:
    bots = sum(player.person.is_bot for player in arena.players)
    return len(arena.players) - bots, bots


def is_hibernating(arena: Arena) -> bool:
    return _counts(arena)[0] == 0 and arena.variables.is_on("sv_hibernate_when_empty")


def _short_map(arena: Arena) -> str:
    return arena.map_name.rpartition("/")[2]


def status_json_text(arena: Arena) -> str:
    humans, bots = _counts(arena)
    uptime_s = arena.agenda.tick // TICKS_PER_S
    created = arena.agenda.now_ms // 1000 - uptime_s
    ticks = arena.agenda.tick
    workshop = arena.map_name.split("/")
    return "".join(
        (
            _PROCESS.format(uptime_s=uptime_s),
            _SERVER.format(
                is_hibernating="true" if is_hibernating(arena) else "false",
                bots=bots,
                humans=humans,
                map=json.dumps(_short_map(arena)),
                addon=workshop[1] if len(workshop) > 2 else "",
                port=arena.variables.text("hostport"),
            ),
            _histogram("ticks_per_interval", _TICK_BUCKETS, created=created, ticks=ticks),
            _histogram("framecomputetime_ms_per_interval", _FRAME_BUCKETS, created=created, ticks=ticks),
            _clients(arena),
            _SERVER_END,
        )
    )


def _clients(arena: Arena) -> str:
    clients = ",\n".join([_client(player) for player in _slots(arena)])
    return f'\t\t"clients":\n\t\t[\n{clients}\n\t\t],\n' if clients else '\t\t"clients":\n\t\t[\n\t\t],\n'


def _client(player: Player | None) -> str:
    is_bot = player is not None and player.person.is_bot
    name = "" if player is None else player.person.name
    if player is None:
        id64, steam_id = "0", "[I:0:0]"
    elif is_bot:
        id64, steam_id = str(_FIRST_BOT_ID64 + player.user_id), f"[A:1:{player.user_id}:1]"
    else:
        id64, steam_id = player.person.player_id, player.person.steam_id
    return (
        f'\t\t\t{{\n\t\t\t\t"steamid64": "{id64}",\n\t\t\t\t"steamid": "{steam_id}",\n'
        f'\t\t\t\t"bot": {"true" if is_bot else "false"},\n'
        f'\t\t\t\t"name": {json.dumps(name, ensure_ascii=False)}\n\t\t\t}}'
    )


def _histogram(name: str, buckets: str, *, created: int, ticks: int) -> str:
    return (
        f'\t\t"{name}":\n\t\t{{\n\t\t\t"buckets":\n\t\t\t{{\n{buckets}\t\t\t\t"+inf": {ticks}\n\t\t\t}},\n'
        f'\t\t\t"created": {created},\n\t\t\t"sum": {ticks},\n\t\t\t"count": {ticks}\n\t\t}},\n'
    )


def _buckets(counts: Sequence[int]) -> str:
    return "".join(f'\t\t\t\t"{bound}": {count},\n' for bound, count in enumerate(counts))


_TICK_BUCKETS = _buckets([0, *[17153] * 9])
_FRAME_BUCKETS = _buckets([0, 2326, 14639, 16832, 17120, 17143, 17147, *[17153] * 53])
"""Frame time statistics. `cs2_protocol` does not read them; they give the output a realistic length."""

_PROCESS = f"""{{{{
\t"frametime_ms": 15.625260,
\t"framecomputetime_ms": 1.893068,
\t"process_uptime": {{uptime_s}},
\t"build_version": {BUILD_VERSION},
\t"build_source_revision": "{SOURCE_REVISION}",
\t"mem_phys_total_gb": 7.755085,
\t"mem_phys_avail_gb": 2.537685,
\t"mem_virt_total_gb": 128.000000,
\t"mem_virt_avail_gb": 128.000000,
\t"server":
\t{{{{
"""
_SERVER = """\t\t"hibernating": {is_hibernating},
\t\t"cpu_usage": 0.080566,
\t\t"clients_bot": {bots},
\t\t"clients_human": {humans},
\t\t"clients_proxies": 0,
\t\t"map": {map},
\t\t"addon": "{addon}",
\t\t"udp_port": {port},
"""
_MEASURES = """
player_network_loss_max=0.000000 player_network_loss_avg=0.000000 player_network_lag_max=0.001000
player_network_lag_avg=0.001000 async_networking_wait_ms=0.000000 startup_ServerModuleInit=1609
startup_GameRulesCreated=2146 startup_SteamLoggedOn=3289 startup_RequestedGcSession=3503 game_vars=3000
gc_status="GCConnectionStatus_HAVE_SESSION" sv_shutdown_requested=false frame_time_sample_count=4096
frame_time_50th_percentile=0.015620 frame_time_95th_percentile=0.016390 frame_time_max=0.020039
frame_run_time_sample_count=4096 frame_run_time_50th_percentile=0.001732 frame_run_time_95th_percentile=0.002611
frame_run_time_max=0.006355 frame_sleep_time_sample_count=4096 frame_sleep_time_50th_percentile=0.013892
frame_sleep_time_5th_percentile=0.013009 frame_sleep_time_min=0.009257 frame_animgraph_time_sample_count=4096
frame_animgraph_time_50th_percentile=0.000239 frame_animgraph_time_95th_percentile=0.000326
frame_animgraph_time_max=0.000684 steam_loggedon=true
"""
"""Metrics at the end of `status_json`. `cs2_protocol` does not read them; they give the output a realistic length."""

_SERVER_END = "".join(
    f'\t\t"{name}": {value},\n' for name, value in (pair.split("=") for pair in _MEASURES.split())
) + (
    f'\t\t"steamid64": "{_FIRST_SERVER_ID64 + _SERVER_ACCOUNT}",\n\t\t"steamid": "[G:1:{_SERVER_ACCOUNT}]"\n\t}}\n}}\n'
)
