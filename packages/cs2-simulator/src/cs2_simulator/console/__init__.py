"""The console: commands and their output."""
