"""Simulated people: who connects to a server, when, and what they do there besides playing."""
