"""Record the history of matches (their series and maps) while they are played, finalize it, and recompute it."""
