"""Parse the part of a player's line after the player token: the verb, then the grammar of this verb.

The grammar must match the line to its last character, so that free text cannot imitate an event. `read_rest` returns
None if the text does not match; the caller then tries to end the player token at another position.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from cs2_protocol.log_lines import player_lines as lines
from cs2_protocol.log_lines.player_token import TEAMS, KnownPlayers, PlayerToken

_Reader = Callable[[PlayerToken, str, KnownPlayers], lines.PlayerLogLine | None]

# Possessive quantifiers: backtracking is not needed here, and avoiding it saves a third of the time.
_N = r"\d{1,7}+"
_XYZ = f"-?{_N} -?{_N} -?{_N}"
_WORDS = r"(?: \(([a-z_ ]*+)\))?"
_QUOTED = r'"([^"]*+(?:"[^"]*+)*?)"'
"""Pattern for quoted text that may itself contain quotes. The shortest match is tried first."""
_ATTACKED = re.compile(
    rf'\[({_XYZ})\] attacked {_QUOTED} \[({_XYZ})\] with "(\w*+)" \(damage "({_N})"\) \(damage_armor "({_N})"\)'
    rf' \(health "(-?{_N})"\) \(armor "({_N})"\) \(hitgroup "([A-Za-z ]*+)"\)',
    re.ASCII,
)
_KILLED = re.compile(rf'\[({_XYZ})\] killed {_QUOTED} \[({_XYZ})\] with "(\w*+)"{_WORDS}', re.ASCII)
_KILLED_OTHER = re.compile(rf'\[({_XYZ})\] killed other "(\w+)<({_N})>" \[({_XYZ})\] with "(\w*)"{_WORDS}', re.ASCII)
_SUICIDE = re.compile(rf'\[({_XYZ})\] committed suicide with "(\w*)"', re.ASCII)
_BOMB_DEATH = re.compile(rf"\[({_XYZ})\] was killed by the bomb\.", re.ASCII)
_HOSTAGE = re.compile(rf"\[({_XYZ})\] (picked up|dropped off) a hostage", re.ASCII)
_BLINDED = re.compile(
    r'blinded for (\d{1,4}\.\d{1,6}) by "(.+)" from flashbang entindex (\d{1,9}) ?', re.ASCII | re.DOTALL
)
_LAUNCHED = re.compile(r"sv_throw_([a-z]++) (-?[\d.]++(?: -?[\d.]++)*+)", re.ASCII)
_LANDED = re.compile(rf"threw ([a-z]+) \[({_XYZ})\](?: ([a-z]+) entindex ({_N})\))?", re.ASCII)
_TRIGGERED = re.compile(r'triggered "(\w+)"(?: at bombsite ([A-Z]))?', re.ASCII)
_MONEY = re.compile(
    r"money change (-?\d{1,9})([+-]\d{1,9}) = \$(-?\d{1,9})( \(tracked\))?(?: \(([\w: ]*+)\))?", re.ASCII
)
_BUYZONE = re.compile(r"left buyzone with \[ ([\w() ]*+)\]", re.ASCII)
_ITEM_VERBS = frozenset(("purchased", "picked up", "dropped"))
_SWITCHED = re.compile(r"switched from team <(\w*)> to <(\w*)>", re.ASCII)
_CONNECTED = re.compile(r'connected, address "([^"<>]*)"')  # the address must not contain the end of a token
_DISCONNECTED = re.compile(r'disconnected \(reason "(.*)"\)', re.DOTALL)


def read_rest(player: PlayerToken, rest: str, known: KnownPlayers) -> lines.PlayerLogLine | None:
    """Parse `rest`, the line after the player's token; None if it matches no known line."""
    if rest[:1] == "[":
        at = rest.find("] ") + 2
        read = _WITH_POSITION.get(rest[at : rest.find(" ", at)])
    else:
        read = _PLAIN.get(rest[: rest.find(" ")])
    return None if read is None else read(player, rest, known)


def _attacked(player: PlayerToken, rest: str, known: KnownPlayers) -> lines.PlayerLogLine | None:
    found = _ATTACKED.fullmatch(rest)
    if found is None:
        return None
    position, victim_text, victim_position, weapon, damage, damage_armor, health, armor, hitgroup = found.groups()
    victim = known.second_token(victim_text, player)
    if victim is None:
        return None
    return lines.Attacked(
        player, position, victim, victim_position, weapon,
        int(damage), int(damage_armor), int(health), int(armor), hitgroup,
    )  # fmt: skip


def _killed(player: PlayerToken, rest: str, known: KnownPlayers) -> lines.PlayerLogLine | None:
    found = _KILLED.fullmatch(rest)
    if found is None:
        return _killed_other(player, rest)
    position, victim_text, victim_position, weapon, words = found.groups()
    victim = known.second_token(victim_text, player)
    if victim is None:
        return None
    return lines.Killed(player, position, victim, victim_position, weapon, tuple(words.split()) if words else ())


