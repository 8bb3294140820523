"""Metrics, spans, and the measured database, for all other packages."""
