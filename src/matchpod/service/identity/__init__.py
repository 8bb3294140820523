"""Principals, and the identifiers that Matchpod generates."""
