"""Shared by all rooms: identifiers, principals, metrics, outages of the database."""
