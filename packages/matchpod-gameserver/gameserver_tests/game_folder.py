"""An imitation of the folder of the game: files of the right names, small, and a program in place of the game."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

GAMEINFO = """\
"GameInfo"
{
\tFileSystem
\t{
\t\tSearchPaths
\t\t{
\t\t\tGame_LowViolence\tcsgo_lv // Perfect World content override
\t\t\tGame\tcsgo
\t\t\tGame\tcsgo_imported
\t\t\tGame\tcsgo_core
\t\t\tGame\tcore
\t\t\tMod\t\tcsgo
\t\t}
\t}
}
"""
METAMOD_LINE = "\t\t\tGame\tcsgo/addons/metamod\n"

PLUGINS = "game/csgo/addons/counterstrikesharp/plugins"
FILES = {
    "game/cs2.sh": "#!/bin/sh\n",
    "game/bin/linuxsteamrt64/libengine2.so": "engine",
    "game/bin/linuxsteamrt64/steamapps/workshop/content/730/1/map.vpk": "a map of the workshop",
    "game/core/pak01_000.vpk": "core",
    "game/csgo/gameinfo.gi": GAMEINFO,
    "game/csgo/steam.inf": "PatchVersion=1.41.3.5\n",
    "game/csgo/pak01_000.vpk": "x" * 2_000_000,
    "game/csgo/bin/linuxsteamrt64/libserver.so": "server",
    "game/csgo/maps/de_nuke.vpk": "map",
    "game/csgo/maps/soundcache/de_nuke.cache": "sounds",
    "game/csgo/cfg/server.cfg": "hostname matches\n",
    "game/csgo/cfg/MatchZy/config.cfg": "matchzy_autostart_mode 0\n",
    "game/csgo/addons/metamod/counterstrikesharp.vdf": "vdf",
    "game/csgo/addons/counterstrikesharp/configs/core.json": "{}",
    f"{PLUGINS}/MatchZy/MatchZy.dll": "MatchZy",
    "steamcmd/linux64/steamclient.so": "Steam",
}
LEFT_BEHIND = {
    "game/csgo/logs/old.log": "log",
    "game/csgo/MatchZy/old.dem": "demo",
    "game/csgo/MatchZyDataBackup/matchzy_1_0_round01.json": "backup",
    "game/csgo/addons/counterstrikesharp/logs/old.txt": "log",
    "game/csgo/backup_round01.txt": "backup",
}
"""What a server that was started right in the installation has left there."""


def make_installation(folder: Path, program: str) -> Path:
    """Make an installation in the folder, with this program as the game, and make it read-only."""
    for name, text in {**FILES, **LEFT_BEHIND, "game/bin/linuxsteamrt64/cs2": program}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o555 if path.name in ("cs2", "cs2.sh") else 0o444)
    for parent, _, _ in os.walk(folder):
        os.chmod(parent, 0o555)
    return folder


def fingerprint(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Return mode, time of the last change and content of everything in a folder, to notice any write."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, content)
    return found
