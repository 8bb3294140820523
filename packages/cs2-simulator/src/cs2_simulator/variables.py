"""Store the values of a server's console variables.

A value is looked up in three layers: values set on this server, the config of the game mode at the last map load, and
the game's defaults. The second and third layer are shared by all servers of a process. The game silently clamps a value
to its bounds, and reads text that is not a number as 0. Only the simulator's own `sim_` variables reject invalid values
with an error text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from cs2_simulator.mode_configs import MODE_CONFIGS, mode_of
from cs2_simulator.sim_settings import sim_fault
from cs2_simulator.variable_table import VARIABLES, Variable

_SPELLINGS = MappingProxyType({name.lower(): name for name in VARIABLES})

_MODE_VALUES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        mode: MappingProxyType({name: VARIABLES[name].normalize(value) for name, value in config.items()})
        for mode, config in MODE_CONFIGS.items()
    }
)
_NO_MODE: Mapping[str, str] = MappingProxyType({})


class Variables:
    """The console variables of one server. Names are case-insensitive."""

    __slots__ = ("_cache", "_changed", "_mode", "observers")

    def __init__(self) -> None:
        self._changed: dict[str, str] = {}
        self._mode = _NO_MODE
        self._cache: dict[str, str] = {}
        """Values looked up since the last change; the game reads the same few names all the time."""
        self.observers: list[Callable[[str], None]] = []
        """Called with the name of a variable after `set` changed it, but not when `load_mode` does."""

    def is_known(self, name: str) -> bool:
        """True if the console knows the name. It does not know developer-only variables."""
        variable = _find(name)
        return variable is not None and not variable.is_hidden

    def text(self, name: str) -> str:
        """Return the current value as the server prints it: `true`, `24`, `1.920000`.

        Empty if there is no such variable.
        """
        value = self._cache.get(name)
        return self._look_up(name) if value is None else value

    def _look_up(self, name: str) -> str:
        variable = _find(name)
        if variable is None:
            return ""
        value = self._changed.get(variable.name)
        if value is None:
            value = self._mode.get(variable.name, variable.default)
        self._cache[name] = value
        return value

    def number(self, name: str) -> float:
        """Return the value as a number; 0 if it is not a number."""
        return _as_number(self.text(name))

    def whole(self, name: str) -> int:
        """Return the value as an integer, truncated."""
        return int(_as_number(self.text(name)))

    def is_on(self, name: str) -> bool:
        """True unless the value is 0, `false` or not a number."""
        return _as_number(self.text(name)) != 0

    def set(self, name: str, value: str) -> str | None:
        """Set a variable. Return None on success; otherwise return an error text and keep the old value."""
        variable = _find(name)
        if variable is None or variable.is_hidden:
            return f"{name} is not a console variable"
        fault = sim_fault(variable.name, value)
        if fault is not None:
            return fault
        after = variable.normalize(value)
        if after != self.text(variable.name):
            self._changed[variable.name] = after
            self._cache.clear()
            for observer in tuple(self.observers):
                observer(variable.name)
        return None

    def describe(self, name: str) -> str:
        """Return what the console prints for the name of a variable: `mp_maxrounds = 24`."""
        variable = _find(name)
        return f"{variable.name if variable else name} = {self.text(name)}"

    def load_mode(self) -> None:
        """Apply the config of the current game mode, as every map load does.

        It overrides values that were set before.
        """
        self._mode = _MODE_VALUES[self.mode_name]
        for name in self._mode:
            self._changed.pop(name, None)
        self._cache.clear()

    @property
    def mode_name(self) -> str:
        """Name of the game mode that `game_type` and `game_mode` select, as printed in the `Game Over` line."""
        return mode_of(self.whole("game_type"), self.whole("game_mode"))


def _find(name: str) -> Variable | None:
    variable = VARIABLES.get(name)
    if variable is None:
        variable = VARIABLES.get(_SPELLINGS.get(name.lower(), ""))
    return variable


def _as_number(text: str) -> float:
    if text == "true":
        return 1.0
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0
