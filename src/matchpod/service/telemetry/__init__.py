"""Provide metrics, spans, ids for log lines, and the measured database to all other packages."""
