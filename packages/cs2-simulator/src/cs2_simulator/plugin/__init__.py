"""A simulation of the match plugin MatchZy."""
