"""Simulate a CS2 server: it has a real RCON socket and sends real log posts, but its players are generated."""
