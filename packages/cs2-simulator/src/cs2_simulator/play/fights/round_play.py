"""Play a round from `Round_Start` to its decision, so that the given side wins it.

After every step, the rules of the game are checked: living players, bomb and time. The plan makes the given side win,
but if players leave, the round may end differently. The decision is not logged here: the caller logs it in the tick in
which the round is decided.
"""

from __future__ import annotations

from random import Random

from cs2_protocol.game import Side
from cs2_simulator.agenda import Script
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.fights.bomb import PLANT_MS, Bomb
from cs2_simulator.play.fights.combat import Battle
from cs2_simulator.play.fights.duel import duel
from cs2_simulator.play.fights.economy import equip, log_pick_up
from cs2_simulator.play.fights.falls import Fights, pick_up_gun
from cs2_simulator.play.fights.hostages import Hostages
from cs2_simulator.play.fights.round_plan import RoundPlan, RoundStyle, plan_round
from cs2_simulator.play.fights.script_runner import ScriptRunner
from cs2_simulator.play.fights.sideshow import plan_buyzone_exits, plan_side_events
from cs2_simulator.play.player import Player
from cs2_simulator.play.watcher import RoundEnd

__all__ = ["RoundStyle", "play_aftermath", "play_round"]

_MS_PER_MINUTE = 60_000
_USUAL_ROUND_MS = 115_000
_LAST_MS = 6_000
"""Milliseconds before the end of the round by which fights and hostage rescue are over."""
_PLANT_BY_MS = 10_000
_DEFUSE_RESERVE_MS = 5_000
_RETAKE_PLANT_MS = 1_200
_QUIET_MS = (15_000, 35_000)
"""Pause before the fights, in milliseconds, if `sim_quiet` is on. The log is silent for about five seconds less,
because players first leave the buy zone. In real logs, silences of 10 s or more occur 39 times an hour."""

_RETAKE_GUNS = {Side.CT: ("m4a1_silencer", "m4a1", "famas", "mp9"), Side.T: ("ak47", "galilar", "ak47", "mac10")}

_EXIT_FRAG = 0.25
_LATE_TEAM_KILL = 0.03
_LATE_PICK_UP = 0.5


def play_round(arena: Arena, rng: Random, winner: Side, style: RoundStyle) -> Script[RoundEnd]:
    """Play a round from just after `Round_Start` until the tick in which it is decided."""
    current = _RoundPlay(arena, rng, winner, style)
    yield from current.play()
    return current.result()


def play_aftermath(arena: Arena, rng: Random) -> Script[None]:
    """Play the seconds after the decision. Players whom the bomb has hit die in the tick of the decision."""
    battle = Battle(arena, rng)
    for player in list(arena.players):
        if player.is_alive and not player.health:
            battle.kill_by_bomb(player)
    chance = rng.random()
    yield 500 + int(rng.random() * 2000)
    cts, ts = arena.alive_on(Side.CT), arena.alive_on(Side.T)
    if cts and ts and chance < _EXIT_FRAG:
        killer, victim = (cts[0], ts[-1]) if rng.random() < 0.5 else (ts[0], cts[-1])
        yield from duel(battle, killer, victim)
    elif chance < _LATE_TEAM_KILL and len(cts or ts) > 1 and battle.team_bullet_factor:
        mates = cts or ts
        yield from duel(battle, mates[0], mates[-1])
    yield 500 + int(rng.random() * 1000)
    if chance < _LATE_PICK_UP:
        pick_up_gun(battle)


