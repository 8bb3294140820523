"""The HTTP server. It knows nothing of Matchpod but how to write an error."""
