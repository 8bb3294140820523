"""The console: its commands and what they print."""
