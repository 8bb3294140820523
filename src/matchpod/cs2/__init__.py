"""What CS2 means for a match: log lines become events, settings become console commands."""
