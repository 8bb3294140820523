"""Statistics: events of a map become player lines, leaderboards and cross-checks."""
