"""An open book and two teams, for tests of the simulator's own statistics."""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_simulator.play.counts.book import Book
from cs2_simulator.play.counts.tally import Tally
from cs2_simulator.play.player import Participant, Player


def players(side: Side, *names: str) -> list[Player]:
    """Return living players of a side; their accounts are derived from their names."""
    return [
        Player(Participant(name, sum(map(ord, name))), number, team=side.value, is_in_game=True, is_alive=True)
        for number, name in enumerate(names)
    ]


class BookAndTeams:
    """An open book and two teams in round 1. By default they have three players, and kills are a second apart."""

    def __init__(self, size: int = 3, *, is_free_for_all: bool = False, has_respawns: bool = False) -> None:
        self.book = Book()
        self.book.open(is_free_for_all=is_free_for_all, has_respawns=has_respawns)
        self.ours = players(Side.CT, *"abcdef"[:size])
        self.theirs = players(Side.T, *"uvwxyz"[:size])
        self.now_ms = 0
        self.start(1)

    def start(self, number: int) -> None:
        self.book.round_started(number, self.ours, self.theirs)

    def kill(self, killer: Player, victim: Player, *, weapon: str = "ak47", after_ms: int = 1000) -> None:
        self.now_ms += after_ms
        self.book.kill(killer, victim, weapon, is_headshot=False, at_ms=self.now_ms)

    def die(self, victim: Player) -> None:
        self.now_ms += 1000
        self.book.died(victim)

    def leave(self, player: Player) -> None:
        self.book.player_left(player)

    def tally(self, player: Player) -> Tally:
        found = [tally for tally in self.book.tallies() if tally.player_id == player.person.player_id]
        assert len(found) == 1
        return found[0]

    def play(self, script: str) -> None:
        """Play what a script says. Players are a, b, c, … and u, v, w, …

        `a>u` a kills u, a second after the last death; `a>u@5` after 5 ms; `a>u:awp` with this weapon; `a+u` a assists
        in the death of u; `a*u` with a flash; `!a` a dies without a killer; `-a` a leaves; `=1` team 1 wins the round,
        `=0` no team does; `#2` round 2 begins.
        """
        by_name = {player.person.name: player for player in (*self.ours, *self.theirs)}
        for word in script.split():
            match [word[0], *word[1:]]:
                case ["#", *number]:
                    self.start(int("".join(number)))
                case ["=", team]:
                    self.book.round_decided(int(team) or None, None)
                case ["!", name]:
                    self.die(by_name[name])
                case ["-", name]:
                    self.leave(by_name[name])
                case [name, "+" | "*" as kind, victim]:
                    self.book.assist(by_name[name], by_name[victim], is_flash=kind == "*")
                case [killer, ">", victim, *_]:
                    weapon, after = word.partition(":")[2] or "ak47", word.partition("@")[2] or "1000"
                    self.kill(by_name[killer], by_name[victim], weapon=weapon, after_ms=int(after))
                case _:
                    raise ValueError(word)
