"""Readiness, retention, disk space and the state of the installation, for operators."""
