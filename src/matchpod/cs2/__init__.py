"""Parse and format the data of CS2 servers, without I/O: log lines, RCON frames, console commands, MatchZy events."""
