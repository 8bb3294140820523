"""Regions: their state, switch, statistics and alerts, and their silent servers."""
