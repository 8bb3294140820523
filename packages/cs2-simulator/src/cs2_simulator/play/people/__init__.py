"""Simulated people: who comes to a server, when, and what they do there besides playing."""
