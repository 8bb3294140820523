"""Simulate people: who connects to a server and when, and what they do there besides playing."""
