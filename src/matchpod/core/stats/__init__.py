"""Player statistics of a map, computed from events: player lines, leaderboards and cross-checks."""
