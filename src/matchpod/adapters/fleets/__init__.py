"""Fleets: adapters that provide game servers."""
