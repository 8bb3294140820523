"""The counts: what really happened, counted as it is decided."""
