"""A CS2 server that is not one: real RCON socket, real log posts, made-up players."""
