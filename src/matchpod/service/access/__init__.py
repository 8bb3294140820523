"""Organizations, keys, sessions, limits, and the audit log."""
