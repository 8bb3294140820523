"""The simulator's own statistics, counted as events happen."""
