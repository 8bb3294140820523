"""Series and maps of matches: recorded while they are played, and read by callers."""
