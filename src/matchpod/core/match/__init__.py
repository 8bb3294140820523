"""The rules of a match: its phases, its players, its maps, and the effects that follow."""
