"""Streams of events: of maps and of organizations."""
