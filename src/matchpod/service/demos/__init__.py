"""Receive, show and delete the demos of matches."""
