"""Manage organizations, API keys, console sessions, rate limits and the audit log."""
