"""The HTTP server. It knows nothing about Matchpod except how to write an error."""
