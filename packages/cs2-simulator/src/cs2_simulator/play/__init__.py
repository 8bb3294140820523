"""The simulated game: players, fights, the flow of a map, and the statistics kept of it."""
