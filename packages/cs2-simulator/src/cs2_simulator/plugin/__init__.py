"""Simulate the match plugin MatchZy."""
