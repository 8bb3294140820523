"""Connect simulated servers to sockets and processes: RCON, log posts, plugin requests."""
