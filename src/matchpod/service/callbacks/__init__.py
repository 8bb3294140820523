"""Deliver callbacks, and show their delivery attempts."""
