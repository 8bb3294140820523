"""The match plugin: what MatchZy does on a server that has it."""
