"""Anti-cheat detectors: hints for human review, derived from events. They never kick or ban a player."""
