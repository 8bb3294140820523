"""Sockets: RCON, log posts, the plugin's requests, and the processes around them."""
