"""What did a player do? Every line that begins with a player token: its value, how it is read, how it is written.

Grammar after the token is strict to the last character, so that free text cannot pass for an event; only chat, new
names and disconnect reasons hold free text. Positions stay as printed (`-0` is real).
"""

from __future__ import annotations

import msgspec

from matchpod.cs2.log_lines.player_token import PlayerToken


class PlayerLogLine(msgspec.Struct, frozen=True, gc=False):
    """A line about a player."""

    player: PlayerToken

    def text(self) -> str:
        """The line as the server prints it."""
        raise NotImplementedError


# --- values ----------------------------------------------------------------------------------------------------


class Connected(PlayerLogLine, frozen=True):
    """A client opened a connection."""

    address: str

    def text(self) -> str:
        return f'{self.player.text()} connected, address "{self.address}"'


class Validated(PlayerLogLine, frozen=True):
    """Steam confirmed the id."""

    def text(self) -> str:
        return f"{self.player.text()} STEAM USERID validated"


class Entered(PlayerLogLine, frozen=True):
    """The client finished loading."""

    def text(self) -> str:
        return f"{self.player.text()} entered the game"


class SwitchedTeam(PlayerLogLine, frozen=True):
    """A player changed team. The token of this line has no team part."""

    old: str
    new: str

    def text(self) -> str:
        return f"{self.player.text()} switched from team <{self.old}> to <{self.new}>"


class Disconnected(PlayerLogLine, frozen=True):
    """A client is gone."""

    reason: str

    def text(self) -> str:
        return f'{self.player.text()} disconnected (reason "{self.reason}")'


class ChangedName(PlayerLogLine, frozen=True):
    """A player took another name."""

    new_name: str

    def text(self) -> str:
        return f'{self.player.text()} changed name to "{self.new_name}"'


class Chat(PlayerLogLine, frozen=True):
    """A player wrote to all, or to his team."""

    is_team_only: bool
    said: str

    def text(self) -> str:
        return f'{self.player.text()} {"say_team" if self.is_team_only else "say"} "{self.said}"'


class Attacked(PlayerLogLine, frozen=True):
    """A hit. `damage` is uncapped, `health` what is left; the weapon is the base model of the one held."""

    position: str
    victim: PlayerToken
    victim_position: str
    weapon: str
    damage: int
    damage_armor: int
    health: int
    armor: int
    hitgroup: str

    def text(self) -> str:
        return (
            f"{self.player.text()} [{self.position}] attacked {self.victim.text()} [{self.victim_position}]"
            f' with "{self.weapon}" (damage "{self.damage}") (damage_armor "{self.damage_armor}")'
            f' (health "{self.health}") (armor "{self.armor}") (hitgroup "{self.hitgroup}")'
        )


class Killed(PlayerLogLine, frozen=True):
    """A kill, with the words in its last bracket (`headshot`, `penetrated`, …) in printed order."""

    position: str
    victim: PlayerToken
    victim_position: str
    weapon: str
    modifiers: tuple[str, ...] = ()

    def text(self) -> str:
        return (
            f"{self.player.text()} [{self.position}] killed {self.victim.text()} [{self.victim_position}]"
            f' with "{self.weapon}"{_bracket(self.modifiers)}'
        )


class KilledOther(PlayerLogLine, frozen=True):
    """Something that is not a player broke or died: a chicken, a window."""

    position: str
    thing: str
    entity: int
    thing_position: str
    weapon: str
    modifiers: tuple[str, ...] = ()

    def text(self) -> str:
        return (
            f'{self.player.text()} [{self.position}] killed other "{self.thing}<{self.entity}>"'
            f' [{self.thing_position}] with "{self.weapon}"{_bracket(self.modifiers)}'
        )


class Suicide(PlayerLogLine, frozen=True):
    """A player died by himself or the world; printed for leaving, team changes and restores too."""

    position: str
    weapon: str

    def text(self) -> str:
        return f'{self.player.text()} [{self.position}] committed suicide with "{self.weapon}"'


class BombDeath(PlayerLogLine, frozen=True):
    """The bomb killed a player; a suicide line for the same death follows."""

    position: str

    def text(self) -> str:
        return f"{self.player.text()} [{self.position}] was killed by the bomb."


class HostageMoved(PlayerLogLine, frozen=True):
    """A hostage was picked up or dropped off."""

    position: str
    is_pick_up: bool

    def text(self) -> str:
        return f"{self.player.text()} [{self.position}] {'picked up' if self.is_pick_up else 'dropped off'} a hostage"


class Assisted(PlayerLogLine, frozen=True):
    """Helped with a kill, by damage or by a flash."""

    victim: PlayerToken
    is_flash: bool

    def text(self) -> str:
        return f"{self.player.text()} {'flash-' if self.is_flash else ''}assisted killing {self.victim.text()}"


class BlindedBy(PlayerLogLine, frozen=True):
    """A flashbang blinded the player."""

    seconds: str
    thrower: PlayerToken
    entity: int

    def text(self) -> str:
        return (
            f"{self.player.text()} blinded for {self.seconds} by {self.thrower.text()}"
            f" from flashbang entindex {self.entity}"
        )


class GrenadeLaunched(PlayerLogLine, frozen=True):
    """A grenade left the hand; the numbers are its path."""

    grenade: str
    numbers: str

    def text(self) -> str:
        return f"{self.player.text()} sv_throw_{self.grenade} {self.numbers}"


class GrenadeLanded(PlayerLogLine, frozen=True):
    """A grenade went off; flashbangs print their entity, with a bracket that never opened."""

    grenade: str
    position: str
    entity: int | None = None

    def text(self) -> str:
        tail = "" if self.entity is None else f" {self.grenade} entindex {self.entity})"
        return f"{self.player.text()} threw {self.grenade} [{self.position}]{tail}"


class Triggered(PlayerLogLine, frozen=True):
    """Bomb and hostage actions; `site` is the bombsite where the line names one."""

    trigger: str
    site: str | None = None

    def text(self) -> str:
        tail = "" if self.site is None else f" at bombsite {self.site}"
        return f'{self.player.text()} triggered "{self.trigger}"{tail}'


class Item(PlayerLogLine, frozen=True):
    """An item changed hands: `verb` is `purchased`, `picked up` or `dropped`."""

    verb: str
    item: str

    def text(self) -> str:
        return f'{self.player.text()} {self.verb} "{self.item}"'


class MoneyChange(PlayerLogLine, frozen=True):
    """Money came or went. The number in the token of this line is one too high."""

    before: int
    change: int
    after: int
    cause: str | None = None

    def text(self) -> str:
        tail = "" if self.cause is None else f" ({self.cause})"
        return f"{self.player.text()} money change {self.before}{self.change:+d} = ${self.after} (tracked){tail}"


class LeftBuyzone(PlayerLogLine, frozen=True):
    """What a player carries as he leaves the buy zone."""

    items: tuple[str, ...]

    def text(self) -> str:
        return f"{self.player.text()} left buyzone with [ {''.join(f'{item} ' for item in self.items)}]"


def _bracket(words: tuple[str, ...]) -> str:
    return f" ({' '.join(words)})" if words else ""
