"""What Counter-Strike 2 servers speak, without I/O: log lines, RCON, console commands and answers, MatchZy events."""
