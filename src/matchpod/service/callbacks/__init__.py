"""Deliver callbacks, and show their deliveries."""
