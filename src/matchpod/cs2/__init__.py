"""Parse and format what CS2 servers exchange, without I/O: log lines, RCON frames, console commands, MatchZy events."""
