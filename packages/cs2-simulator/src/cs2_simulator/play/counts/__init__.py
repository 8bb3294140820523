"""Count the simulator's own statistics as events happen."""
