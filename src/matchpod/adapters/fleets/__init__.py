"""Implement the port Fleet, which provides game servers."""
