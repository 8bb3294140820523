"""The protocols of Counter-Strike 2 servers, without I/O: log lines, RCON, console answers and MatchZy events."""
