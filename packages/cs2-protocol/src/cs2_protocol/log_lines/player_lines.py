"""Define the values of log lines that begin with a player token, and format them.

Apart from the token, only chat, new names and disconnect reasons contain free text. Positions are strings, so that `-0`
is preserved.
"""

from __future__ import annotations

import msgspec

from cs2_protocol.log_lines.player_token import PlayerToken


class PlayerLogLine(msgspec.Struct, frozen=True, gc=False):
    """A line about a player."""

    player: PlayerToken

    def text(self) -> str:
        """Return the line as the server prints it."""
        raise NotImplementedError


# --- values of the lines ------------------------------------------------------------------------------------------


class Connected(PlayerLogLine, frozen=True):
    """A client opened a connection."""

    address: str

    def text(self) -> str:
        return f'{self.player.text()} connected, address "{self.address}"'


class Validated(PlayerLogLine, frozen=True):
    """Steam validated the player's id."""

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
    """A client disconnected."""

    reason: str

    def text(self) -> str:
        return f'{self.player.text()} disconnected (reason "{self.reason}")'


class ChangedName(PlayerLogLine, frozen=True):
    """A player changed their name."""

    new_name: str

    def text(self) -> str:
        return f'{self.player.text()} changed name to "{self.new_name}"'


class Chat(PlayerLogLine, frozen=True):
    """A player wrote a chat message to all players, or to their own team."""

    is_team_only: bool
    message: str

    def text(self) -> str:
        return f'{self.player.text()} {"say_team" if self.is_team_only else "say"} "{self.message}"'


class Attacked(PlayerLogLine, frozen=True):
    """A player hit a player, possibly themselves.

    `damage` can exceed the health that the victim had; `health` is what remains. `weapon` is a base model name.
    """

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
    """A kill, with its modifiers (`headshot`, `penetrated`, …) in printed order."""

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
    """A player killed or broke something else, such as a chicken or a window."""

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
    """A death by suicide or by the world; also printed when a player leaves, changes team or a round is restored."""

    position: str
    weapon: str

    def text(self) -> str:
        return f'{self.player.text()} [{self.position}] committed suicide with "{self.weapon}"'


class BombDeath(PlayerLogLine, frozen=True):
    """The bomb explosion killed a player. A `Suicide` line for the same death follows."""

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
    """A player assisted a kill, by damage or by a flash."""

    victim: PlayerToken
    is_flash: bool

    def text(self) -> str:
        return f"{self.player.text()} {'flash-' if self.is_flash else ''}assisted killing {self.victim.text()}"


class BlindedBy(PlayerLogLine, frozen=True):
    """The player was blinded by a flashbang."""

    seconds: str
    thrower: PlayerToken
    entity: int

    def text(self) -> str:
        return (
            f"{self.player.text()} blinded for {self.seconds} by {self.thrower.text()}"
            f" from flashbang entindex {self.entity}"
        )


class GrenadeLaunched(PlayerLogLine, frozen=True):
    """A grenade was thrown. `numbers` includes its initial position and velocity."""

    grenade: str
    numbers: str

    def text(self) -> str:
        return f"{self.player.text()} sv_throw_{self.grenade} {self.numbers}"


class GrenadeLanded(PlayerLogLine, frozen=True):
    """A grenade detonated; for a flashbang the line includes its entity number, with an unmatched closing bracket."""

    grenade: str
    position: str
    entity: int | None = None

    def text(self) -> str:
        tail = "" if self.entity is None else f" {self.grenade} entindex {self.entity})"
        return f"{self.player.text()} threw {self.grenade} [{self.position}]{tail}"


class Triggered(PlayerLogLine, frozen=True):
    """A bomb or hostage action; `site` is the bombsite, if the line contains it."""

    trigger: str
    site: str | None = None

    def text(self) -> str:
        tail = "" if self.site is None else f" at bombsite {self.site}"
        return f'{self.player.text()} triggered "{self.trigger}"{tail}'


class ItemTransfer(PlayerLogLine, frozen=True):
    """A player got or lost an item: `verb` is `purchased`, `picked up` or `dropped`."""

    verb: str
    item: str

    def text(self) -> str:
        return f'{self.player.text()} {self.verb} "{self.item}"'


class MoneyChange(PlayerLogLine, frozen=True):
    """A player's money changed. The user id in the player token of this line is one too high."""

    before: int
    change: int
    after: int
    cause: str | None = None
    is_tracked: bool = True

    def text(self) -> str:
        tail = f"{' (tracked)' if self.is_tracked else ''}{'' if self.cause is None else f' ({self.cause})'}"
        return f"{self.player.text()} money change {self.before}{self.change:+d} = ${self.after}{tail}"


class LeftBuyzone(PlayerLogLine, frozen=True):
    """A player left the buy zone, carrying `items`."""

    items: tuple[str, ...]

    def text(self) -> str:
        return f"{self.player.text()} left buyzone with [ {''.join(f'{item} ' for item in self.items)}]"


def _bracket(words: tuple[str, ...]) -> str:
    return f" ({' '.join(words)})" if words else ""
