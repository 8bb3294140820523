"""The HTTP server. The only part of Matchpod that it knows is the format of an error."""
