"""A simulated CS2 server: real RCON socket, real log posts, generated players."""
