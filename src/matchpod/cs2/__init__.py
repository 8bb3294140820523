"""THE LANGUAGE of CS2 servers, sans-IO: log lines, RCON frames, console commands, MatchZy."""
