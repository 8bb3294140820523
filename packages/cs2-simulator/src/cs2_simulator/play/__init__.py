"""Simulate the game: players, fights, the flow of a map, and its statistics."""
