"""Anti-cheat detectors: hints for human review, derived from events. Detectors never kick or ban a player."""
