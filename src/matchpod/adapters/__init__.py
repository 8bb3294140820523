"""Implement the interfaces in `ports.py`: databases, fleets, consoles, the vault, the clock and others."""