class _RoundPlay:
    def __init__(self, arena: Arena, rng: Random, winner: Side, style: RoundStyle) -> None:
        self._arena = arena
        self._rng = rng
        self._winner = winner
        self._style = style
        self._battle = Battle(arena, rng, has_rewards=style is not RoundStyle.KNIFE, must_live=self._must_live)
        self._runner = ScriptRunner(arena.agenda)
        self._fights = Fights(self._battle)
        self._bomb = Bomb(self._battle)
        self._hostages = Hostages(self._battle)
        self._ends_at_ms = arena.clock_ms + self._round_ms()
        self._end: RoundEnd | None = None
        self._checked_at = (-1, 0)
        self._is_contested = bool(arena.alive_on(Side.CT)) and bool(arena.alive_on(Side.T))

    def play(self) -> Script[None]:
        arena, rng, style = self._arena, self._rng, self._style
        cts, ts = arena.alive_on(Side.CT), arena.alive_on(Side.T)
        for player in (*cts, *ts):
            self._battle.terrain.place(rng, player)
            if style is RoundStyle.KNIFE:
                player.primary = player.pistol = ""
                player.grenades.clear()
            elif style is RoundStyle.RETAKE:
                self._equip_for_retake(player)
        plan = plan_round(rng, self._winner, style, cts=len(cts), ts=len(ts), bomb_timer_ms=self._bomb.timer_ms)
        runner, quiet_ms = self._runner, self._quiet_ms()
        runner.start(self._run_out_of_time())
        if style is not RoundStyle.KNIFE:
            plan_buyzone_exits(self._battle, runner)
            plan_side_events(self._battle, runner, fight_ms=min(55_000, self._round_ms()), after_ms=quiet_ms)
        runner.start(self._follow_plan(plan, len(cts), len(ts)), quiet_ms)
        yield from runner.play(self._is_decided)

    def result(self) -> RoundEnd:
        return self._end or RoundEnd(None, "Round_Draw")

    # --- the course of the round -------------------------------------------------------------------------------------

    def _follow_plan(self, plan: RoundPlan, cts: int, ts: int) -> Script[None]:
        rng = self._rng
        if self._style is RoundStyle.RETAKE and plan.plant_after is not None:
            yield 200 + int(rng.random() * 400)
            yield from self._plant(_RETAKE_PLANT_MS)
        left_ms = (self._bomb.explodes_at_ms or self._ends_at_ms) - self._arena.clock_ms
        yield min(5_000 + int(rng.random() * 16_000), left_ms // 5)
        if plan.plant_after is not None and not self._bomb.is_planted:
            ct_goal = max(1, cts - round((cts - plan.ct_left) * plan.plant_after))
            t_goal = max(1, ts - round((ts - plan.t_left) * plan.plant_after))
            plant_ms = self._deadline_ms(20_000 + int(rng.random() * 45_000), self._ends_at_ms - _PLANT_BY_MS)
            yield from self._fight(ct_goal, t_goal, plant_ms)
            yield from self._plant()
        yield from self._fight(plan.ct_left, plan.t_left, self._fight_until(plan))
        if plan.notice == "Bomb_Defused" and self._bomb.is_planted:
            yield min(1000 + int(rng.random() * 3000), _DEFUSE_RESERVE_MS // 3)
            yield from self._bomb.defuse(may_abort=plan.t_left > 0)
            if self._bomb.defuser is not None:
                self._end = RoundEnd(Side.CT, "Bomb_Defused", self._bomb.defuser)
        elif plan.notice == "All_Hostages_Rescued":
            yield from self._hostages.rescue(self._ends_at_ms - _LAST_MS)
            if self._hostages.rescuer is not None:
                self._end = RoundEnd(Side.CT, plan.notice, self._hostages.rescuer)

    def _fight(self, cts: int, ts: int, until_ms: int) -> Script[None]:
        """Play fights. Between fights, a living Terrorist may pick up a dropped bomb."""
        for step_ms in self._fights.until_left(cts=cts, ts=ts, until_ms=until_ms):
            yield step_ms
            if self._battle.is_bomb_dropped and self._rng.random() < 0.1:
                self._bomb.pick_up()

    def _plant(self, plant_ms: int = PLANT_MS) -> Script[None]:
        yield from self._bomb.plant(plant_ms)
        if self._bomb.is_planted:
            self._runner.start(self._explode(), self._bomb.timer_ms)

    def _explode(self) -> Script[None]:
        self._bomb.explode()
        self._end = RoundEnd(Side.T, "Target_Bombed", self._bomb.planter)
        yield 0

    def _run_out_of_time(self) -> Script[None]:
        yield self._ends_at_ms - self._arena.clock_ms

    # --- times --------------------------------------------------------------------------------------------------

    def _quiet_ms(self) -> int:
        return self._rng.randint(*_QUIET_MS) if self._arena.variables.is_on("sim_quiet") else 0

    def _round_ms(self) -> int:
        variables = self._arena.variables
        variable = "mp_roundtime_hostage" if self._style is RoundStyle.HOSTAGE else "mp_roundtime_defuse"
        minutes = variables.number(variable) or variables.number("mp_roundtime")
        return int(minutes * _MS_PER_MINUTE) or _USUAL_ROUND_MS

    def _deadline_ms(self, wait_ms: int, latest_ms: int) -> int:
        return min(self._arena.clock_ms + wait_ms, latest_ms)

    def _fight_until(self, plan: RoundPlan) -> int:
        chance = self._rng.random()
        explodes_at_ms = self._bomb.explodes_at_ms
        if explodes_at_ms is None:
            if plan.notice in ("Target_Saved", "Hostages_Not_Rescued"):
                return self._ends_at_ms - _LAST_MS
            if plan.notice == "All_Hostages_Rescued":
                return self._deadline_ms(20_000 + int(chance * 40_000), self._ends_at_ms - 5 * _LAST_MS)
            return self._deadline_ms(10_000 + int(chance * 70_000), self._ends_at_ms - _LAST_MS)
        if plan.notice == "Bomb_Defused":
            latest_ms = explodes_at_ms - self._bomb.defuse_time_ms() - _DEFUSE_RESERVE_MS
            return self._deadline_ms(4_000 + int(chance * 18_000), latest_ms)
        return self._deadline_ms(5_000 + int(chance * 25_000), explodes_at_ms - 2_000)

    # --- the rules ----------------------------------------------------------------------------------------------

    def _is_decided(self) -> bool:
        if self._end is None:
            # Called after every step. The result can only change with another death or another tick.
            moment = (self._arena.agenda.tick, self._battle.deaths)
            if moment == self._checked_at:
                return False
            self._checked_at = moment
            self._end = self._apply_rules()
        return self._end is not None

    def _apply_rules(self) -> RoundEnd | None:
        has_ct = has_t = False
        for player in self._arena.players:
            if player.is_alive:
                if player.team == "CT":
                    has_ct = True
                else:
                    has_t = True
                if has_ct and has_t:
                    break
        is_planted = self._bomb.is_planted
        if not self._is_contested and (has_ct or has_t):
            # If all players are on one side, there is no elimination: the round lasts until its time limit.
            has_ct = has_t = True
        if has_ct and (has_t or is_planted):
            if is_planted or self._arena.clock_ms < self._ends_at_ms:
                return None
            if self._style is RoundStyle.HOSTAGE:
                return RoundEnd(Side.T, "Hostages_Not_Rescued", self._best_of(Side.T))
            return RoundEnd(Side.CT, "Target_Saved", self._best_of(Side.CT))
        if has_ct:
            return RoundEnd(Side.CT, "CTs_Win", self._best_of(Side.CT))
        if has_t:
            return RoundEnd(Side.T, "Terrorists_Win", self._best_of(Side.T))
        return None if is_planted and self._arena.players_on(Side.T) else RoundEnd(None, "Round_Draw")

    def _best_of(self, side: Side) -> Player | None:
        battle = self._battle
        return max(
            self._arena.players_on(side),
            key=lambda player: (battle.kills.get(player, 0), battle.damage_dealt.get(player, 0), -player.user_id),
            default=None,
        )

    def _must_live(self, player: Player) -> bool:
        """True for the last living player of the winning side, a player handling the bomb, and a hostage carrier."""
        if player is self._bomb.handler or player is self._hostages.carrier:
            return True
        if player.team != self._winner:
            return False
        return not any(
            mate.is_alive and mate.team == player.team and mate is not player for mate in self._arena.players
        )

    def _equip_for_retake(self, player: Player) -> None:
        side = Side.CT if player.team == Side.CT else Side.T
        guns = _RETAKE_GUNS[side]
        names = [guns[int(self._rng.random() * len(guns))], "vesthelm"]
        if side is Side.CT:
            names.append("defuser")
        for name in names:
            equip(player, name)
            log_pick_up(self._arena, player, name)
