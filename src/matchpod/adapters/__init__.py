"""Implement the ports."""