def _killed_other(player: PlayerToken, rest: str) -> lines.PlayerLogLine | None:
    found = _KILLED_OTHER.fullmatch(rest)
    if found is None:
        return None
    position, thing, entity, thing_position, weapon, words = found.groups()
    modifiers = tuple(words.split()) if words else ()
    return lines.KilledOther(player, position, thing, int(entity), thing_position, weapon, modifiers)


def _suicide(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    found = _SUICIDE.fullmatch(rest)
    return found and lines.Suicide(player, found[1], found[2])


def _bomb_death(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    found = _BOMB_DEATH.fullmatch(rest)
    return found and lines.BombDeath(player, found[1])


def _hostage(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    found = _HOSTAGE.fullmatch(rest)
    return found and lines.HostageMoved(player, found[1], found[2] == "picked up")


def _assisted(player: PlayerToken, rest: str, known: KnownPlayers) -> lines.PlayerLogLine | None:
    is_flash = rest[0] == "f"
    head = 'flash-assisted killing "' if is_flash else 'assisted killing "'
    if not rest.startswith(head) or not rest.endswith('"'):
        return None
    victim = known.second_token(rest[len(head) : -1], player)
    return None if victim is None else lines.Assisted(player, victim, is_flash)


def _blinded(player: PlayerToken, rest: str, known: KnownPlayers) -> lines.PlayerLogLine | None:
    found = _BLINDED.fullmatch(rest)
    if found is None:
        return None
    thrower = known.second_token(found[2], player)
    return None if thrower is None else lines.BlindedBy(player, found[1], thrower, int(found[3]))


def _launched(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    found = _LAUNCHED.fullmatch(rest)
    return found and lines.GrenadeLaunched(player, found[1], found[2])


def _landed(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    found = _LANDED.fullmatch(rest)
    if found is None or found[3] not in (None, found[1]):
        return None
    return lines.GrenadeLanded(player, found[1], found[2], None if found[4] is None else int(found[4]))


def _triggered(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    found = _TRIGGERED.fullmatch(rest)
    return found and lines.Triggered(player, found[1], found[2])


def _item(player: PlayerToken, rest: str, _known: KnownPlayers) -> lines.PlayerLogLine | None:
    verb, _, quoted = rest.partition(' "')
    item = quoted[:-1]
    is_item = not item or (item.isascii() and item.replace("_", "x").isalnum())
    return lines.ItemTransfer(player, verb, item) if is_item and verb in _ITEM_VERBS and quoted[-1:] == '"' else None


def _money(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    found = _MONEY.fullmatch(rest)
    if found is None:
        return None
    before, change, after, tracked, cause = found.groups()
    return lines.MoneyChange(player, int(before), int(change), int(after), cause, tracked is not None)


def _buyzone(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    found = _BUYZONE.fullmatch(rest)
    return found and lines.LeftBuyzone(player, tuple(found[1].split()))


def _chat(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    is_team_only = rest.startswith('say_team "')
    head = 10 if is_team_only else 5
    if not (is_team_only or rest.startswith('say "')) or not rest.endswith('"') or len(rest) <= head:
        return None
    return lines.Chat(player, is_team_only, rest[head:-1])


def _connected(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    found = _CONNECTED.fullmatch(rest)
    return found and lines.Connected(player, found[1])


def _validated(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    return lines.Validated(player) if rest == "STEAM USERID validated" else None


def _entered(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    return lines.Entered(player) if rest == "entered the game" else None


def _switched(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    found = _SWITCHED.fullmatch(rest)
    if found is None or found[1] not in TEAMS or found[2] not in TEAMS:
        return None
    return lines.SwitchedTeam(player, found[1], found[2])


def _disconnected(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    found = _DISCONNECTED.fullmatch(rest)
    return found and lines.Disconnected(player, found[1])


def _renamed(player: PlayerToken, rest: str, _: KnownPlayers) -> lines.PlayerLogLine | None:
    if not rest.startswith('changed name to "') or not rest.endswith('"') or len(rest) < 18:
        return None
    return lines.ChangedName(player, rest[17:-1])


_WITH_POSITION: dict[str, _Reader] = {
    "attacked": _attacked,
    "killed": _killed,
    "committed": _suicide,
    "was": _bomb_death,
    "picked": _hostage,
    "dropped": _hostage,
}

_PLAIN: dict[str, _Reader] = {
    "say": _chat,
    "say_team": _chat,
    "picked": _item,
    "purchased": _item,
    "dropped": _item,
    "money": _money,
    "left": _buyzone,
    "assisted": _assisted,
    "flash-assisted": _assisted,
    "blinded": _blinded,
    "triggered": _triggered,
    "threw": _landed,
    "connected,": _connected,
    "STEAM": _validated,
    "entered": _entered,
    "switched": _switched,
    "disconnected": _disconnected,
    "changed": _renamed,
    "sv_throw_hegrenade": _launched,
    "sv_throw_flashgrenade": _launched,
    "sv_throw_smokegrenade": _launched,
    "sv_throw_molotov": _launched,
    "sv_throw_decoygrenade": _launched,
}
