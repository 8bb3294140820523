"""Test that the detectors of the service find the cheater among simulated players."""

from __future__ import annotations

from collections import Counter
from math import dist
from random import Random

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import Killed
from cs2_simulator.play.fights.round_play import RoundStyle, play_round
from cs2_simulator.play.player import Participant
from matchpod.core.anticheat.detectors import DETECTORS, Detector
from matchpod.core.events import Kill
from matchpod.core.model import MatchType
from simulator_tests.play.fights.battlefield import Battlefield, begin_round, without_result


def test_only_the_cheater_is_detected_within_twenty_rounds() -> None:
    field = Battlefield(cts=4)
    cheater = field.add(30, "CT", Participant("x", 999, skill=1.8, headshots=0.9, is_cheater=True))
    probe = DetectorProbe(field)
    for number in range(20):
        rng = Random(f"cheater {number}")
        begin_round(field, rng)
        probe.kills_from = 0
        script = without_result(play_round(field.arena, rng, list(Side)[number % 2], RoundStyle.BOMB))
        planned = field.agenda.start(script)
        while not planned.is_over:
            field.agenda.run_next()
            probe.check()
    assert set(probe.reported) == {cheater.person.player_id}
    assert probe.reported.total() >= 2


class DetectorProbe:
    """Passes every kill of an enemy to the detectors of the service, in the tick in which it happens."""

    def __init__(self, field: Battlefield) -> None:
        self._field = field
        self._detectors: dict[str, list[Detector]] = {}
        self.kills_from = 0
        self.reported = Counter[str]()

    def check(self) -> None:
        kills = self._field.log.lines_of(Killed)
        for line in kills[self.kills_from :]:
            killer = line.player.player_id
            detectors = self._detectors.setdefault(killer, [kind.of(MatchType.COMPETITIVE) for kind in DETECTORS])
            if line.player.team != line.victim.team:
                kill = _kill_of(line, self._field.agenda.now_ms)
                self.reported.update(killer for detector in detectors if detector.observe(kill) is not None)
        self.kills_from = len(kills)


def _kill_of(line: Killed, at_ms: int) -> Kill:
    one, other = ([int(part) for part in text.split(" ")] for text in (line.position, line.victim_position))
    modifiers = line.modifiers
    return Kill(
        at_ms=at_ms,
        killer=line.player.player_id,
        victim=line.victim.player_id,
        weapon=line.weapon,
        is_enemy=True,
        is_headshot="headshot" in modifiers,
        is_wallbang="penetrated" in modifiers,
        is_through_smoke="throughsmoke" in modifiers,
        is_blind="attackerblind" in modifiers,
        distance=dist(one, other),
    )
