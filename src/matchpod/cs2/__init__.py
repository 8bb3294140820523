"""Translate between CS2 and the rules of a match: log lines to events, settings to console commands."""
