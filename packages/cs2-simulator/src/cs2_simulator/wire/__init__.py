"""Sockets and processes of simulated servers: RCON, log posts, plugin requests."""
